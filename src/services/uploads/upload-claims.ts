import type { Answers } from '../../domain/answers/answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { custom, type Violation } from '../../domain/errors/violations.ts';
import { uploadLimits } from '../../domain/fields/index.ts';
import { SIGNATURE_TYPE } from '../../domain/fields/signature.ts';
import { isObject, type Json, type JsonObject, ownValue } from '../../domain/json/json.ts';
import { findUnclaimedUploads, type Upload } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';

/**
 * Puts what is known of each file in place of the `{upload_id}` in checked answers, and names the
 * uploads that the submission is to claim.
 *
 * There is a violation at each file that was not uploaded for this field of this form, that a
 * submission has, or that is named twice.
 */
export async function claimUploads(
  context: ServiceContext,
  version: VersionWithFiles,
  answers: Answers,
  root: 'answers' | 'prefill' = 'answers',
): Promise<ClaimedUploads> {
  const claims = claimsIn(version.definition, answers, root);
  if (claims.length === 0) return { answers, uploadIds: [], violations: [] };

  const uploads = await knownUploads(context, version, claims);
  const violations: Violation[] = [];
  const uploadIds = new Set<string>();
  for (const { id, fieldId, path } of claims) {
    if (uploads.get(id)?.fieldId !== fieldId) {
      violations.push(custom(path, 'There is no such upload for this field'));
    } else if (uploadIds.has(id)) {
      violations.push(custom(path, 'This upload is named twice'));
    }
    uploadIds.add(id);
  }
  const described = describeUploads(version.definition, answers, uploads, context.settings.baseUrl);
  return { answers: described, uploadIds: [...uploadIds], violations };
}

/** As `claimUploads`, for showing answers that are not submitted yet: unknown files are left as they are. */
export async function describeUnclaimed(
  context: ServiceContext,
  version: VersionWithFiles,
  answers: Answers,
): Promise<Answers> {
  const claims = claimsIn(version.definition, answers, 'answers');
  if (claims.length === 0) return answers;
  const uploads = await knownUploads(context, version, claims);
  return describeUploads(version.definition, answers, uploads, context.settings.baseUrl);
}

/**
 * The PNGs of the drawn signatures in described answers, by field id, to be shown to who has drawn them. Empty where
 * one can't be read now, or is larger than a page should carry: its name stands for it.
 */
export async function signaturesIn(
  { uploads, log }: ServiceContext,
  { fields }: FormDefinition,
  answers: Answers,
): Promise<Record<string, Uint8Array>> {
  const pictures: Record<string, Uint8Array> = {};
  let room = MAX_SHOWN_BYTES;
  for (const { id, type } of fields) {
    const answer = ownValue(answers, id);
    if (type !== 'signature' || !isShownPicture(answer) || answer.size > room) continue;
    room -= answer.size;
    try {
      const content = await uploads.get(answer.upload_id);
      if (content === undefined) continue;
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) chunks.push(chunk);
      pictures[id] = Buffer.concat(chunks);
    } catch (error) {
      log.warn({ err: error }, 'Could not read a signature; the page shows its name');
    }
  }
  return pictures;
}

/** Many drawn signatures, and little beside the page's own memory. */
const MAX_SHOWN_BYTES = 512 * 1024;

function isShownPicture(answer: Json | undefined): answer is { upload_id: string; size: number } {
  return (
    isObject(answer) &&
    typeof answer.upload_id === 'string' &&
    typeof answer.size === 'number' &&
    answer.content_type === SIGNATURE_TYPE
  );
}

/** The address under which an upload is read back, with a key. */
function uploadUrl(baseUrl: string, uploadId: string): string {
  return `${baseUrl}/v1/uploads/${uploadId}`;
}

async function knownUploads(
  { database }: ServiceContext,
  { formId, corrects }: VersionWithFiles,
  claims: Claim[],
): Promise<Map<string, Upload>> {
  const ids = [...new Set(claims.map(({ id }) => id))];
  const found = await findUnclaimedUploads(database, formId, ids, corrects?.id);
  return new Map(found.map((upload) => [upload.id, upload]));
}

function claimsIn(definition: FormDefinition, answers: Answers, root: string): Claim[] {
  const claims: Claim[] = [];
  for (const field of definition.fields) {
    const { id: fieldId } = field;
    if (uploadLimits(field) === undefined || !Object.hasOwn(answers, fieldId)) continue;
    const answer = answers[fieldId];
    const files = Array.isArray(answer) ? answer : [answer];
    for (const [index, file] of files.entries()) {
      const id = uploadIdOf(file);
      const place = Array.isArray(answer) ? `${root}.${fieldId}.${index}` : `${root}.${fieldId}`;
      if (id !== undefined) claims.push({ id, fieldId, path: `${place}.upload_id` });
    }
  }
  return claims;
}

function describeUploads(
  definition: FormDefinition,
  answers: Answers,
  uploads: Map<string, Upload>,
  baseUrl: string,
): Answers {
  const describe = (file: Json): Json => {
    const upload = uploads.get(uploadIdOf(file) ?? '');
    return upload === undefined ? file : fileAnswer(upload, baseUrl);
  };
  const described = { ...answers };
  for (const field of definition.fields) {
    const { id } = field;
    const answer = ownValue(answers, id);
    if (uploadLimits(field) === undefined || answer === undefined) continue;
    described[id] = Array.isArray(answer) ? answer.map(describe) : describe(answer);
  }
  return described;
}

function fileAnswer(upload: Upload, baseUrl: string): JsonObject {
  return {
    upload_id: upload.id,
    filename: upload.filename,
    content_type: upload.contentType,
    size: upload.size,
    sha256: upload.sha256,
    url: uploadUrl(baseUrl, upload.id),
  };
}

function uploadIdOf(file: Json | undefined): string | undefined {
  return isObject(file) && typeof file.upload_id === 'string' ? file.upload_id : undefined;
}

/** The version of a form that the answers are for, and the submission that they correct, whose files they may name. */
export type VersionWithFiles = { formId: string; definition: FormDefinition; corrects?: { id: string } };

export type ClaimedUploads = { answers: Answers; uploadIds: string[]; violations: Violation[] };

/** One place in the answers that names an upload. */
type Claim = { id: string; fieldId: string; path: string };

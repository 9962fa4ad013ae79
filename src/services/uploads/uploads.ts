import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  type CreateUploadRequest,
  type UploadFileRequest,
  UploadFileRequestSchema,
  UploadSchema,
  type UploadsService,
} from '../../../gen/headlessforms/v1/uploads_pb.js';
import { checkOrigin } from '../../domain/addresses/origins.ts';
import { namedInputs } from '../../domain/answers/answer-texts.ts';
import { failed, invalid, notFound } from '../../domain/errors/failure.ts';
import { custom, type Violation } from '../../domain/errors/violations.ts';
import { isShown } from '../../domain/fields/field.ts';
import type { UploadLimits } from '../../domain/fields/field-type.ts';
import { MAX_FILE_BYTES } from '../../domain/fields/file.ts';
import { uploadLimits } from '../../domain/fields/index.ts';
import { acceptsFile } from '../../domain/fields/media-types.ts';
import { isId, isKeyless, newId } from '../../domain/ids.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { MAX_FILENAME_LENGTH } from '../../domain/limits/limits.ts';
import { readFileLink } from '../../domain/links.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { codeNeeded } from '../../domain/sessions/failures.ts';
import { callerOf } from '../../rpc/context.ts';
import type { IdempotencyKey } from '../../store/idempotency-keys.ts';
import { addKeylessBytes } from '../../store/keyless-storage.ts';
import { keepFile, planFileRemoval } from '../../store/removal/removals.ts';
import { findAnyUpload, findUpload, insertUpload, type Upload } from '../../store/uploads.ts';
import type { ServiceContext } from '../context.ts';
import {
  type LiveVersion,
  type PublishedForm,
  publishedForm,
  refuseIfClosed,
  sessionsForm,
} from '../forms/form-access.ts';
import { visitOfCorrection } from '../hosted/resolve-visit.ts';
import { findStanding } from '../hosted/respondents.ts';
import { keepReply, withKeptReply } from '../idempotency.ts';
import { type Reservation, strangerAddress } from '../limits/keyless-storage.ts';
import { anySession, openSession, pageIdOf } from '../open-session.ts';
import { requireFound } from '../request-values.ts';
import { mediaTypeOfFile, safeFilename } from './received-file.ts';

/** Takes files for the file fields of published forms, and gives them back. */
export function uploadsService(context: ServiceContext): ServiceImpl<typeof UploadsService> {
  const { database, forms, secretKey, now, audit } = context;
  return {
    createUpload: (request, call) => takeFile(context, toStream(request), call),
    uploadFile: (requests, call) => takeFile(context, requests, call),

    /** Streams a file of the caller's project. It can be read once a submission has claimed it. */
    async *getUpload({ uploadId }, call) {
      const { projectId } = callerOf(call);
      const upload = await requireFound('upl', uploadId, () => findUpload(database, projectId, uploadId));
      // The rows of a deleted form are removed a little later than the form.
      if ((await forms.find(upload.formId)) === undefined) throw notFound('upload');
      audit.note(call, { resource: uploadId, formId: upload.formId });
      yield* readClaimed(context, upload);
    },

    /** Streams the file that a signed link names. */
    async *getLinkedUpload({ token }, call) {
      const noCall = { nextCall: NextCall.NONE };
      const link = readFileLink(secretKey, token, now());
      if (!link.ok && link.reason === 'invalid') {
        throw failed(Reason.INVALID_TOKEN, 'The link is not valid', noCall);
      }
      const form = link.ok ? await forms.find(link.formId) : undefined;
      if (!link.ok || (form !== undefined && form.ownerEpoch !== link.ownerEpoch)) {
        throw failed(Reason.EXPIRED, 'The link has expired', noCall);
      }
      const upload = await findAnyUpload(database, link.uploadId);
      const isThere = upload?.formId === link.formId && upload.submissionId !== null;
      if (!isThere || form === undefined) throw failed(Reason.DELETED, 'The file was deleted');
      const { id: resource, projectId, formId } = upload;
      audit.note(call, { projectId, resource, formId });
      yield* readClaimed(context, upload);
    },
  };
}

/**
 * Nothing of a file is read that its form would not take. It arrives on disk, and is kept under the same id in
 * the upload store before its row is stored, so that a row never names a file that is not there; what has no row an
 * hour later is removed.
 */
async function takeFile(context: ServiceContext, parts: AsyncIterable<Part>, call: HandlerContext) {
  const createdAt = new Date(context.now());
  await using file = context.spool.open(newId('upl', createdAt.getTime()));
  using opened = new DisposableStack();
  let target: OpenTarget | undefined;
  let field: FileField | undefined;
  const sent = create(UploadFileRequestSchema);
  for await (const part of parts) {
    if (target === undefined) {
      target = await openTarget(context, part, call, opened);
      sent.target = part.target;
      sent.browser = part.browser ?? '';
    }
    if (part.fieldId !== '') field = fileField(target, part.fieldId);
    if (part.filename.length > MAX_FILENAME_LENGTH)
      throw invalid([{ path: 'filename', code: 'too_big', message: LONG_NAME }]);
    if (part.filename !== '') sent.filename = part.filename;
    if (part.idempotencyKey !== '') sent.idempotencyKey = part.idempotencyKey;
    refuseTooLarge(file.size + part.content.length, field);
    await target.room?.add(part.content.length);
    await file.write(part.content);
  }
  if (target === undefined) throw invalid([custom('', 'Expected a form or a session')]);
  field ??= fileField(target, '');
  refuseTooLarge(file.size, field);

  const { id, path, size } = file;
  const filename = safeFilename(sent.filename);
  const contentType = await mediaTypeOfFile(file.start, filename);
  const violations = fileProblems(field.limits, { filename, contentType, size });
  if (violations.length > 0) throw invalid(violations);

  const sha256 = file.finish();
  sent.fieldId = field.id;
  sent.content = Buffer.from(sha256, 'hex');
  const { id: formId, projectId } = target.form;
  const facts = { filename, contentType, size, sha256, createdAt };
  const keyless = target.room !== undefined;
  const upload: Upload = { id, projectId, formId, fieldId: field.id, ...facts, keyless, submissionId: null };
  const { room } = target;
  const repeatable = {
    request: sent,
    schema: UploadFileRequestSchema,
    about: id,
    isReadAgain: true,
    async again(first: string) {
      const stored = await findUpload(context.database, projectId, first);
      if (stored === null) throw notFound('upload');
      return { upload: uploadToMessage(stored) };
    },
    // The version before listed what counts.
    wasSame: async ({ requestFingerprint }: IdempotencyKey) =>
      requestFingerprint === fingerprint({ form_id: formId, field: upload.fieldId, filename, sha256 }),
  };
  return await withKeptReply(context, call, repeatable, async () => {
    // A store can keep what it says it could not, and the row may be stored though its commit was not heard of.
    await planFileRemoval(context.database, id);
    await context.uploads.put(id, { path, size, sha256 });
    const reply = await context.database.transaction(async (tx) => {
      await insertUpload(tx, upload);
      if (keyless) await addKeylessBytes(tx, { formId, projectId, bytes: size });
      if (!(await keepFile(tx, id)))
        throw failed(Reason.UNAVAILABLE, 'The file took too long; send it again');
      return keepReply(tx, call, { upload: uploadToMessage(upload) });
    });
    room?.keep();
    return reply;
  });
}

const LONG_NAME = `Expected at most ${MAX_FILENAME_LENGTH} characters`;

/** Streams a file that the caller may read, once a submission has claimed it. */
export async function* readClaimed(context: ServiceContext, upload: Upload): AsyncIterable<FileChunk> {
  if (upload.submissionId === null) throw notFound('upload');
  const content = await context.uploads.get(upload.id);
  if (content === undefined) throw new Error(`The bytes of ${upload.id} are missing from the upload store`);
  let known: { upload?: ReturnType<typeof uploadToMessage> } = { upload: uploadToMessage(upload) };
  for await (const chunk of content) {
    yield { ...known, content: chunk };
    known = {};
  }
}

/** What is known of a file, as the RPCs return it. */
export function uploadToMessage(upload: Upload): MessageInitShape<typeof UploadSchema> {
  return rowToMessage(UploadSchema, upload, {});
}

/** What is known of the file comes with its first chunk. */
type FileChunk = { upload?: MessageInitShape<typeof UploadSchema>; content: Uint8Array };

async function* toStream<T>(message: T): AsyncGenerator<T> {
  yield message;
}

/** What a file is for, if it takes files now. */
async function openTarget(
  context: ServiceContext,
  part: Part,
  call: HandlerContext,
  opened: DisposableStack,
): Promise<OpenTarget> {
  const target = await targetOf(context, part, call);
  const { form } = target;
  refuseIfClosed(form, context.now());
  if (isKeyless(form)) {
    throw invalid([custom('content', 'Forms made without a key take no files')]);
  }
  const stranger = strangerAddress(call, form.projectId);
  if (stranger === undefined) return { ...target, room: undefined };
  const room = opened.use(context.keylessStorage.reserve(form.projectId, stranger));
  await room.add(0);
  return { ...target, room };
}

function fileField({ version, byHuman }: Target, fieldId: string): FileField {
  const { fields } = version.definition;
  const { byName } = namedInputs(fields, [{ name: fieldId, values: [] }]);
  const field = fields.find(({ id }) => byName.has(id));
  const limits = field && uploadLimits(field);
  if (field && limits && (!byHuman || isShown(field))) return { id: field.id, limits };
  throw invalid([custom('field_id', 'There is no such file field')]);
}

/** Ends a file that is too large before the rest of it has come. */
function refuseTooLarge(size: number, field: FileField | undefined): void {
  if (size > MAX_FILE_BYTES) throw failed(Reason.TOO_LARGE, 'A file has at most 10 MiB');
  const maxBytes = field?.limits.maxBytes ?? MAX_FILE_BYTES;
  if (size <= maxBytes) return;
  throw invalid([{ path: 'content', code: 'too_big', message: `Must be at most ${maxBytes} bytes` }]);
}

/** Sessions are filled on the hosted page, by anyone who knows their id; forms from pages that may post to them. */
async function targetOf(
  context: ServiceContext,
  { target, browser = '' }: Part,
  call: HandlerContext,
): Promise<Target> {
  switch (target.case) {
    case 'formId': {
      const form = await publishedForm(context.forms, target.value);
      const { allowedOrigins, onePerRespondent } = form.version.definition.settings;
      checkOrigin(call.requestHeader, allowedOrigins, context.settings);
      const isStranger = strangerAddress(call, form.projectId) !== undefined;
      if (onePerRespondent === true && isStranger) throw codeNeeded(context.settings, form.id);
      return { form, version: form.version, byHuman: false };
    }
    case 'sessionId': {
      const page = { sessionId: target.value, browser, posted: false };
      if (isId('sub', target.value)) return { ...(await visitOfCorrection(context, page)), byHuman: true };
      const session = await anySession(context.database, target.value);
      const form = await sessionsForm(context.forms, session.formId);
      if (strangerAddress(call, form.projectId) !== undefined) {
        const { isNeeded } = await findStanding(context, { form, session }, browser);
        if (isNeeded) throw codeNeeded(context.settings, pageIdOf(session));
      }
      return { ...(await openSession(context, session)), byHuman: true };
    }
    case undefined:
      throw invalid([custom('', 'Expected a form or a session')]);
    default:
      return target satisfies never;
  }
}

function fileProblems({ accept }: UploadLimits, file: FileFacts): Violation[] {
  if (file.size === 0) return [{ path: 'content', code: 'too_small', message: 'The file is empty' }];
  if (acceptsFile(accept, file.contentType, file.filename)) return [];
  return [custom('content', `Expected ${accept?.join(', ')}; this is ${file.contentType}`)];
}

/** A request, or one of several. */
type Part = (CreateUploadRequest | UploadFileRequest) & { browser?: string };
type Target = { form: PublishedForm; version: LiveVersion; byHuman: boolean };
/** `room` is for what comes without a key of the project; what is refused gives it back. */
type OpenTarget = Target & { room: Reservation | undefined };
type FileField = { id: string; limits: UploadLimits };
type FileFacts = { filename: string; contentType: string; size: number };

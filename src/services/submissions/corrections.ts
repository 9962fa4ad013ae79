import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { compileForm } from '../../domain/answers/answers.ts';
import { expand } from '../../domain/answers/provenance.ts';
import { failed } from '../../domain/errors/failure.ts';
import { CORRECTION, readMailLink } from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import { findMailedLink } from '../../store/mail/mailed-links.ts';
import { findAnySubmission, type Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import type { LiveVersion } from '../forms/form-access.ts';

/** The submission that a token lets its sender correct, as far as it was not yet. Throws INVALID_TOKEN. */
export async function correctableWith(
  { database, verifyingKeys, now }: ServiceContext,
  token: string,
): Promise<Submission> {
  const read = readMailLink(verifyingKeys, token, now());
  const isStored =
    read.ok &&
    read.link.purpose === CORRECTION &&
    (await findMailedLink(database, hashSecret(token))) !== null;
  const submission = isStored ? await findAnySubmission(database, read.link.address) : null;
  if (submission === null) throw notCorrectable();
  return submission;
}

/** A link corrects nothing, or not any more. */
export function notCorrectable() {
  return failed(Reason.INVALID_TOKEN, 'The link is not valid', { nextCall: NextCall.NONE });
}

/** What a link corrects was corrected, by it or by another. */
export function corrected() {
  return failed(Reason.TOKEN_USED, 'The response has been corrected', { nextCall: NextCall.NONE });
}

/**
 * The version that a submission answers, as its sender corrects it: what others answered is hidden, and passes on. What
 * somebody prefilled is theirs, as long as it was left so.
 */
export async function versionToCorrect(
  { forms }: ServiceContext,
  submission: Submission,
): Promise<LiveVersion> {
  const version = await forms.version(submission.versionId);
  const { definition } = version;
  const origins = expand(submission.provenance ?? [], Object.keys(submission.answers), '');
  const isOwn = (id: string) => ['human', 'default'].includes(origins.get(id)?.by ?? 'human');
  const fields = definition.fields.map((field) => (isOwn(field.id) ? field : { ...field, hidden: true }));
  return { ...version, ...compileForm({ ...definition, fields }), corrects: submission };
}

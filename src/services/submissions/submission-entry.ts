import { Code } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { Answers } from '../../domain/answers/answers.ts';
import { submissionPayload } from '../../domain/events/payload.ts';
import { newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json.ts';
import { failed, invalid } from '../../rpc/errors.ts';
import type { NewSubmission } from '../../store/submission-insert.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, recountIfAlmostFull } from '../forms/form-gate.ts';
import type { LiveVersion } from '../forms/form-reader.ts';

/**
 * Makes the row of a submission out of checked answers, and the event that announces it.
 *
 * Spam has no event: it is stored, and nobody is told. `at` is in milliseconds.
 */
export function newSubmission(entry: Entry, at: number): NewSubmission {
  const { form, version, session, answers, source, byHuman = false, spam = false, idempotency } = entry;
  const createdAt = new Date(at);
  const facts = {
    id: newId('sub', at),
    formId: form.id,
    sessionId: session?.id ?? null,
    source,
    metadata: session?.metadata ?? {},
    createdAt,
  };
  const type = byHuman ? 'submission.completed' : 'submission.created';
  const event = { id: newId('evt', at), at: createdAt };
  const announced = { ...facts, formVersionId: version.id, formCreatedBy: form.createdBy, byHuman };
  return {
    ...facts,
    answers,
    projectId: form.projectId,
    versionId: version.id,
    status: spam ? 'spam' : 'accepted',
    idempotencyKey: idempotency?.key ?? null,
    requestFingerprint: idempotency?.fingerprint ?? null,
    uploadIds: entry.uploadIds ?? [],
    event: spam ? null : { id: event.id, type, body: submissionPayload(event, announced) },
  };
}

/**
 * Stores a submission with its event, and gives the id that counts: its own, or that of the first
 * submission that the same request with the same idempotency key made.
 *
 * Throws `ALREADY_EXISTS` if the key was used for another request, `FAILED_PRECONDITION` if the
 * session has been submitted or has expired, and `INVALID_ARGUMENT` if a file went to another. Of any number of calls at once, one makes the submission.
 */
export async function storeSubmission(
  context: ServiceContext,
  form: PublishedForm,
  row: NewSubmission,
): Promise<string> {
  const written = await context.writer.write(row);
  switch (written.outcome) {
    case 'stored':
      recountIfAlmostFull(context.forms, form);
      return row.id;
    case 'duplicate':
      return repeated(written.submissionId, written.fingerprint === row.requestFingerprint);
    case 'session_submitted':
      throw alreadySubmitted(written.submissionId);
    case 'session_expired':
      throw expired();
    case 'upload_taken':
      throw invalid([
        { path: 'answers', code: 'custom', message: 'A file has just been used by another submission' },
      ]);
    default:
      return written satisfies never;
  }
}

/** The first submission made with an idempotency key, if it was the same request. */
export function repeated(firstId: string, same: boolean): string {
  if (same) return firstId;
  throw failed(Reason.CONFLICT, 'The idempotency key was used for another request', {
    code: Code.AlreadyExists,
  });
}

/** The session has a submission already. */
export function alreadySubmitted(submissionId: string) {
  return failed(Reason.CONFLICT, 'This session has already been submitted', { submissionId });
}

/** The session's time is over. */
export function expired() {
  return failed(Reason.EXPIRED, 'This session has expired');
}

/** What a submission is made of. The answers are checked, and name files as they are to be read back. */
export type Entry = {
  form: PublishedForm;
  version: LiveVersion;
  answers: Answers;
  uploadIds?: string[];
  source: string;
  session?: { id: string; metadata: JsonObject };
  /** Whether a human completed it on the hosted page. */
  byHuman?: boolean;
  spam?: boolean;
  idempotency?: { key: string; fingerprint: string } | undefined;
};

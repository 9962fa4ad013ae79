import type { HandlerContext } from '@connectrpc/connect';
import type { Answers } from '../../domain/answers/answers.ts';
import { invalid } from '../../domain/errors/failure.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { MAX_SOURCE_LENGTH } from '../../domain/limits/limits.ts';
import { callerIfAny } from '../../rpc/context.ts';
import { findRepeatedSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { type Idempotency, readIdempotency, replayAfterRefusal, withinContent } from '../idempotency.ts';
import { textProblems } from '../request-values.ts';
import { acceptAnswers, checkSize, type Entry } from './accept-answers.ts';

/**
 * Reads what a request says.
 *
 * Throws `INVALID_ARGUMENT` for what could not be stored, and `RESOURCE_EXHAUSTED` for more than a
 * form made without a key takes. Whether the answers fit the form is checked later.
 */
export function readRequest(
  request: SubmittedContent,
  form: PublishedForm,
  call: HandlerContext,
): ReadRequest {
  const { answers, honeypot = '', idempotencyKey = '' } = request;
  const source = readSource(request.source);
  checkSize(form, { source: request.source, answers });

  const read = { answers, source, spam: honeypot !== '' };
  const content = { source: read.source, answers: answers ?? null };
  const given = readIdempotency(idempotencyKey, content);
  const isKeyless = callerIfAny(call)?.keyId === undefined;
  return { ...read, idempotency: given && isKeyless ? withinContent(given) : given };
}

/** Where answers come from in their sender's words; `api` if they are none. Throws INVALID for what can't be stored. */
export function readSource(source = ''): string {
  const violations = textProblems(source, 'source', { max: MAX_SOURCE_LENGTH, code: 'invalid_string' });
  if (violations.length > 0) throw invalid(violations);
  return source === '' ? DEFAULT_SOURCE : source;
}

/** Checks and stores a submission; a repeated one gets its first answer. */
export async function acceptRequest(
  context: ServiceContext,
  form: PublishedForm,
  request: ReadRequest,
  call: Entry['call'],
): Promise<AcceptedRequest> {
  return replayAfterRefusal(
    request.idempotency,
    async () => {
      const accepted = await acceptAnswers(context, { form, version: form.version, call, ...request });
      return { submissionId: accepted.submissionId, answers: accepted.submission.answers };
    },
    async (key) => {
      const first = await findRepeatedSubmission(context.database, form.id, key);
      if (first === null) return null;
      const { id: submissionId, requestFingerprint } = first;
      return { fingerprint: requestFingerprint, submissionId, made: () => ({ submissionId, answers: {} }) };
    },
  );
}

const DEFAULT_SOURCE = 'api';

/** What the requests that submit answers to a form have in common, and what some of them have. */
type SubmittedContent = {
  answers?: JsonObject | undefined;
  source?: string;
  honeypot?: string;
  idempotencyKey?: string;
};

/** A request as it is to be checked: the answers are as they came. */
export type ReadRequest = {
  answers: JsonObject | undefined;
  source: string;
  spam: boolean;
  idempotency: Idempotency | undefined;
};

/** The answers are empty if the submission is an earlier call's. */
export type AcceptedRequest = { submissionId: string; answers: Answers };

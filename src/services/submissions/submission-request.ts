import { ConnectError } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { CreateSubmissionRequest } from '../../../gen/forms/v1/submissions_pb.js';
import type { Answers } from '../../domain/answers/answers.ts';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import { fingerprint } from '../../domain/canonical.ts';
import type { JsonObject } from '../../domain/json.ts';
import { jsonProblems, textProblem } from '../../domain/text.ts';
import type { Violation } from '../../domain/violations.ts';
import { failed, invalid } from '../../rpc/errors.ts';
import { findRepeatedSubmission } from '../../store/submissions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { acceptAnswers, checkSize, repeated } from './accept-answers.ts';

/**
 * Reads what a request says, whether it brings answers or the inputs of an HTML form.
 *
 * Throws `INVALID_ARGUMENT` for what could not be stored, and `RESOURCE_EXHAUSTED` for more than a
 * form made without a key takes. Whether the answers fit the form is not asked here.
 */
export function readRequest(request: Partial<CreateSubmissionRequest>, form: PublishedForm): ReadRequest {
  const { inputs = [], source = '', honeypot = '', idempotencyKey = '' } = request;
  if (inputs.length > 0 && request.answers !== undefined) {
    throw invalid([{ path: 'answers', code: 'custom', message: 'Expected either answers or inputs' }]);
  }
  const answers = inputs.length > 0 ? readInputs(form.version.definition, inputs) : request.answers;
  const violations = sourceProblems(source);
  if (violations.length > 0) throw invalid(violations);
  checkSize(form, { source, answers });

  const read = { answers, source: source === '' ? DEFAULT_SOURCE : source, spam: honeypot !== '' };
  return idempotencyKey === '' ? read : { ...read, idempotency: idempotencyOf(idempotencyKey, read) };
}

/**
 * Checks and stores a submission; a repeated one gets its first answer.
 *
 * That holds also where the call would be refused by now: the form may have been closed, or filled,
 * by the very call that is repeated because its answer was lost.
 */
export async function acceptRequest(
  context: ServiceContext,
  form: PublishedForm,
  request: ReadRequest,
): Promise<AcceptedRequest> {
  const { idempotency } = request;
  try {
    const accepted = await acceptAnswers(context, { form, version: form.version, ...request });
    return { submissionId: accepted.submissionId, answers: accepted.submission.answers };
  } catch (refusal) {
    if (idempotency === undefined || !(refusal instanceof ConnectError)) throw refusal;
    const first = await findRepeatedSubmission(context.database, form.id, idempotency.key);
    if (first === null) throw refusal;
    const same = first.requestFingerprint === idempotency.fingerprint;
    return { submissionId: repeated(first.id, same), answers: {} };
  }
}

function sourceProblems(source: string): Violation[] {
  const problem = textProblem(source);
  if (problem !== undefined) return [{ path: 'source', code: 'invalid_string', message: problem }];
  if (source.length <= MAX_SOURCE) return [];
  return [{ path: 'source', code: 'too_big', message: `Must be at most ${MAX_SOURCE} characters` }];
}

function idempotencyOf(
  key: string,
  content: { answers: JsonObject | undefined; source: string },
): Idempotency {
  if (key.length > MAX_IDEMPOTENCY_KEY || textProblem(key) !== undefined) {
    const message = `Expected 1 to ${MAX_IDEMPOTENCY_KEY} characters`;
    throw failed(Reason.BAD_REQUEST, `Idempotency-Key: ${message}`, {
      violations: [{ path: 'Idempotency-Key', code: 'invalid_string', message }],
    });
  }
  const problems = jsonProblems(content.answers, 'answers');
  if (problems.length > 0) throw invalid(problems);
  return { key, fingerprint: fingerprintOf(content) };
}

/** Messages can hold numbers that JSON has no words for. */
function fingerprintOf({
  answers = null,
  source,
}: {
  answers: JsonObject | null | undefined;
  source: string;
}) {
  try {
    return fingerprint({ source, answers });
  } catch {
    throw invalid([{ path: 'answers', code: 'custom', message: 'Expected JSON' }]);
  }
}

const DEFAULT_SOURCE = 'api';
const MAX_SOURCE = 200;
const MAX_IDEMPOTENCY_KEY = 255;

/** A request as it is to be checked: the answers are as they came. */
export type ReadRequest = {
  answers: JsonObject | undefined;
  source: string;
  spam: boolean;
  idempotency?: Idempotency;
};

/** The answers are empty if the submission is an earlier call's. */
export type AcceptedRequest = { submissionId: string; answers: Answers };

type Idempotency = { key: string; fingerprint: string };

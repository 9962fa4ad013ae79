import { z } from 'zod';
import { type CheckAnswersResponse, SubmissionsService } from '../../../gen/forms/v1/submissions_pb.js';
import { violationFromMessage } from '../../domain/errors/violation-message.ts';
import { violationsOf } from '../../domain/errors/violations.ts';
import { isObject, type JsonObject } from '../../domain/json/json.ts';
import { limitsOf } from '../../domain/limits/message-limits.ts';
import { readJson } from '../../http/body.ts';
import type { Call } from '../../http/call.ts';
import { contentError, HttpError, httpErrorOf } from '../../http/errors.ts';
import { formTypes, isFormPost } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import { customRoute, type Exchange, idOf, type Route, tagged } from '../route.ts';
import { idempotencyKey, idempotencyKeyOf, jsonObject } from '../schemas.ts';
import { acceptFormPost } from './form-post.ts';

const { method: rpcs } = SubmissionsService;

/** What is posted to a form. */
const submissionBody = z
  .strictObject({
    answers: jsonObject.describe('The answers by field id.'),
    source: z
      .string()
      .exactOptional()
      .meta({ maxLength: 200, description: 'Where they come from; default `api`.' }),
  })
  .meta({ id: 'SubmissionInput' });

/** What is posted to the demo form: the body of every form, or its three answers without an envelope. */
const demoBody = z.union([
  submissionBody,
  z
    .looseObject({
      name: z.unknown().meta({ type: 'string', maxLength: 200 }).optional(),
      email: z.unknown().meta({ type: 'string', format: 'email' }),
      message: z.unknown().meta({ type: 'string', minLength: 1, maxLength: 10_000 }),
      source: submissionBody.shape.source,
    })
    .meta({ id: 'DemoInput', required: ['email', 'message'], additionalProperties: false }),
]);

const acceptedReply = z
  .object({
    ok: z.literal(true),
    submission_id: z.string().meta({ examples: ['sub_01jd3kvz8nf9t8x1v0c9m2q4ra'] }),
  })
  .meta({ id: 'Accepted' });

const submitting = {
  headers: { 'Idempotency-Key': idempotencyKey },
  body: submissionBody,
  status: 201,
  reply: acceptedReply,
};

/** The routes that take submissions. */
export const submitRoutes: Route[] = tagged('Submissions', [
  customRoute('post', '/api/forms/:id/submissions', rpcs.createSubmission, {
    ...submitting,
    name: 'submit',
    summary: 'Submit answers to a published form, as JSON or as an HTML form',
    forms: formTypes,
    errors: [401, 409, 410],
    handle: (exchange) =>
      isFormPost(exchange.request) ? acceptFormPost(exchange) : acceptJson(exchange, publicCalls),
  }),
  customRoute('post', '/v1/forms/:id/submissions', rpcs.createManagedSubmission, {
    ...submitting,
    name: 'createSubmission',
    summary: 'Submit answers to a published form of the key’s project',
    errors: [409, 410],
    handle: (exchange) => acceptJson(exchange, managedCalls),
  }),
  customRoute('post', '/api/demo', rpcs.createDemoSubmission, {
    name: 'submitDemo',
    summary: 'Submit to the demo form; its operator gets a mail',
    headers: { 'Idempotency-Key': idempotencyKey },
    body: demoBody,
    status: 201,
    errors: [409],
    reply: acceptedReply,
    handle: acceptDemo,
  }),
]);

/** Forms of every project. */
const publicCalls: SubmitCalls = {
  create: (call, request) => call(rpcs.createSubmission, request),
  check: (call, request) => call(rpcs.checkAnswers, request),
};

/** Forms of the key's project. */
const managedCalls: SubmitCalls = {
  create: (call, request) => call(rpcs.createManagedSubmission, request),
  check: (call, request) => call(rpcs.checkManagedAnswers, request),
};

/**
 * The hot path. It passes the answers on without looking into them. Where the body has other problems they are
 * only checked, so that all problems are reported at once.
 */
async function acceptJson(exchange: Exchange, { create, check }: SubmitCalls): Promise<void> {
  const { call, request, response } = exchange;
  const formId = idOf(request);
  const key = idempotencyKeyOf(request);
  const { value, problems } = await readJson(request, limitsOf(rpcs.createSubmission));
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(value);
  if (body?.success !== true) {
    const own = body ? violationsOf(body.error, value) : problems;
    const answers = body && answersIn(value);
    const { violations } = await check(call, { formId, ...(answers && { answers }) });
    throw contentError([...own, ...violations.map(violationFromMessage)], value);
  }
  const { answers, source = '' } = body.data;
  const { submissionId } = await create(call, { formId, answers, source, idempotencyKey: key });
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** The answers of a body that has other problems. */
function answersIn(body: unknown): JsonObject | undefined {
  return isObject(body) ? submissionBody.shape.answers.safeParse(body.answers).data : undefined;
}

async function acceptDemo({ call, request, response }: Exchange): Promise<void> {
  const key = idempotencyKeyOf(request);
  const { value, problems } = await readJson(request, limitsOf(rpcs.createSubmission));
  const flat = isObject(value) && !Object.hasOwn(value, 'answers');
  const nested = flat ? nestedOf(value) : value;
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(nested);
  if (body?.success !== true) throw contentError(body ? violationsOf(body.error, nested) : problems, nested);
  const { answers, source = '' } = body.data;
  const input = { answers, source, idempotencyKey: key };
  const { submissionId } = await call(rpcs.createDemoSubmission, input).catch((error: unknown) => {
    throw flat ? withFlatPaths(error) : error;
  });
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** A flat body, `{name, email, message}`, in the envelope of every other form. */
function nestedOf({ source, ...answers }: Record<string, unknown>): unknown {
  return source === undefined ? { answers } : { answers, source };
}

/** The same error with the paths of a flat body. */
function withFlatPaths(error: unknown): HttpError {
  const { reason, message, details, headers, cause } = httpErrorOf(error);
  const flat = (text: string) => text.replace(/^answers\./, '');
  return new HttpError(reason, flat(message), {
    details: details.map((detail) => ({ ...detail, path: flat(detail.path) })),
    headers,
    cause,
  });
}

/** What a tier of the interface calls to accept answers, and to check them. */
type SubmitCalls = {
  create: (call: Call, request: SubmitRequest) => Promise<{ submissionId: string }>;
  check: (call: Call, request: CheckRequest) => Promise<CheckedAnswers>;
};
type SubmitRequest = { formId: string; answers: JsonObject; source: string; idempotencyKey: string };
type CheckRequest = { formId: string; answers?: JsonObject };
type CheckedAnswers = Pick<CheckAnswersResponse, 'violations'>;

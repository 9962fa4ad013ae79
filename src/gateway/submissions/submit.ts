import { z } from 'zod';
import { SubmissionsService } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { violationFromMessage } from '../../domain/errors/failure.ts';
import { violationsOf } from '../../domain/errors/violations.ts';
import { isObject, type JsonObject } from '../../domain/json/json.ts';
import { optional } from '../../domain/json/optional.ts';
import { MAX_SOURCE_LENGTH } from '../../domain/limits/limits.ts';
import { limitsOf } from '../../domain/methods.ts';
import { readJson } from '../../http/body.ts';
import { dropUndecodableQuery } from '../../http/charset.ts';
import { contentError, withPaths } from '../../http/errors.ts';
import { formTypes, isFormPost } from '../../http/multipart.ts';
import { sendJson } from '../../http/reply.ts';
import type { OneOf } from '../../http/rpc-client.ts';
import { flag, idempotencyKey, idempotencyKeyOf, jsonObject } from '../../http/schemas.ts';
import { customRoute, type Route, readQuery, tagged } from '../route.ts';
import type { RouteContext } from '../route-context.ts';
import { acceptFormPost } from './html-form.ts';

const { method: rpcs } = SubmissionsService;

/** What is posted to a form. */
const submissionBody = z
  .strictObject({
    answers: jsonObject.describe('The answers by field id.'),
    source: z
      .string()
      .exactOptional()
      .meta({ maxLength: MAX_SOURCE_LENGTH, description: 'Where they come from; default `api`.' }),
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
    submission_id: z
      .string()
      .meta({ examples: ['sub_01jd3kvz8nf9t8x1v0c9m2q4ra'] })
      .describe('Empty with `check=true`.'),
    ignored: optional(
      z.array(z.string()),
      'Of an HTML form’s post: the names of inputs that no field has, at most 20 of 64 characters.',
    ),
  })
  .meta({ id: 'Accepted' });

const submitting = {
  query: z.object({
    check: flag(
      'Whether to check the answers only: 200 if they would be accepted, else the same errors. Nothing is stored.',
    ),
  }),
  // The same type as when it is stored, so that generated clients need not tell the two apart.
  checked: acceptedReply,
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
    handle: (context) =>
      isFormPost(context.request) && !isCheck(context)
        ? acceptFormPost(context)
        : acceptJson(context, rpcs.createSubmission, rpcs.checkAnswers),
  }),
  customRoute('post', '/v1/forms/:id/submissions', rpcs.createManagedSubmission, {
    ...submitting,
    name: 'createSubmission',
    summary: 'Submit answers to a published form of the key’s project',
    errors: [409, 410],
    handle: (context) => acceptJson(context, rpcs.createManagedSubmission, rpcs.checkManagedAnswers),
  }),
  customRoute('post', '/api/demo', rpcs.createDemoSubmission, {
    name: 'submitDemo',
    summary: 'Submit to the demo form; its operator gets an email',
    headers: { 'Idempotency-Key': idempotencyKey },
    body: demoBody,
    status: 201,
    errors: [404, 409],
    reply: acceptedReply,
    handle: acceptDemo,
  }),
]);

/**
 * The hot path. It passes the answers on without looking into them. Where the body has other problems they are
 * only checked, so that all problems are reported at once.
 */
async function acceptJson(
  context: RouteContext,
  create: OneOf<typeof rpcs.createSubmission | typeof rpcs.createManagedSubmission>,
  check: OneOf<typeof rpcs.checkAnswers | typeof rpcs.checkManagedAnswers>,
): Promise<void> {
  const { id: formId, request, response } = context;
  const key = idempotencyKeyOf(request);
  const { value, problems } = await readJson(request, limitsOf(rpcs.createSubmission));
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(value);
  if (body?.success !== true) {
    const own = body ? violationsOf(body.error, value) : problems;
    const answers = body && answersIn(value);
    const { violations } = await context.call(check, { formId, ...(answers && { answers }) });
    throw contentError([...own, ...violations.map(violationFromMessage)], value);
  }
  const { answers, source = '' } = body.data;
  if (isCheck(context)) {
    const { violations } = await context.call(check, { formId, answers });
    if (violations.length > 0) throw contentError(violations.map(violationFromMessage), value);
    sendJson(response, 200, { ok: true, submission_id: '' });
    return;
  }
  const { submissionId } = await context.call(create, { formId, answers, source, idempotencyKey: key });
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** Whether a request asks only if the answers would be accepted. */
function isCheck({ request }: RouteContext): boolean {
  // Parameters that are unknown are ignored, as ever on these routes.
  dropUndecodableQuery(request);
  const { check } = request.query;
  return check !== undefined && readQuery({ query: { check } }, submitting.query).check;
}

/** The answers of a body that has other problems. */
function answersIn(body: unknown): JsonObject | undefined {
  return isObject(body) ? submissionBody.shape.answers.safeParse(body.answers).data : undefined;
}

async function acceptDemo(context: RouteContext): Promise<void> {
  const { request, response } = context;
  const key = idempotencyKeyOf(request);
  const { value, problems } = await readJson(request, limitsOf(rpcs.createSubmission));
  const flat = isObject(value) && !Object.hasOwn(value, 'answers');
  const nested = flat ? nestedOf(value) : value;
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(nested);
  if (body?.success !== true) throw contentError(body ? violationsOf(body.error, nested) : problems, nested);
  const { answers, source = '' } = body.data;
  const input = { answers, source, idempotencyKey: key };
  const { submissionId } = await context.call(rpcs.createDemoSubmission, input).catch((error: unknown) => {
    throw flat ? withPaths(error, (path) => path.replace(/^answers\./, '')) : error;
  });
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** A flat body, `{name, email, message}`, in the envelope of every other form. */
function nestedOf({ source, ...answers }: Record<string, unknown>): unknown {
  return source === undefined ? { answers } : { answers, source };
}

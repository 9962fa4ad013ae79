import { create } from '@bufbuild/protobuf';
import { EndingSchema, SubmissionStatus } from '../../gen/forms/v1/submissions_pb.js';
import { isObject, type JsonObject } from '../domain/json.ts';
import { violationsOf } from '../domain/violations.ts';
import { readJson } from './body.ts';
import { Refusal, refusalOf } from './errors.ts';
import { formTypes, isFormPost, readForm } from './form-body.ts';
import { callOptions, prefersJson, sendJson, sendPage } from './reply.ts';
import { type Exchange, idOf, type Operation, type Route, refuse, route } from './route.ts';
import { okReply, pageOf, textOrNull } from './schemas/common.ts';
import {
  acceptedReply,
  demoBody,
  idempotencyKey,
  submissionBody,
  submissionOf,
  submissionReply,
  submissionsQuery,
  submissionsReply,
} from './schemas/submissions.ts';

const tag = 'Submissions';

const submitting = {
  tag,
  headers: { 'Idempotency-Key': idempotencyKey },
  body: submissionBody,
  status: 201,
  errors: [409, 410],
  reply: acceptedReply,
} satisfies Partial<Operation>;

/** The routes of the interface's submissions, in its order, and those added to them. */
export const submissionRoutes: Route[] = [
  {
    method: 'post',
    path: '/api/forms/:id/submissions',
    operation: {
      ...submitting,
      name: 'submit',
      summary: 'Submit answers to a published form, as JSON or as an HTML form',
      access: 'public',
      forms: formTypes,
      errors: [...submitting.errors, 401],
    },
    handle: (exchange) =>
      isFormPost(exchange.request) ? acceptFormPost(exchange) : acceptJson(exchange, false),
  },
  {
    method: 'post',
    path: '/v1/forms/:id/submissions',
    operation: {
      ...submitting,
      name: 'createSubmission',
      summary: 'Submit answers to a published form of the key’s project',
      access: 'submissions:write',
    },
    handle: (exchange) => acceptJson(exchange, true),
  },
  {
    method: 'post',
    path: '/api/demo',
    operation: {
      name: 'submitDemo',
      tag,
      summary: 'Submit to the demo form; its operator gets a mail',
      access: 'public',
      body: demoBody,
      status: 201,
      reply: acceptedReply,
    },
    handle: acceptDemo,
  },
  route('get', '/v1/forms/:id/submissions', {
    name: 'listSubmissions',
    tag,
    summary: 'List a form’s submissions, newest first',
    access: 'submissions:read',
    query: submissionsQuery,
    call: ({ submissions }) => submissions.listSubmissions,
    input: ({ id, query }) => ({
      formId: id,
      ...pageOf(query),
      skip: query.offset ?? 0,
      sessionId: query.session_id ?? '',
      source: query.source ?? '',
      status: query.status === 'spam' ? SubmissionStatus.SPAM : SubmissionStatus.UNSPECIFIED,
      createdAfter: query.created_after,
      createdBefore: query.created_before,
    }),
    refused: ({ submissions }, id, options) =>
      submissions.listSubmissions({ formId: id, pageSize: -1 }, options),
    reply: submissionsReply,
    answer: ({ submissions, nextPageToken }) => ({
      submissions: submissions.map(submissionOf),
      next_cursor: textOrNull(nextPageToken),
    }),
  }),
  route('get', '/v1/submissions/:id', {
    name: 'getSubmission',
    tag,
    summary: 'Read one submission',
    access: 'submissions:read',
    call: ({ submissions }) => submissions.getSubmission,
    input: ({ id }) => ({ submissionId: id }),
    reply: submissionReply,
    answer: ({ submission }) => ({ submission: submissionOf(submission) }),
  }),
  route('delete', '/v1/submissions/:id', {
    name: 'deleteSubmission',
    tag,
    summary: 'Delete a submission with its event, deliveries and files',
    access: 'submissions:delete',
    call: ({ submissions }) => submissions.deleteSubmission,
    input: ({ id }) => ({ submissionId: id }),
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
];

/** The hot path: nothing here looks into the answers. */
async function acceptJson({ clients, request, response }: Exchange, managed: boolean): Promise<void> {
  const options = callOptions(request, response);
  const formId = idOf(request);
  const key = idempotencyKeyOf(request.headers['idempotency-key']);
  const { value, problems } = await readJson(request);
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(value);
  if (body?.success !== true) {
    const answers = body && answersIn(value);
    throw await refuse(
      'invalid',
      body ? violationsOf(body.error, value) : problems,
      () =>
        clients.submissions.createSubmission(
          { formId, answers: { ...answers, ...UNKNOWN }, managed },
          options,
        ),
      { ownAnswers: answers !== undefined },
    );
  }
  const { submissionId } = await clients.submissions.createSubmission(
    { formId, answers: body.data.answers, source: body.data.source ?? '', idempotencyKey: key, managed },
    options,
  );
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** The answers of a body that does not fit otherwise. */
function answersIn(body: unknown): JsonObject | undefined {
  return isObject(body) ? submissionBody.shape.answers.safeParse(body.answers).data : undefined;
}

/** A post of somebody's own HTML form: answered by a page or a redirect, unless JSON is preferred. */
async function acceptFormPost({ clients, request, response, pages }: Exchange): Promise<void> {
  const options = callOptions(request, response);
  const formId = idOf(request);
  const key = idempotencyKeyOf(request.headers['idempotency-key']);
  const inputs = await readForm(request, async ({ name, filename, content }) => {
    const { upload } = await clients.uploads
      .createUpload({ target: { case: 'formId', value: formId }, fieldId: name, filename, content }, options)
      .catch((error: unknown) => {
        throw refusalAt(`answers.${name}`, error);
      });
    return upload?.id;
  });
  const { submissionId, ending } = await clients.submissions.createSubmission(
    {
      formId,
      inputs: [...inputs].filter(([name]) => !controls.has(name)).map(([name, values]) => ({ name, values })),
      source: inputs.get('_source')?.[0] ?? '',
      honeypot: inputs.get('_gotcha')?.join('') ?? '',
      nextUrl: inputs.get('_next')?.[0] ?? '',
      idempotencyKey: key,
    },
    options,
  );
  if (prefersJson(request)) return sendJson(response, 201, { ok: true, submission_id: submissionId });
  if (ending?.redirectUrl) {
    response.statusCode = 303;
    response.setHeader('location', ending.redirectUrl);
    response.end();
    return;
  }
  sendPage(response, 201, pages.renderEnding(ending ?? create(EndingSchema), request));
}

/** Control names of an HTML form; no field can have them, since an id begins with a letter. */
const controls: ReadonlySet<string> = new Set(['_next', '_gotcha', '_source']);

async function acceptDemo({ clients, request, response }: Exchange): Promise<void> {
  const options = callOptions(request, response);
  const { value, problems } = await readJson(request);
  const flat = isObject(value) && !Object.hasOwn(value, 'answers');
  const nested = flat ? nestedOf(value) : value;
  const body = problems.length > 0 ? undefined : submissionBody.safeParse(nested);
  if (body?.success !== true) {
    throw await refuse('invalid', body ? violationsOf(body.error, nested) : problems, () =>
      clients.submissions.createDemoSubmission({ answers: UNKNOWN }, options),
    );
  }
  const { answers, source = '' } = body.data;
  const { submissionId } = await clients.submissions
    .createDemoSubmission({ answers, source }, options)
    .catch((error: unknown) => {
      throw flat ? refusalWithFlatPaths(error) : error;
    });
  sendJson(response, 201, { ok: true, submission_id: submissionId });
}

/** A flat body, `{name, email, message}`, as any other has it. */
function nestedOf({ source, ...answers }: Record<string, unknown>): unknown {
  return source === undefined ? { answers } : { answers, source };
}

function refusalWithFlatPaths(error: unknown): Refusal {
  const refusal = refusalOf(error);
  const details = refusal.details.map((detail) => ({
    ...detail,
    path: detail.path.replace(/^answers\./, ''),
  }));
  return new Refusal(refusal.reason, refusal.message.replace(/^answers\./, ''), { ...refusal, details });
}

/** A refusal of one file of a form's post, told at the input it came in. */
function refusalAt(path: string, error: unknown): Refusal {
  const refusal = refusalOf(error);
  if (refusal.reason !== 'invalid') return refusal;
  const details = refusal.details.map((detail) => ({ ...detail, path }));
  return new Refusal('invalid', refusal.message, { details });
}

function idempotencyKeyOf(header: string | string[] | undefined): string {
  if (header === undefined) return '';
  const key = idempotencyKey.safeParse(header);
  if (key.success) return key.data;
  const details = violationsOf(key.error, header, 'Idempotency-Key');
  throw new Refusal('bad_request', 'Idempotency-Key: Expected 1 to 255 characters', { details });
}

/** An answer that no service accepts: no field has an empty id. */
const UNKNOWN = { '': true };

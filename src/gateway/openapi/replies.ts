import { violationCodes } from '../../domain/errors/violations.ts';
import { type ErrorReason, errorReasons, HttpError } from '../../http/errors.ts';
import { nextCallNames } from '../../http/next-call.ts';
import type { Operation } from '../route.ts';

/** The errors that a route can answer, by status: those its parts imply, and its own. */
export function errorReplies(path: string, operation: Operation): Record<string, object> {
  const { rpc, body, bodyTypes, forms, errors = [] } = operation;
  const readsBody = body !== undefined || bodyTypes !== undefined || forms !== undefined;
  const codes = [
    ...errors,
    400,
    500,
    503,
    // A key that is given is checked on every route, whether it needs one or not.
    ...(rpc === undefined ? [] : [401, 429]),
    ...(path.includes('/:id') ? [404] : []),
    ...(readsBody ? [413, 415, 422] : []),
  ];
  return Object.fromEntries([...new Set(codes)].map((code) => [code, errorReply(code, operation)]));
}

/** The headers of a reply with this status. */
export function replyHeaders(status: number, { rpc, replyTypes }: Operation): object {
  const names: HeaderName[] = [
    'X-Request-Id',
    ...(rpc === undefined ? [] : (['RateLimit', 'RateLimit-Policy'] as const)),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(status === 303 ? (['Location'] as const) : []),
    ...(status === 200 && isFile(replyTypes) ? (['Content-Disposition'] as const) : []),
  ];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function isFile(replyTypes: Operation['replyTypes']): boolean {
  return replyTypes !== undefined && !replyTypes.includes('text/event-stream');
}

/** Every header that a reply can have, as a component. */
export const headers = {
  'X-Request-Id': header('Names the request in the log; one that came with it is kept.', true),
  RateLimit: header('How many calls are left, if they are limited: `"name";r=9;t=60`.'),
  'RateLimit-Policy': header('The limit of calls: `"name";q=10;w=60`.'),
  'Retry-After': header('When to call again, in seconds.', true),
  'WWW-Authenticate': header('What the key lacks: `Bearer error="insufficient_scope", scope="…"`.'),
  Location: header('The next page of the person who posted the form.', true),
  'Content-Disposition': header('The name to save the file under.', true),
};

/** What a browser that posted a form gets, unless it prefers JSON. */
export const page = { schema: { type: 'string', description: 'A page, for whoever posted an HTML form.' } };

type HeaderName = keyof typeof headers;

function header(description: string, required = false): object {
  return { description, ...(required && { required }), schema: { type: 'string' } };
}

function errorReply(status: number, operation: Operation): object {
  const { description, reason, message } = errorsByStatus[status] ?? fault;
  const details =
    reason === 'invalid' ? [{ path: 'answers.email', code: 'invalid_type', message: 'Required' }] : [];
  const example = new HttpError(reason, message, { details }).body;
  const schema = { $ref: '#/components/schemas/Error' };
  return {
    description,
    headers: replyHeaders(status, operation),
    content: { 'application/json': { schema, example }, ...(operation.forms && { 'text/html': page }) },
  };
}

const fault: DescribedError = {
  description: 'A fault of the service; the message holds the request id that is in the log',
  reason: 'internal',
  message: 'Internal error, request 01JD4X7Q2M',
};

/** Each status of an error in words, with one of its reasons as an example. */
const errorsByStatus: Record<number, DescribedError> = {
  400: {
    description: 'The request can’t be read',
    reason: 'bad_request',
    message: 'The body is not JSON: see line 1, column 14',
  },
  401: {
    description:
      'No key, a wrong key, a key without the scope, a wrong token, or an origin that may not post',
    reason: 'invalid_key',
    message: 'The API key is not valid',
  },
  404: {
    description: 'There is no such thing, or it is another project’s',
    reason: 'not_found',
    message: 'There is no such form',
  },
  409: {
    description: 'The state of the thing forbids it',
    reason: 'conflict',
    message: 'The session has been submitted',
  },
  410: {
    description: 'Expired, cancelled, closed, archived or deleted',
    reason: 'expired',
    message: 'The session has expired',
  },
  413: { description: 'Too large', reason: 'too_large', message: 'The request is too large' },
  415: {
    description: 'Another media type than the route reads',
    reason: 'media_type',
    message: 'Expected application/json',
  },
  422: {
    description: 'The request can be read but does not fit; `details` names all problems',
    reason: 'invalid',
    message: 'answers.email: Required',
  },
  429: {
    description: 'Too many calls; `Retry-After` says when to call again',
    reason: 'rate_limited',
    message: 'Too many calls',
  },
  500: fault,
  503: {
    description: 'Not available just now; `Retry-After` says when to call again',
    reason: 'unavailable',
    message: 'The service is overloaded',
  },
};

const detailSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', description: 'A dotted path into the input, such as `fields.0.id`.' },
    code: { type: 'string', enum: violationCodes },
    message: { type: 'string', description: 'What was expected.' },
    received: {
      type: 'string',
      description:
        'What came: a number, a text or the like as JSON, cut to a readable length; of lists and objects, and of ' +
        'what may be a secret, the type alone. Absent if nothing came.',
    },
  },
  required: ['path', 'code', 'message'],
};

/** The body of every error. */
export const errorSchema = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', enum: ['validation_failed', 'not_found', 'unauthorized', 'internal_error'] },
        message: { type: 'string' },
        details: { type: 'array', items: detailSchema },
        reason: { type: 'string', enum: errorReasons, description: 'The finer word beside the code.' },
        submission_id: { type: 'string', description: 'The submission that a session already has.' },
        retryable: {
          type: 'boolean',
          description: 'Whether the same request can succeed later without any change.',
        },
        retry_after: { type: 'integer', minimum: 1, description: 'When to send it again, in seconds.' },
        next_call: { type: 'string', enum: nextCallNames, description: 'What to call next.' },
        next: { type: 'string', description: 'The same in words.' },
      },
      required: ['code', 'message', 'details', 'reason', 'retryable', 'next_call', 'next'],
    },
  },
  required: ['error'],
};

type DescribedError = { description: string; reason: ErrorReason; message: string };

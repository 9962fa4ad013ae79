import { z } from 'zod';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type FailureReason, failed } from '../../domain/errors/failure.ts';
import { required } from '../../domain/errors/violations.ts';
import { errorBody, restErrorOf } from '../../http/errors.ts';
import type { Operation } from '../route.ts';
import type { Schemas } from './schemas.ts';

/** The errors that a route can answer, by status: those its parts imply, and its own. */
export function errorReplies(path: string, operation: Operation, schemas: Schemas): Record<string, object> {
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
  return Object.fromEntries([...new Set(codes)].map((code) => [code, errorReply(code, operation, schemas)]));
}

/** The headers of a reply with this status. */
export function replyHeaders(status: number, { rpc, replyTypes, notModified, reply }: Operation): object {
  const names: HeaderName[] = [
    'X-Request-Id',
    ...(rpc === undefined ? [] : (['RateLimit', 'RateLimit-Policy'] as const)),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(notModified && status < 400 ? (['ETag', 'Cache-Control'] as const) : []),
    ...(status === 200 && isList(reply) ? (['Link'] as const) : []),
    ...(status === 303 ? (['Location'] as const) : []),
    ...(status === 200 && isFile(replyTypes) ? (['Content-Disposition'] as const) : []),
  ];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function isList(reply: Operation['reply']): boolean {
  return reply instanceof z.ZodObject && 'next_cursor' in reply.shape;
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
  ETag: header('What `If-None-Match` takes.', true),
  'Cache-Control': header('How long the reply may be kept.', true),
  Link: header('The next page of a list, if there is one: `<?cursor=…>; rel="next"`.'),
  Location: header('The next page of the person who posted the form.', true),
  'Content-Disposition': header('The name to save the file under.', true),
};

/** What a browser that posted a form gets, unless it prefers JSON. */
export const page = { schema: { type: 'string', description: 'A page, for the sender of an HTML form.' } };

type HeaderName = keyof typeof headers;

function header(description: string, required = false): object {
  return { description, ...(required && { required }), schema: { type: 'string' } };
}

function errorReply(status: number, operation: Operation, schemas: Schemas): object {
  const { description, reason, message } = errorsByStatus[status] ?? fault;
  const violations = reason === Reason.INVALID ? [required('answers.email')] : [];
  const example = restErrorOf(failed(reason, message, { violations })).body;
  const schema = schemas.output(errorBody);
  return {
    description,
    headers: replyHeaders(status, operation),
    content: { 'application/json': { schema, example }, ...(operation.forms && { 'text/html': page }) },
  };
}

const fault: DescribedError = {
  description: 'A fault of the service; the message holds the request id that is in the log',
  reason: Reason.INTERNAL,
  message: 'Internal error, request 01JD4X7Q2M',
};

/** Each status of an error in words, with one of its reasons as an example. */
const errorsByStatus: Record<number, DescribedError> = {
  400: {
    description: 'The request can’t be read',
    reason: Reason.BAD_REQUEST,
    message: 'The body is not JSON: see line 1, column 14',
  },
  401: {
    description:
      'No key, a wrong key, a key without the scope, a wrong token, or an origin that may not post',
    reason: Reason.INVALID_KEY,
    message: 'The API key is not valid',
  },
  404: {
    description: 'There is no such thing, or it is another project’s',
    reason: Reason.NOT_FOUND,
    message: 'There is no such form',
  },
  409: {
    description: 'The state of the thing forbids it',
    reason: Reason.CONFLICT,
    message: 'The session has been submitted',
  },
  410: {
    description: 'Expired, cancelled, closed, archived or deleted',
    reason: Reason.EXPIRED,
    message: 'The session has expired',
  },
  413: { description: 'Too large', reason: Reason.TOO_LARGE, message: 'The request is too large' },
  415: {
    description: 'Another media type than the route reads',
    reason: Reason.MEDIA_TYPE,
    message: 'Expected application/json',
  },
  422: {
    description: 'The request can be read but does not fit; `details` names all problems',
    reason: Reason.INVALID,
    message: 'answers.email: Required',
  },
  429: {
    description: 'Too many calls; `Retry-After` says when to call again',
    reason: Reason.RATE_LIMITED,
    message: 'Too many calls',
  },
  500: fault,
  503: {
    description: 'Not available just now; `Retry-After` says when to call again',
    reason: Reason.UNAVAILABLE,
    message: 'The service is overloaded',
  },
};

type DescribedError = { description: string; reason: FailureReason; message: string };

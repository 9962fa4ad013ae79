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
    ...(status === 200 && reply === undefined && isFile(replyTypes)
      ? (['Content-Disposition'] as const)
      : []),
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
  const [reason, message, description] = errorsByStatus[status] ?? fault;
  const violations = reason === Reason.INVALID ? [required('answers.email')] : [];
  const example = restErrorOf(failed(reason, message, { violations })).body;
  const schema = schemas.output(errorBody);
  return {
    description,
    headers: replyHeaders(status, operation),
    content: { 'application/json': { schema, example }, ...(operation.forms && { 'text/html': page }) },
  };
}

const fault: DescribedError = [
  Reason.INTERNAL,
  'Internal error, request 01JD4X7Q2M',
  'A fault of the service; the message holds the request id that is in the log',
];

const errorsByStatus: Record<number, DescribedError> = {
  400: [Reason.BAD_REQUEST, 'The body is not JSON: see line 1, column 14', 'The request can’t be read'],
  401: [
    Reason.INVALID_KEY,
    'The API key is not valid',
    'No key, a wrong key, a key without the scope, a wrong token, or an origin that may not post',
  ],
  404: [Reason.NOT_FOUND, 'There is no such form', 'There is no such thing, or it is another project’s'],
  409: [Reason.CONFLICT, 'The session has been submitted', 'The state of the thing forbids it'],
  410: [Reason.EXPIRED, 'The session has expired', 'Expired, cancelled, closed, archived or deleted'],
  413: [Reason.TOO_LARGE, 'The request is too large', 'Too large'],
  415: [Reason.MEDIA_TYPE, 'Expected application/json', 'Another media type than the route reads'],
  422: [
    Reason.INVALID,
    'answers.email: Required',
    'The request can be read but does not fit; `details` names all problems',
  ],
  429: [Reason.RATE_LIMITED, 'Too many calls', 'Too many calls; `Retry-After` says when to call again'],
  503: [
    Reason.UNAVAILABLE,
    'The service is overloaded',
    'Not available just now; `Retry-After` says when to call again',
  ],
};

type DescribedError = [reason: FailureReason, message: string, description: string];

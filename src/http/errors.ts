import { ConnectError } from '@connectrpc/connect';
import { z } from 'zod';
import { type Failure, NextCall, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { jsonPathOf } from '../domain/definition/definition-path.ts';
import { enumName, type NameIn } from '../domain/enums.ts';
import {
  type FailureReason,
  failed,
  failureOf,
  failures,
  nameOf,
  type ReasonName,
  reasonOf,
  refailed,
  violationFromMessage,
  withFailure,
} from '../domain/errors/failure.ts';
import { summarize, type Violation, violationCodes, withReceived } from '../domain/errors/violations.ts';
import { optional } from '../domain/json/optional.ts';
import { change } from './reply-parts.ts';

/**
 * The error of a body that can be read but does not fit, or of a query (`BAD_REQUEST`), with all problems and what
 * came of `input` at their places.
 */
export function contentError(
  violations: readonly Violation[],
  input: unknown,
  reason: FailureReason = Reason.INVALID,
): ConnectError {
  return failed(reason, summarize(violations), { violations: withReceived(violations, input) });
}

/**
 * The documented error for whatever was thrown: a failure whose paths are those of the request, as `toRestFailure`
 * makes them, or a fault of this process.
 */
export function restErrorOf(error: unknown): RestError {
  if (error instanceof URIError) return restErrorOf(failed(Reason.BAD_REQUEST, UNDECODABLE));
  const failure = failureOf(error);
  if (error instanceof ConnectError && failure !== undefined) return ofFailure(error, failure);
  return { ...restErrorOf(failed(Reason.INTERNAL, 'Internal error')), fault: error };
}

/** Makes a failure for one of these reasons undefined; other errors are thrown again. */
export function undefinedFor(...reasons: ReasonName[]): (error: unknown) => undefined {
  return (error) => {
    if (!reasons.includes(restErrorOf(error).reason)) throw error;
    return undefined;
  };
}

const UNDECODABLE = 'The path is not correctly encoded';

function ofFailure(error: ConnectError, failure: Failure): RestError {
  const reason = reasonOf(error);
  const { submissionId, sessionId, violations, changes, pageUrl, resource } = failure;
  const [, status, usualNext] = failures[reason];
  const retryable = usualNext === NextCall.SAME;
  const headers = headersOf(error.metadata);
  const seconds = Number(headers['retry-after']);
  const details = violations.map(violationFromMessage);
  // An unknown one is that of a newer service.
  const nextCall = enumName(NextCall, failure.nextCall) ?? 'none';
  const route = lists.get(resource);
  return {
    status,
    headers,
    reason: nameOf(reason),
    details,
    pageUrl,
    resource,
    body: {
      error: {
        code: codeOf(status),
        message: error.rawMessage,
        details,
        reason: nameOf(reason),
        ...(submissionId !== '' && { submission_id: submissionId }),
        ...(sessionId !== '' && { session_id: sessionId }),
        ...(changes.length > 0 && { changes: changes.map((each) => change.of(each)) }),
        retryable,
        ...(retryable && seconds > 0 && { retry_after: seconds }),
        next_call: nextCall,
        next: nextByReason.get(reason) ?? (route && `Check the id: GET ${route}.`) ?? nextInWords[nextCall],
      },
    },
  };
}

function headersOf(metadata: Headers): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of passedBack) {
    const value = metadata.get(name);
    if (value !== null) headers[name] = value;
  }
  return headers;
}

/** The response headers of an RPC that go on to the HTTP reply. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after', 'www-authenticate'] as const;

/** One of the contract's four codes, by the status. */
function codeOf(status: number): (typeof codes)[number] {
  if (status === 401) return 'unauthorized';
  if (status === 404) return 'not_found';
  return status >= 500 ? 'internal_error' : 'validation_failed';
}

/** A refused or failed request as its caller sees it: one row of the documented table of errors. */
export type RestError = {
  status: number;
  /** Of the reply. 429 and 503 always have `Retry-After`. */
  headers: Record<string, string>;
  reason: ReasonName;
  details: readonly Violation[];
  /** The page that accepts the answers instead; empty: none is known. */
  pageUrl: string;
  /** What there is none of, as `notFound` calls it; empty where it is something else that failed. */
  resource: string;
  body: ErrorBody;
  /** A fault that was not logged yet. It is never sent. */
  fault?: unknown;
};

type ErrorBody = z.input<typeof errorBody>;

/**
 * The failure of an RPC as that of the REST request that made the call: with the paths of the request's own values,
 * and where a transport or a proxy made the error without its words, which are not for callers. What is no failure
 * of the call, but a fault, stays as it is.
 */
export function toRestFailure(error: unknown): unknown {
  if (!(error instanceof ConnectError)) return error;
  const failure = failureOf(error);
  if (failure !== undefined) return withPaths(error, restPathOf);
  const complete = withFailure(error);
  const known = failureOf(complete);
  const [, , , sentence] = failures[reasonOf(complete)];
  return known === undefined || sentence === undefined
    ? error
    : refailed(complete, known, { message: sentence });
}

/** The same error with other paths of its violations. */
export function withPaths(error: unknown, pathFrom: (path: string) => string): unknown {
  const failure = failureOf(error);
  if (!(error instanceof ConnectError) || failure === undefined || failure.violations.length === 0)
    return error;
  const violations = failure.violations.map((violation) => ({
    ...violation,
    path: pathFrom(violation.path),
  }));
  const message = summarize(violations);
  return refailed(error, { ...failure, violations }, { message });
}

/**
 * The path of a refused value as a REST caller wrote it, from the path of the RPC's field: `definition.slug` is
 * `slug` in the body, `page_size` is the parameter `limit`, and the second of several events is `events.1`.
 *
 * Answers, prefill and metadata have the same paths in both: they are JSON in both.
 */
function restPathOf(fieldPath: string): string {
  const [, name = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(fieldPath) ?? [];
  if (jsonFields.has(name)) return fieldPath;
  return jsonPathOf(fieldPath) ?? `${restNames.get(name) ?? name}${rest.replaceAll(/\[(\d+)\]/g, '.$1')}`;
}

/** The fields whose content is JSON that a caller made up, keys included. */
const jsonFields = new Set(['answers', 'prefill', 'metadata', 'schema']);

/** The parameters, headers and parts of REST that have another name than the field that they become. */
const restNames = new Map([
  ['page_size', 'limit'],
  ['page_token', 'cursor'],
  ['skip', 'offset'],
  ['timeout', 'wait'],
  ['expire_time', 'expires_at'],
  ['activation_token', 'token'],
  ['idempotency_key', 'Idempotency-Key'],
  ['field_id', 'field'],
  ['content', 'file'],
]);

/** What is to be said more exactly than by the name of the call. */
const nextByReason = new Map<FailureReason, string>([
  [Reason.TOKEN_USED, 'The form is published: GET /v1/forms/:id.'],
]);

/** How to find the id of what there was none of. */
const lists = new Map([
  ['session', '/v1/forms/:id/sessions lists the sessions of a form'],
  ['submission', '/v1/forms/:id/submissions lists the submissions of a form'],
  ['upload', '/v1/forms/:id/submissions lists the submissions of a form, whose answers name its files'],
  ['version', '/v1/forms/:id/versions lists the versions of a form'],
  ['webhook', '/v1/webhooks lists the webhooks'],
  [
    'delivery',
    '/v1/forms/:id/deliveries lists those of a form, GET /v1/webhooks/:id/deliveries those of a webhook',
  ],
  ['key', '/v1/keys lists the keys'],
]);

/** What to call after a failure, for callers of REST, by the name of the call. */
export const nextInWords = {
  none: 'No request helps. Show the message to the person who asked.',
  same: 'Wait retry_after seconds, then send the same request again; with its Idempotency-Key nothing is made twice.',
  corrected: 'Fix the fields listed in `details`, or what the message names. Then send the request again.',
  with_key:
    'Ask the owner of the service for a key that may do this: POST /v1/keys or `npm run cli -- admin keys create` makes one.',
  list: 'Check the id: GET /v1/forms lists the forms, and POST /api/forms/:id/activate publishes a draft.',
  read: 'Read what is there already, such as by GET /v1/sessions/:id or GET /v1/forms/:id.',
  get_submission: 'Read the submission that is there already: GET /v1/submissions/:id with submission_id.',
  get_session:
    'Read the session that the Idempotency-Key belongs to: GET /v1/sessions/:id with session_id. For another request, send another key.',
  with_other_idempotency_key:
    'The Idempotency-Key belongs to an earlier request. Send that request again as it was, or this one with another key.',
  create_session:
    'Open a session for a person: POST /v1/forms/:id/sessions, with the answers that are known as prefill.',
  activate_form:
    'Publish the draft: POST /api/forms/:id/activate with the token and the address of its owner.',
  create_form: 'Make a form with another token: POST /api/forms/create.',
} satisfies Record<NameIn<typeof NextCall>, string>;

const codes = ['validation_failed', 'not_found', 'unauthorized', 'internal_error'] as const;

/** The body of every error. */
export const errorBody = z
  .object({
    error: z.object({
      code: z.enum(codes),
      message: z.string(),
      details: z.array(
        z.object({
          path: z.string().describe('A dotted path into the input, such as `fields.0.id`.'),
          code: z.enum(violationCodes),
          message: z.string().describe('What was expected.'),
          received: optional(
            z.string(),
            'What came: a number, a text or the like as JSON, cut to a readable length; of lists and objects, and of ' +
              'what may be a secret, the type alone. Absent if nothing came.',
          ),
        }),
      ),
      reason: z
        .enum(Object.keys(failures).map((reason) => nameOf(Number(reason))))
        .describe('The finer word beside the code.'),
      submission_id: optional(
        z.string(),
        'The submission that a session already has, or that the `Idempotency-Key` belongs to.',
      ),
      session_id: optional(z.string(), 'The session that the `Idempotency-Key` belongs to.'),
      changes: optional(
        z.array(change.schema),
        'What the form’s `compatibility` refuses, at most 40 changes.',
      ),
      retryable: z.boolean().describe('Whether the same request can succeed later without any change.'),
      retry_after: z
        .number()
        .exactOptional()
        .meta({ type: 'integer', minimum: 1, description: 'When to send it again, in seconds.' }),
      next_call: z.enum(Object.keys(nextInWords) as NameIn<typeof NextCall>[]).describe('What to call next.'),
      next: z.string().describe('The same in words.'),
    }),
  })
  .meta({ id: 'Error' });

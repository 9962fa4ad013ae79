import { isObject } from '../domain/json.ts';
import { answeredByPerson } from '../domain/violations.ts';
import { type ErrorDetail, type ErrorReason, type HttpError, httpErrorOf } from '../http/errors.ts';
import type { Exchange } from './exchange.ts';

/**
 * What a model needs to know of a failed call to go on: each refused value with its rule, what was expected and
 * what came, whether a repeat can help and when, and what to call next.
 */
export function failureOf(error: unknown, { exchange, tool, input }: FailedCall): Failure {
  const failed = httpErrorOf(error);
  const { reason, submissionId, details, headers } = failed;
  const retryAfter = Number(headers['retry-after']);
  const retryable = retryableReasons.has(reason);
  const problems = details.map((detail) => problemOf(detail, input));
  return {
    reason,
    message:
      failed.cause === undefined
        ? failed.message
        : `Internal error (request ${exchange.logFault(failed.cause)})`,
    ...(problems.length > 0 && { problems }),
    retryable,
    ...(retryable && retryAfter > 0 && { retry_after: retryAfter }),
    ...(submissionId !== '' && { submission_id: submissionId }),
    next: nextAfter(failed, tool),
  };
}

const retryableReasons: ReadonlySet<ErrorReason> = new Set(['rate_limited', 'unavailable', 'internal']);

function problemOf({ path, code, message }: ErrorDetail, input: unknown): Problem {
  const field = fieldOf(path, input);
  const received = valueAt(input, field);
  return { field, rule: code, expected: message, ...(received !== undefined && { received }) };
}

/** The path among the arguments. Those of a definition begin within it, as in a body of REST that is nothing else. */
function fieldOf(path: string, input: unknown): string {
  const field = argumentNames.get(path) ?? path;
  const [first = ''] = field.split('.', 1);
  const isWithin = isObject(input) && Object.hasOwn(input, 'definition') && !Object.hasOwn(input, first);
  return isWithin && !isArgument.has(first) ? ['definition', field].filter(Boolean).join('.') : field;
}

/** Arguments of tools that take a definition, which may be missing. */
const isArgument = new Set(['form_id', 'idempotency_key']);

/** Arguments that have another name in REST. */
const argumentNames = new Map([
  ['Idempotency-Key', 'idempotency_key'],
  ['wait', 'timeout'],
]);

/** What came at a dotted path, as JSON of readable length; undefined if nothing did. */
function valueAt(input: unknown, path: string): string | undefined {
  let value = input;
  for (const part of path === '' ? [] : path.split('.')) {
    if (Array.isArray(value)) value = value[Number(part)];
    else value = isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }
  const text = JSON.stringify(value);
  return text === undefined || text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

const MAX_SHOWN = 200;

function nextAfter({ reason, details, headers }: HttpError, tool: string): string {
  switch (reason) {
    case 'invalid':
    case 'bad_request':
    case 'too_large':
    case 'media_type':
      return details.some(({ message }) => message === answeredByPerson('').message)
        ? 'Only a person can answer these fields: call ask_person with the other answers as prefill.'
        : `Correct what problems names, and call ${tool} again.`;
    case 'not_found':
      return nextUnfound[tool] ?? 'Check the id: list_forms shows the forms of this key.';
    case 'conflict':
      return 'Read what is there already: get_submission if there is a submission_id, else get_session or get_form.';
    case 'expired':
    case 'cancelled':
      return 'The session has ended: ask_person opens another.';
    case 'closed':
    case 'archived':
      return 'The form takes no more answers: tell who asked for them.';
    case 'insufficient_scope':
    case 'missing_key':
    case 'invalid_key':
    case 'origin_not_allowed':
      return 'Ask the owner of the service for a key that may do this.';
    case 'invalid_token':
    case 'token_used':
      return 'A token works once, for 7 days: create_form makes a form with another.';
    case 'rate_limited':
    case 'unavailable':
    case 'internal':
      return `Wait ${headers['retry-after'] ?? 1} seconds, and call ${tool} again.`;
    case 'method':
      return 'List the tools again.';
    default:
      return reason satisfies never;
  }
}

const nextUnfound: Record<string, string> = {
  ask_person:
    'Sessions are of published forms: list_forms shows which there are, and activate_form publishes a draft.',
  submit_answers:
    'Answers go to published forms: list_forms shows which there are, and activate_form publishes a draft.',
  get_session: 'Check the id: ask_person opens a session.',
  wait_for_session: 'Check the id: ask_person opens a session.',
  cancel_session: 'Check the id: ask_person opens a session.',
  get_submission: 'Check the id: list_submissions shows those of a form.',
};

/** Which tool failed, with what arguments. */
type FailedCall = { exchange: Exchange; tool: string; input: unknown };

/** `retry_after` is in seconds. */
export type Failure = {
  reason: ErrorReason;
  message: string;
  problems?: Problem[];
  retryable: boolean;
  retry_after?: number;
  submission_id?: string;
  next: string;
};

/** One refused value. `field` is the dotted path of the argument, `received` JSON. */
type Problem = { field: string; rule: string; expected: string; received?: string };

import type { ReasonName } from '../domain/errors/failure.ts';
import { isForPerson, type Violation } from '../domain/errors/violations.ts';
import { isObject } from '../domain/json/json.ts';
import { type RestError, restErrorOf } from '../http/errors.ts';

/**
 * What a model needs to know of a failed call to go on: each refused value with its rule, what was expected and
 * what came, whether a repeat can help and when, and what to call next.
 */
export function failureOf(error: unknown, { exchange, tool, input }: FailedCall): Failure {
  const { fault, body } = restErrorOf(error);
  const { reason, message, submission_id, details, retryable, retry_after } = body.error;
  const problems = details.map((violation) => problemOf(violation, input));
  return {
    reason,
    message: fault === undefined ? message : `${message} (request ${exchange.logFault(fault)})`,
    ...(problems.length > 0 && { problems }),
    retryable,
    ...(retry_after !== undefined && { retry_after }),
    ...(submission_id !== undefined && { submission_id }),
    next: nextAfter(body.error, tool),
  };
}

function problemOf({ path, code, message, received }: Violation, input: unknown): Problem {
  return {
    field: fieldOf(path, input),
    rule: code,
    expected: message,
    ...(received !== undefined && { received }),
  };
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

/** What to call next, in the words of the tools. */
function nextAfter({ next_call, reason, details, retry_after = 1 }: ErrorBody, tool: string): string {
  switch (next_call) {
    case 'none':
      return 'No call helps: tell who asked for it what the message says.';
    case 'same':
      return `Wait ${retry_after} seconds, and call ${tool} again.`;
    case 'corrected':
      return `Correct what problems or the message name, and call ${tool} again.`;
    case 'with_key':
      return 'Ask the owner of the service for a key that may do this.';
    case 'list':
      return nextUnfound[tool] ?? 'Check the id: list_forms shows the forms of this key.';
    case 'read':
      if (reason === 'token_used') return 'The form is published: get_form reads it, ask_person asks it.';
      return 'Read what is there already: get_session or get_form.';
    case 'get_submission':
      return 'Read what is there already: get_submission with submission_id.';
    case 'create_session':
      return details.some(isForPerson)
        ? 'Only a person can answer these fields: call ask_person with the other answers as prefill.'
        : 'The session has ended: ask_person opens another.';
    case 'activate_form':
      return 'This form is a draft; call activate_form.';
    case 'create_form':
      return 'A token works for 7 days: create_form makes a form with another.';
    default:
      return next_call satisfies never;
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

type ErrorBody = RestError['body']['error'];

/** Which tool failed, with what arguments. */
type FailedCall = { exchange: { logFault: (error: unknown) => string }; tool: string; input: unknown };

/** `retry_after` is in seconds. */
export type Failure = {
  reason: ReasonName;
  message: string;
  problems?: Problem[];
  retryable: boolean;
  retry_after?: number;
  submission_id?: string;
  next: string;
};

/** One refused value. `field` is the dotted path of the argument. */
type Problem = { field: string; rule: string; expected: string; received?: string };

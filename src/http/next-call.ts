import { NextCall } from '../../gen/forms/v1/errors_pb.js';

/** What to call after a failure, for callers of REST, by the name of the call. */
export const nextInWords = {
  none: 'No request helps: tell whoever asked for it what the message says.',
  same: 'Wait retry_after seconds, then send the same request again; with its Idempotency-Key nothing is made twice.',
  corrected: 'Put right what details or the message name, then send the request again.',
  with_key:
    'Ask the owner of the service for a key that may do this: POST /v1/keys or `npm run cli -- admin keys create` makes one.',
  list: 'Check the id: GET /v1/forms lists the forms, and POST /api/forms/:id/activate publishes a draft.',
  read: 'Read what is there already, such as by GET /v1/sessions/:id or GET /v1/forms/:id.',
  get_submission: 'Read the submission that is there already: GET /v1/submissions/:id with submission_id.',
  create_session:
    'Open a session for a person: POST /v1/forms/:id/sessions, with the answers that are known as prefill.',
  activate_form:
    'Publish the draft: POST /api/forms/:id/activate with the token and the address of its owner.',
  create_form: 'Make a form with another token: POST /api/forms/create.',
} satisfies Record<NextCallName, string>;

/** The name of a next call. An unknown one, of a newer service, is `none`. */
export function nextCallNamed(number: NextCall): NextCallName {
  const name = NextCall[number]?.toLowerCase() ?? '';
  return isNextCall(name) ? name : 'none';
}

function isNextCall(name: string): name is NextCallName {
  return Object.hasOwn(nextInWords, name);
}

/** Every name, for the API description. */
export const nextCallNames = Object.keys(nextInWords);

/** The names of what to call next: those of the proto in lower case. */
export type NextCallName = Exclude<Lowercase<keyof typeof NextCall>, 'unspecified'>;

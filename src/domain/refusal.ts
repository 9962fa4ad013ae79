import { Reason } from '../../gen/forms/v1/errors_pb.js';

/** The status of each refusal of the documented interface, by its finer word. */
export const statusOf = {
  bad_request: 400,
  missing_key: 401,
  invalid_key: 401,
  insufficient_scope: 401,
  invalid_token: 401,
  token_used: 401,
  origin_not_allowed: 401,
  not_found: 404,
  method: 404,
  conflict: 409,
  expired: 410,
  closed: 410,
  archived: 410,
  too_large: 413,
  media_type: 415,
  invalid: 422,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

/** The word of a failed call's reason: its name in lower case. An unknown one, of a newer service, is `internal`. */
export function wordOf(reason: Reason): RefusalWord {
  const word = Reason[reason]?.toLowerCase() ?? '';
  return isWord(word) ? word : 'internal';
}

/** The documented body of an error. Of the details, what the contract names is kept. */
export function refusalBody({ reason, message, details, submissionId }: Refused): RefusalBody {
  return {
    error: {
      code: codeOf(statusOf[reason]),
      message,
      details: details.map(({ path, code, message }) => ({ path, code, message })),
      reason,
      ...(submissionId !== '' && { submission_id: submissionId }),
    },
  };
}

/** One of the contract's four words, by the status. */
function codeOf(status: number): RefusalBody['error']['code'] {
  if (status === 401) return 'unauthorized';
  if (status === 404) return 'not_found';
  return status >= 500 ? 'internal_error' : 'validation_failed';
}

function isWord(word: string): word is RefusalWord {
  return Object.hasOwn(statusOf, word);
}

/** The finer word beside the contract's four codes. */
export type RefusalWord = keyof typeof statusOf;

/** One refused value, as the contract's `error.details` lists it. */
export type RefusalDetail = { path: string; code: string; message: string };

export type RefusalBody = {
  error: {
    code: 'validation_failed' | 'unauthorized' | 'not_found' | 'internal_error';
    message: string;
    details: readonly RefusalDetail[];
    reason: RefusalWord;
    submission_id?: string;
  };
};

type Refused = {
  reason: RefusalWord;
  message: string;
  details: readonly RefusalDetail[];
  /** Empty for all but sessions that are submitted. */
  submissionId: string;
};

/** What an error or a reply names of what is wrong with one request. */
export const MAX_PROBLEMS = 100;

/** Questions of a session's own; more are a form. */
export const MAX_QUESTIONS = 20;

/** Items of a page, in every list. */
export const pageSizes = { default: 20, max: 100 } as const;

/** How long a session may live, in seconds: an hour unless its maker says otherwise, at most 30 days. */
export const sessionSeconds = { default: 3600, min: 1, max: 2_592_000 } as const;

/** What a session's notification may hold: characters of its message, and reminders. */
export const notifyLimits = { message: 2_000, reminders: 3 } as const;

/** Characters of the words of a person who declines to answer. */
export const MAX_REASON_LENGTH = 2000;

/** How long one call waits for a session, in seconds. */
export const waitSeconds = { default: 30, min: 1, max: 60 } as const;

/** How long a new webhook secret may wait to take effect, in seconds: at most seven days. */
export const secretDelaySeconds = { default: 0, min: 0, max: 604_800 } as const;

/** Characters of a webhook's signing secret. */
export const secretLength = { min: 8, max: 256 } as const;

/** Characters of the `source` of a submission. */
export const MAX_SOURCE_LENGTH = 200;

/** Characters of a value that a list is filtered by. */
export const MAX_FILTER_LENGTH = 1000;

/** Characters of the name that a file has with its sender, which some send with its whole path. */
export const MAX_FILENAME_LENGTH = 1000;

/** Characters of an idempotency key. */
export const idempotencyKeyLength = { min: 1, max: 255 } as const;

/**
 * Of an API key: characters of its name, and how many seconds it may live. A hundred years: more is most likely a
 * mistake, since a key without an end has no `expires_in`.
 */
export const keyLimits = { name: 200, seconds: 100 * 365 * 24 * 3600 } as const;

/** For how many days a form's answers, or what the service logs, may be kept. */
export const retentionDays = { min: 1, max: 3650 } as const;

/** Characters of what only one browser has, by which links and codes work there alone. */
export const browserLength = { min: 16, max: 128 } as const;

/** The interface's size of a JSON body, section 8 of its limits. */
export const MAX_MESSAGE_BYTES = 256 * 1024;

/** The same for a form that is made without a key, and for answers to one. */
export const MAX_KEYLESS_BYTES = 64 * 1024;

/** Of a body that is read before its call is asked for by itself, where no key comes with it. */
export const MAX_UNASKED_BYTES = 16 * 1024;

/** A file of 10 MiB with its envelope. */
const MAX_UPLOAD_BYTES = 11 * 1024 * 1024;

/** A file in JSON is in base64, which takes ten times as long to read: 25 ms for this. */
const MAX_UPLOAD_JSON_BYTES = 2 * 1024 * 1024;

/** JSON values in answers, prefill and metadata: far above a form of 100 fields. */
const MAX_NODES = 10_000;

/** A definition of 256 KiB with as many short options as fit. */
const MAX_DEFINITION_NODES = 50_000;

const standard = { readMaxBytes: MAX_MESSAGE_BYTES, jsonMaxBytes: MAX_MESSAGE_BYTES, maxNodes: MAX_NODES };

/** How much request messages may hold. */
export const messageLimits = {
  standard,
  definition: { ...standard, maxNodes: MAX_DEFINITION_NODES },
  keylessDefinition: { ...standard, readMaxBytes: MAX_KEYLESS_BYTES, jsonMaxBytes: MAX_KEYLESS_BYTES },
  upload: { ...standard, readMaxBytes: MAX_UPLOAD_BYTES, jsonMaxBytes: MAX_UPLOAD_JSON_BYTES },
} satisfies Record<string, MessageLimits>;

/**
 * What an error holds in gRPC's trailers: bytes of its violations, which with the rest of the details are 6 KB in
 * base64, and characters of its message, percent-encoded. gRPC's libraries take 8 KB of trailers by default.
 */
export const trailerLimits = { violationBytes: 4_200, encodedMessage: 1_200 } as const;

/**
 * Fields of a binary message: as many as the largest has room for that holds no file. Of those with a file, few bytes
 * are fields.
 */
export const MAX_WIRE_FIELDS = 128 * 1024;

/**
 * Inputs of an HTML form's post, and files among them. A form has at most 100 fields, and an input comes for each choice
 * that is ticked and each file that was uploaded before; all of them together hold no more text than a JSON body. File
 * inputs count even when they are empty.
 */
export const formPostLimits = {
  inputs: 10_100,
  files: 100,
  /** Of each input. */
  header: { maxHeaderPairs: 20, maxHeaderSize: 8192 },
} as const;

/**
 * Names of inputs that no field has: characters of one, how many a reply shows, and how many an owner is told of by
 * name for each form.
 */
export const foreignNames = { length: 64, shown: 20, kept: 50 } as const;

/** How long a call may ask to go on, in milliseconds; one that asks for longer gets what there is by then. */
export const longestCallMs = {
  unary: 600_000,
  /** Streams go on as long as their caller likes, as far as a timer goes. */
  stream: 2_147_483_000,
} as const;

export type MessageLimits = {
  /** Bytes of the message, and of what arrives for it, compressed or not. */
  readMaxBytes: number;
  /** The same where it is JSON. */
  jsonMaxBytes: number;
  /** JSON values, or as many messages as hold them. */
  maxNodes: number;
};

/** An hour in milliseconds. */
export const HOUR_MS = 60 * 60 * 1000;

/** The years 1 to 9999 in UTC, which messages, JSON and PostgreSQL all hold; in milliseconds since 1970. */
export const instants = {
  firstMs: Date.parse('0001-01-01T00:00:00Z'),
  lastMs: Date.parse('9999-12-31T23:59:59.999Z'),
};

/** A day of 24 hours in milliseconds. */
export const DAY_MS = 24 * HOUR_MS;

/** The documented limit of an address on the web, in characters. */
export const MAX_URL_LENGTH = 2048;

/** That of the page that a form post comes from, in characters: browsers cut longer referrers to their origin. */
export const MAX_REFERRER_LENGTH = 4096;

/** The most steps of a form. Browsers need this limit alone. */
export const MAX_PAGES = 100;

/**
 * What a form definition may hold: items of its lists, and characters of its texts, where a translation may be as
 * long as the text itself. What one field type alone has is limited in its file. No list or object may have more than
 * `members`, twice the most that any is for: what has more is refused before each of them is looked at.
 */
export const formLimits = {
  members: 1000,
  fields: 100,
  pages: MAX_PAGES,
  options: 500,
  fieldId: 64,
  name: 200,
  label: 1_000,
  description: 2000,
  placeholder: 200,
  agentHint: 2000,
  pattern: 256,
  patternMessage: 500,
  endLabel: 100,
  submitLabel: 100,
  successMessage: 2000,
  url: MAX_URL_LENGTH,
  languageTag: 35,
  managedBy: 200,
} as const;

/**
 * How long a client of something outside tries each address of a host in turn, a quarter of what most calls have. With
 * Node's 250 ms a host is never reached that is further away, and whose other addresses go nowhere.
 */
export const ADDRESS_ATTEMPT_MS = 2_500;

/** The name of a project. */
export const projectPattern = /^[A-Za-z0-9._-]{1,64}$/;

/** What names a form in files. */
export const formKeyPattern = /^[a-z0-9][a-z0-9._-]{0,63}$/;

/** What `GET /api/forms/:id` has of a form under `form`, and `readForm` returns. */
export type PublicForm = {
  id: string;
  version: { id: string; number: number; checksum: string };
  /** Whether the form took submissions when it was read. */
  open: boolean;
  name: string;
  description?: string;
  fields: PublicField[];
  pages?: { title?: string; description?: string }[];
  settings: {
    submitLabel?: string;
    successMessage?: string;
    redirectUrl?: string;
    closesAt?: string;
    locale?: string;
    review?: boolean;
    [name: string]: unknown;
  };
  translations?: Record<string, object>;
};

/** A field of a form. Which attributes it has beside these depends on its type: see docs/forms.md of the service. */
export type PublicField = {
  id: string;
  type: string;
  label: string;
  required: boolean;
  description?: string;
  placeholder?: string;
  /** Not shown to people; your page may set it. */
  hidden: boolean;
  page: number;
  options?: Choice[];
  rows?: Choice[];
  defaultValue?: unknown;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  min?: number | string;
  max?: number | string;
  step?: number;
  accept?: string[];
  maxBytes?: number;
  maxFiles?: number;
  multiple?: boolean;
  allowOther?: boolean;
  /** Only a person may answer it, on the service's own page. */
  hosted_only?: true;
  [attribute: string]: unknown;
};

export type Choice = { label: string; value: string };

/** An answer: text, number, boolean, list, file or object, by the type of its field. */
export type Answer = unknown;

export type FormOptions = {
  /** The address of the service, such as `https://forms.example.com`. Without it nothing is checked there or sent. */
  service?: string;
  /** The languages that the reader prefers, as BCP 47 tags; default: the browser's. */
  languages?: readonly string[];
  /** Where the draft is kept; default: the tab's `sessionStorage`. `null` keeps none. */
  storage?: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'> | null;
  /**
   * Whether people write numbers as in the form's language, such as `1.500,5`: for `<input inputmode="decimal">`. Else
   * they are as `<input type="number">` has them.
   */
  localNumbers?: boolean;
  /** What the submission has as its `source`; default `website`. */
  source?: string;
  /** Makes the requests; default: the global `fetch`. */
  fetch?: typeof fetch;
};

/** A field that is asked now, in the reader's language, with what was answered and what is wrong with that. */
export type FieldState = PublicField & {
  value: Answer;
  /** What an input of one text shows: what was typed, or the answer as text. */
  text: string;
  /** What is wrong, in the reader's language; absent if nothing is, or nothing was said yet. */
  error?: string;
  /** The part of an answer that `error` is about, such as `city` of an address. */
  errorPart?: string;
  /** The files of the answer, as they were uploaded. */
  files: readonly FileState[];
};

/** An uploaded file. */
export type FileState = { upload_id: string; filename: string; content_type: string; size: number };

/** What a page shows. A new object after each change. */
export type FormState = {
  name: string;
  description: string;
  /** The title and the description of the step. */
  title: string;
  stepDescription: string;
  /** The BCP 47 tag of the language of the texts. */
  language: string;
  submitLabel: string;
  /** The fields of this step whose conditions hold; those of all steps where answers are reviewed. */
  fields: readonly FieldState[];
  /** The answers by field id, those of other steps and of fields that are not asked now too. */
  values: Readonly<Record<string, Answer>>;
  /**
   * What of the draft the form does not take any more, since it has changed: `label` as the field was asked, and `text`
   * the answer, or the parts of it that are gone, with options by their labels.
   */
  dropped: readonly { id: string; label: string; text: string }[];
  /** The number of the step, and of all steps that have fields now, from 1. */
  step: number;
  steps: number;
  /** Whether this step shows all answers before they are sent. */
  isReview: boolean;
  /** What is wrong beyond single fields: a refusal, or a service that can't be reached. */
  problem: string;
  /**
   * The ids of required fields that only a person may answer, on the service's own page, and that are asked now. As
   * long as there are any, nothing can be submitted from here.
   */
  hostedOnly: readonly string[];
  /** Whether the form took submissions when it was read. */
  open: boolean;
  status: 'editing' | 'checking' | 'submitting' | 'submitted';
  /** Once it is submitted. */
  submissionId: string;
  successMessage: string;
  redirectUrl: string;
};

/** What is wrong with the answers: as the service names it, such as `answers.email`. */
export type Violation = { path: string; code: string; message: string; received?: string };

export type Verdict = { ok: boolean; violations: readonly Violation[] };

/** A form without markup. */
export type Form = {
  readonly state: FormState;
  /** Calls `listener` after each change of `state`. Returns how to end that. */
  subscribe: (listener: () => void) => () => void;
  /**
   * Sets an answer; null or undefined: none. Returns whether it did: a field that the form does not have, or not any
   * more, is left alone, with a warning in the console.
   */
  set: (id: string, answer: Answer) => boolean;
  /**
   * Sets an answer from the texts of inputs, read by the field's type: `'42'` is 42 for a number. An answer of several
   * parts takes them by name: `{ city: 'Paris' }`.
   */
  setText: (
    id: string,
    texts: string | readonly string[] | Record<string, string | readonly string[]>,
  ) => boolean;
  /** Goes to the next step if this one is complete, else shows what is wrong. Returns whether it went. */
  next: () => Promise<boolean>;
  back: () => void;
  /**
   * Uploads a file for a `file` or `signature` field and makes it the answer, or adds it to one that takes several.
   * Returns whether it did; else the field's `error` says what is wrong with the file, or `problem` that it could not
   * be sent.
   */
  upload: (id: string, file: Blob, filename?: string) => Promise<boolean>;
  /** What the service would say of the answers, and shows it: here first, patterns by asking the service. */
  check: () => Promise<Verdict>;
  /** Submits the answers, once however often it is called. Returns whether they were accepted; `state` says why not. */
  submit: () => Promise<boolean>;
  /** Forgets the draft and begins anew. */
  reset: () => void;
  /** Settles once the words of another language than English are loaded, or could not be. */
  readonly ready: Promise<void>;
};

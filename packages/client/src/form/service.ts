import type { Answer, FileState, PublicForm, Violation } from './types.ts';

/** Reads a published form. Throws `ServiceError` for one that there is not, or that this page may not read. */
export async function readForm(
  service: string,
  formId: string,
  { fetch = globalThis.fetch }: { fetch?: typeof globalThis.fetch } = {},
): Promise<PublicForm> {
  const url = formUrl(service, formId);
  const { form } = await call(fetch, url, { headers: { accept: 'application/json' } });
  return form as PublicForm;
}

/** The routes of one form. */
export function createService(service: string, formId: string, fetch: typeof globalThis.fetch): FormService {
  const url = formUrl(service, formId);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    call(fetch, `${url}${path}`, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return {
    async check(answers) {
      try {
        await post('/submissions?check=true', { answers });
        return [];
      } catch (error) {
        if (error instanceof ServiceError && error.status === 422) return error.violations;
        throw error;
      }
    },
    async submit({ answers, source, key }) {
      const reply = await post('/submissions', { answers, source }, { 'idempotency-key': key });
      return String(reply.submission_id);
    },
    async upload(fieldId, file, filename) {
      const query = new URLSearchParams({ field: fieldId, filename });
      const { upload } = await call(fetch, `${url}/uploads?${query}`, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': 'application/octet-stream',
          'idempotency-key': newKey(),
        },
        body: file,
      });
      return upload as FileState;
    },
  };
}

function formUrl(service: string, formId: string): string {
  return `${service.replace(/\/+$/, '')}/api/forms/${encodeURIComponent(formId)}`;
}

/** Calls are safe to repeat: they read, check, or have a key. */
async function call(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
): Promise<Record<string, unknown>> {
  for (let attempt = 1; ; attempt += 1) {
    const reply = await fetch(url, init).catch((error: unknown) => {
      if (attempt === ATTEMPTS) throw new ServiceError(0, { message: String(error) });
    });
    if (reply?.ok) return (await reply.json()) as Record<string, unknown>;
    const body = (await reply?.json().catch(() => undefined)) as { error?: ErrorBody } | undefined;
    const wait = Number(reply?.headers.get('retry-after') ?? 2 ** attempt / 4);
    const mayPass = reply === undefined || reply.status === 429 || reply.status >= 502;
    if (reply && (!mayPass || attempt === ATTEMPTS || wait > MAX_WAIT_SECONDS)) {
      throw new ServiceError(reply.status, body?.error);
    }
    await new Promise((resolve) => setTimeout(resolve, wait * 1000 * (1 + Math.random() / 5)));
  }
}

const ATTEMPTS = 4;

/** A person waits. */
const MAX_WAIT_SECONDS = 10;

/** A name that nobody guesses, so that a call can be repeated. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** A refusal of the service. `status` is 0 if it could not be reached. */
export class ServiceError extends Error {
  readonly status: number;
  /** The finer word: `rate_limited`, `closed` and the like. */
  readonly reason: string;
  readonly violations: readonly Violation[];

  constructor(status: number, { message, reason, details }: ErrorBody = {}) {
    super(message ?? `The service answered ${status}`);
    this.name = 'ServiceError';
    this.status = status;
    this.reason = reason ?? '';
    this.violations = details ?? [];
  }
}

type ErrorBody = { message?: string; reason?: string; details?: readonly Violation[] };

export type FormService = {
  /** What would be refused. */
  check: (answers: Record<string, Answer>) => Promise<readonly Violation[]>;
  /** Returns the submission's id; the same for the same key. */
  submit: (sent: { answers: Record<string, Answer>; source: string; key: string }) => Promise<string>;
  upload: (fieldId: string, file: Blob, filename: string) => Promise<FileState>;
};

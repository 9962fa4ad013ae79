import { ConnectError } from '@connectrpc/connect';

/** Where commands run, and what they write to. */
export type Terminal = {
  env: NodeJS.ProcessEnv;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Writes a line of the result. */
  print: (line: string) => void;
  /** Writes a line beside it. */
  note: (line: string) => void;
};

/** What was typed makes no sense. */
export class UsageError extends Error {
  override name = 'UsageError';
  constructor(message: string) {
    super(`${message}\nTry: npm run cli -- --help`);
  }
}

/** The service would not have it, now or later. */
export class RefusedError extends Error {
  override name = 'RefusedError';
}

/**
 * Makes what says how far something has come: nothing in the first second, then at most one line a second.
 * `describe` is called when a line is due.
 */
export function createProgress(note: (line: string) => void, now: () => number) {
  const begin = now();
  let last = begin;
  return (describe: () => string) => {
    if (now() - last < EVERY_MS) return;
    last = now();
    note(`${describe()} (${Math.round((last - begin) / 1000)} s)`);
  };
}

/** A number of bytes for people, such as `12 MiB`. */
export function inMib(bytes: number): string {
  const mib = bytes / 1024 ** 2;
  return mib < 10 ? `${mib.toFixed(1)} MiB` : `${Math.round(mib)} MiB`;
}

const EVERY_MS = 1_000;

export type Progress = ReturnType<typeof createProgress>;

/** What a check has found. `text` says what to do if it is not `ok`. */
export type Finding = { level: 'ok' | 'warning' | 'FAIL'; about: string; text: string };

/** What says what was found about one thing. */
export function findingsAbout(about: string) {
  return {
    ok: (text: string): Finding => ({ level: 'ok', about, text }),
    warning: (text: string): Finding => ({ level: 'warning', about, text }),
    fail: (text: string): Finding => ({ level: 'FAIL', about, text }),
  };
}

/** The reason of an error, without its stack. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0]);
  if (error instanceof ConnectError) return error.rawMessage;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.message === 'fetch failed'
    ? reasonOf(error.cause)
    : error.message;
}

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
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.message === 'fetch failed'
    ? reasonOf(error.cause)
    : error.message;
}

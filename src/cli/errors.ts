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

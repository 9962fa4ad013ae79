/** Whether an error of the operating system or of Node has one of these codes, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** What an error says; whatever else was thrown, as a text. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Takes a missing file or folder as an empty list; throws any other error. */
export function emptyIfMissing(error: unknown): [] {
  if (hasCode(error, 'ENOENT')) return [];
  throw error;
}

/** Whether a second name for a file could not be made since the file systems have none, and it must be copied. */
export function isLinkRefused(error: unknown): boolean {
  return hasCode(error, 'EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK');
}

/** Why the service can't start, in one line for the person who starts it. */
export class StartError extends Error {
  override name = 'StartError';
}

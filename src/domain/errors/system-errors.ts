/** Whether an error of the operating system or of Node has one of these codes, such as `ENOENT`. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Whether a second name for a file could not be made since the file systems have none, and it must be copied. */
export function isLinkRefused(error: unknown): boolean {
  return hasCode(error, 'EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK');
}

/** Why the service can't start, in one line for the person who starts it. */
export class StartError extends Error {
  override name = 'StartError';
}

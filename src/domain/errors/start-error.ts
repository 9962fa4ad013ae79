/** Why the service can't start, in one line for the person who starts it. */
export class StartError extends Error {
  override name = 'StartError';
}

import type { Logger } from 'pino';

/** What the service logs with: a pino logger, or anything that takes the same calls, such as the console. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'> & Partial<Pick<Logger, 'isLevelEnabled'>>;

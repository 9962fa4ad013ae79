import type { DestinationStream } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { printable } from './printable.ts';

/**
 * Where a log goes that people read: a request is `12:04:11 GET /f/:sessionId 200 15 ms`, what was done is one line,
 * too, and everything else is as pino-pretty writes it. Times are those of the reader's clock. Only stacks have lines.
 */
export function readableLog(write: (text: string) => void, colorize: boolean): DestinationStream {
  const pretty = prettyFactory({ colorize, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' });
  return {
    write(line) {
      const entry: LogEntry = JSON.parse(line, (key, value) => {
        if (typeof value !== 'string') return value;
        return key === 'stack' ? value.split('\n').map(printable).join('\n') : printable(value);
      });
      write(ownLineOf(entry) ?? pretty(entry) ?? '');
    },
  };
}

/** The line of an entry that comes often; undefined for others. */
function ownLineOf(entry: LogEntry): string | undefined {
  if (entry.msg === 'request') return requestLine(entry);
  return entry.msg === 'audit' ? auditLine(entry) : undefined;
}

function requestLine({
  time,
  method,
  route = '(no route)',
  status,
  code,
  reason,
  requestId,
  ms = 0,
  aborted,
}: LogEntry): string {
  const isFault = status !== undefined && status >= 500;
  const words = [
    clockOf(time),
    method,
    route,
    status,
    `${Math.round(ms)} ms`,
    code,
    reason,
    aborted && 'aborted',
    isFault && requestId,
  ];
  return `${words.filter(Boolean).join(' ')}\n`;
}

function auditLine({ time, action, resource, actor, count = 1 }: LogEntry): string {
  const times = count === 1 ? '' : ` (${count} times)`;
  return `${clockOf(time)} ${action} ${resource ?? ''} by ${actor}${times}\n`;
}

/** `12:04:11`, in the time zone of the process. */
function clockOf(time: number): string {
  const at = new Date(time);
  return [at.getHours(), at.getMinutes(), at.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** What the sentences read of an entry. */
type LogEntry = {
  time: number;
  msg?: string;
  method?: string;
  route?: string;
  status?: number;
  code?: string;
  reason?: string;
  requestId?: string;
  ms?: number;
  aborted?: true;
  action?: string;
  resource?: string | null;
  actor?: string;
  count?: number;
};

import { pathOf, type Violation } from '../errors/violations.ts';

/**
 * What is wrong with the headers that a webhook's deliveries shall have, at `headers`. Refuses what the service sets
 * itself, what belongs to a connection, and what could end a header early.
 */
export function headerProblems(headers: Headers): Violation[] {
  const entries = Object.entries(headers);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value), 0);
  const all: Violation[] = [];
  if (entries.length > webhookHeaderLimits.count) {
    all.push({ path: 'headers', code: 'too_big', message: `Expected at most ${webhookHeaderLimits.count}` });
  }
  if (bytes > webhookHeaderLimits.bytes) {
    const message = `Expected at most ${webhookHeaderLimits.bytes} bytes of names and values`;
    all.push({ path: 'headers', code: 'too_big', message });
  }
  if (all.length > 0) return all;
  const lowered = entries.map(([name]) => name.toLowerCase());
  return entries.flatMap(([name, value], index): Violation[] => {
    const isRepeated = lowered.indexOf(name.toLowerCase()) !== index;
    const message = isRepeated ? 'The header is named twice' : (nameProblem(name) ?? valueProblem(value));
    return message === undefined ? [] : [{ path: pathOf('headers', name), code: 'custom', message }];
  });
}

function nameProblem(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) return 'Expected the name of a header';
  const lower = name.toLowerCase();
  if (ownNames.has(lower) || /^(webhook-|x-service-)/.test(lower))
    return 'The service sets this header itself';
  return hopByHop.has(lower) || lower.startsWith('proxy-')
    ? 'This header is about the connection, which the service makes'
    : undefined;
}

function valueProblem(value: string): string | undefined {
  return /^[!-~](?:[\t -~]*[!-~])?$/.test(value)
    ? undefined
    : 'Expected visible ASCII characters, with spaces and tabs only between them';
}

/** What each delivery has, or never has. */
const ownNames = new Set([
  'accept-encoding',
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'traceparent',
  'tracestate',
  'user-agent',
]);

/** RFC 9110, 7.6.1, and what asks for another answer than the last. */
const hopByHop = new Set([
  'connection',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** How many headers a webhook may have of its own, and bytes of their names and values. */
export const webhookHeaderLimits = { count: 10, bytes: 4096 } as const;

/**
 * Headers with the only origin that they are sent to, as a text to seal: anyone who changes the URL of a webhook
 * doesn't get its secrets sent there. Null for none.
 */
export function sealableHeaders(headers: Headers, url: string): string | null {
  const { origin } = new URL(url);
  return Object.keys(headers).length === 0 ? null : JSON.stringify({ origin, headers });
}

/** The headers in a text that `sealableHeaders` has made, and their origin. */
export function headersIn(opened: string): { origin: string; headers: Headers } {
  return JSON.parse(opened);
}

/** Values by name, as they are sent. */
type Headers = Record<string, string>;

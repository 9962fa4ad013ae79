import { accessLineOf, type Request, type Response } from './access-log.ts';
import { runWith } from './trace-context.ts';

/**
 * Makes a server's handler record a span for each request, which goes on with the trace that its `traceparent` header
 * names. What the handler does belongs to it. The span has what the access line has, and no more: no path, query,
 * header, body or address.
 */
export function traceRequests<Q extends Request, A extends Response>(
  tracing: Tracing | undefined,
  handler: (request: Q, response: A) => void,
): (request: Q, response: A) => void {
  if (tracing === undefined) return handler;
  return (request, response) => {
    const method = METHODS.has(request.method ?? '') ? (request.method ?? '') : '_OTHER';
    const { traceparent } = request.headers;
    const span = tracing.startSpan(method, {
      kind: 'server',
      parent: typeof traceparent === 'string' ? traceparent : undefined,
    });
    runWith(span.traceparent, () => handler(request, response));
    // After the listener that completes the access line.
    response.on('close', () => {
      const { route, status, code, requestId, reason } = accessLineOf(request) ?? {};
      if (route !== undefined) span.setName(`${method} ${route}`);
      span.setAttributes({
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': status,
        'forms.code': code,
        'forms.reason': reason,
        'forms.request_id': requestId,
      });
      if ((status ?? 0) >= 500 || isFault(code ?? '')) span.fail(code ?? String(status));
      span.end();
    });
  };
}

/** HTTP/2 takes any text for a method. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Whether a failure of an RPC, by Connect's name of its code, is the service's own. */
export function isFault(code: string): boolean {
  return faults.has(code);
}

const faults: ReadonlySet<string> = new Set(['Internal', 'Unknown', 'DataLoss', 'Unavailable']);

/** Records spans, and sends them to a collector. Nothing but `close` waits or fails. */
export type Tracing = {
  startSpan(name: string, options?: SpanOptions): Span;
  /** Sends what is recorded, within some seconds. */
  close(): Promise<void>;
};

export type SpanOptions = {
  /** `internal` by default. */
  kind?: 'server' | 'client' | 'internal';
  /** The `traceparent` of the span that it is part of; undefined, or one that can't be read: it begins a trace. */
  parent?: string | undefined;
  /** The `traceparent`s of what it serves beside. */
  links?: readonly string[];
  attributes?: Attributes;
  /** Milliseconds since 1970; now by default. */
  startedAt?: number;
};

export type Span = {
  /** How others go on with it; undefined if it is not recorded. */
  readonly traceparent: string | undefined;
  setName(name: string): void;
  /** What is undefined is left out. */
  setAttributes(attributes: Attributes): void;
  /** Notes that something happened at this moment. */
  addEvent(name: string, attributes: Attributes): void;
  /** Marks it as failed, with the reason. */
  fail(reason: string): void;
  end(): void;
};

/** Nothing that people have entered, no address, no token. */
type Attributes = Record<string, string | number | boolean | undefined>;

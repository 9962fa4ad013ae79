import { type Dispatcher, errors } from 'undici';

/**
 * Sends a request and reads the beginning of its answer: the first 2 KiB of the body as text, or what of it arrives
 * within a second of the head. The rest is never read: the connection is closed instead. Of a body that is cut off,
 * the part that arrived is kept.
 *
 * Throws an error of undici if there is no connection or no answer within `timeoutMs`, what the connection fails with,
 * and the reason of `signal` if that is aborted before the answer begins.
 */
export function sendRequest(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<ReceiverAnswer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const reader = new AnswerReader(resolve, reject);
    const abort = () => reader.stop(signal.reason);
    const timer = setTimeout(() => reader.stop(reader.lateness()), timeoutMs);
    signal.addEventListener('abort', abort);
    reader.onEnd = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    dispatcher.dispatch(request, reader);
  });
}

/**
 * Takes undici's events as they come: the stream and the abort signal of its `request` cost a seventh of the CPU that
 * the service spends on a delivery.
 */
class AnswerReader implements Dispatcher.DispatchHandler {
  /** Called once, when the outcome is known. */
  onEnd: () => void = () => undefined;
  readonly #resolve: (answer: ReceiverAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #head: Pick<ReceiverAnswer, 'status' | 'retryAfter' | 'location'> | undefined;
  #bodyTimer: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #isEnded = false;

  constructor(resolve: (answer: ReceiverAnswer) => void, reject: (error: unknown) => void) {
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Ends it: with what has arrived, or with this error if no answer has begun. */
  stop(error: unknown): void {
    this.#end(error);
    this.#controller?.abort(new NotReadError());
  }

  /** What is missing at this moment: a connection, or an answer. */
  lateness(): Error {
    return this.#controller === undefined
      ? new errors.ConnectTimeoutError()
      : new errors.HeadersTimeoutError();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isEnded) controller.abort(new NotReadError());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    const last = (name: string) => [headers[name]].flat().at(-1);
    this.#head = { status, retryAfter: last('retry-after'), location: last('location') };
    this.#bodyTimer = setTimeout(() => this.stop(undefined), READ_MS);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    // Later in this turn: an answer that ends with these bytes is whole by then, and its connection can be used again.
    if (this.#length > KEPT_BYTES) queueMicrotask(() => this.stop(undefined));
  }

  onResponseEnd(): void {
    this.#end(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(error);
  }

  #end(error: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#bodyTimer);
    this.onEnd();
    if (this.#head === undefined) this.#reject(error);
    else this.#resolve({ ...this.#head, body: this.#text() });
  }

  #text(): string {
    const bytes = Buffer.concat(this.#chunks).subarray(0, KEPT_BYTES);
    return bytes.toString('utf8').replaceAll('\0', '\uFFFD');
  }
}

const KEPT_BYTES = 2048;

/** The status alone decides the outcome; the body is only shown in the log of deliveries. */
export const READ_MS = 1000;

/** What undici closes a connection with whose answer is not read to its end; nobody sees it. */
class NotReadError extends Error {
  override name = 'NotReadError';
}

/**
 * `retryAfter` and `location` are the last headers of these names; `body` holds no NUL, which PostgreSQL does not take.
 */
export type ReceiverAnswer = {
  status: number;
  retryAfter: string | undefined;
  location: string | undefined;
  body: string;
};

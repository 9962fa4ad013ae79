import type {
  DescMessage,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { type CallOptions, Code, ConnectError, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { hasBody } from '../body/has-body.ts';
import { requestIdFrom } from '../domain/ids.ts';
import { accessValuesOf } from '../telemetry/access-log.ts';

/**
 * Calls RPCs on behalf of an HTTP request, with the options of `callOptions`; of a page whose reader is signed in, with
 * their credential. Throws the `ConnectError` of a failed call.
 */
export function callsFor(
  transport: Transport,
  request: Request,
  response: Response,
  from: Source,
  credential?: string,
): Call {
  let options: HttpCallOptions | undefined;
  return (method, input, { continued = false, waits = false } = {}) => {
    options ??= callOptions(request, response, from, credential);
    const headers = continued ? { ...options.headers, ...continuation } : options.headers;
    const signal = waits ? signalOfEnd(response) : undefined;
    // Not async, and with a function from elsewhere: calls that wait would keep all of this.
    const reply = transport.unary(method, signal, undefined, headers, input, options.contextValues);
    return reply.then(messageFor(response));
  };
}

/** Takes the message from a reply, and passes its headers back. */
function messageFor(response: Response) {
  return <Message>({ header, message }: { header: Headers; message: Message }) => {
    passBack(header, response);
    return message;
  };
}

/**
 * As `callsFor`, for RPCs that take a stream of messages and answer with one. What `inputs` throws, such as a
 * `CutOff`, is thrown as it is.
 */
export function streamsFor(transport: Transport, request: Request, response: Response, from: Source): Stream {
  return async (method, inputs) => {
    const options = callOptions(request, response, from);
    let broken: unknown;
    async function* guarded(): typeof inputs {
      try {
        yield* inputs;
      } catch (error) {
        broken = error;
        throw new ConnectError("The request can't be read to its end", Code.Canceled);
      }
    }
    try {
      const { headers, contextValues } = options;
      const reply = await transport.stream(method, undefined, undefined, headers, guarded(), contextValues);
      options.onHeader(reply.header);
      for await (const message of reply.message) return message;
      throw new ConnectError(`${method.name} sent no answer`, Code.Internal);
    } catch (error) {
      throw broken ?? error;
    }
  };
}

/**
 * As `callsFor`, for RPCs that answer with a stream. The call ends when nobody reads its answer any more.
 */
export function receivesFor(
  transport: Transport,
  request: Request,
  response: Response,
  from: Source,
  credential?: string,
): Receive {
  return async function* received(method, input) {
    const signal = signalOfEnd(response);
    const { headers, onHeader, contextValues } = callOptions(request, response, from, credential);
    async function* message() {
      yield input;
    }
    const reply = await transport.stream(method, signal, undefined, headers, message(), contextValues);
    onHeader(reply.header);
    yield* reply.message;
  };
}

/** Aborted when the client goes before its answer is complete. */
function signalOfEnd(response: Response): AbortSignal {
  const gone = new AbortController();
  // Comes once. `once` would keep more for each of thousands that wait.
  response.on('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

/**
 * What an RPC gets of an HTTP request beside its message: the client's address, the request id, and of an API
 * call the credentials. The headers that the RPC answers with and that callers may see go onto the reply.
 */
export function callOptions(
  request: Request,
  response: Response,
  from: Source,
  credential?: string,
): HttpCallOptions {
  const headers: Record<string, string> = { 'x-request-id': requestIdOf(request) };
  if (credential !== undefined) headers.authorization = `Bearer ${credential}`;
  for (const name of passedOn[from]) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  // Services tell a body without a media type by an empty one.
  if (from === 'management' && hasBody(request)) headers['content-type'] ??= '';
  // The one address that Express found behind the trusted proxies, never the header as it came.
  const { ip } = request;
  if (ip !== undefined) headers['x-forwarded-for'] = ip;
  const contextValues = accessValuesOf(request);
  return {
    headers,
    ...(contextValues !== undefined && { contextValues }),
    onHeader: (received) => passBack(received, response),
  };
}

/** The id of a request in all logs. It is kept in the request's header, so that every reader gets the same. */
export function requestIdOf({ headers }: Request): string {
  const id = requestIdFrom(headers['x-request-id']);
  headers['x-request-id'] = id;
  return id;
}

/** Marks a call that goes on with what another call of the same request began: the two count as one. */
const continuation = { 'x-continuation': 'true' };

const ofApi = ['authorization', 'origin', 'referer', 'accept-language'] as const;

/**
 * The headers that services get: of the management tier those that tell a browser, too, since its routes may be
 * open without a key. The credential of a page is its address, so a page passes no other on.
 */
const passedOn = {
  api: ofApi,
  management: [...ofApi, 'host', 'sec-fetch-site', 'content-type'],
  page: ['accept-language'],
} as const satisfies Record<string, readonly string[]>;

/** The response headers of an RPC that go on to the HTTP reply. */
export const passedBack = ['ratelimit', 'ratelimit-policy', 'retry-after', 'www-authenticate'] as const;

function passBack(received: Headers, response: Response): void {
  for (const name of passedBack) {
    const value = received.get(name);
    if (value !== null) response.setHeader(name, value);
  }
}

/** Whether a request came to a tier of the documented interface or to a page. */
type Source = keyof typeof passedOn;

/**
 * Calls one RPC with one message. `continued`: it counts as one call with the one before. `waits`: it may take long
 * on purpose, and ends when the client goes.
 */
export type Call = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  input: MessageInitShape<I>,
  options?: { continued?: boolean; waits?: boolean },
) => Promise<MessageShape<O>>;

/** Calls one RPC with a stream of messages. */
export type Stream = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodClientStreaming<I, O>,
  inputs: AsyncGenerator<MessageInitShape<I>>,
) => Promise<MessageShape<O>>;

/** Calls one RPC with one message, and gives the messages that it answers with. */
export type Receive = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodServerStreaming<I, O>,
  input: MessageInitShape<I>,
) => AsyncGenerator<MessageShape<O>>;

type HttpCallOptions = Required<Pick<CallOptions, 'onHeader'>> &
  Pick<CallOptions, 'contextValues'> & { headers: Record<string, string> };

import type {
  DescMessage,
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { Code, ConnectError, type ContextValues, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { hasBody, setKnownCaller } from '../admission/read-body.ts';
import { untilTimeSlice } from '../admission/time-slice.ts';
import { requestIdFrom } from '../domain/ids.ts';
import { callerIfAny, contextOf } from '../rpc/context.ts';
import { accessLineOf } from '../telemetry/access-log.ts';
import { passedBack, toRestFailure } from './errors.ts';

/**
 * Calls RPCs on behalf of one HTTP request; of a page whose reader is signed in, with their credential. A call throws
 * its failure with the paths of the request. The headers that an RPC answers with and that callers may see go onto the
 * reply.
 *
 * All calls begin with the same header and context values, so the request is identified once, and counts once against
 * each limit.
 */
export class RpcClient {
  readonly request: Request;
  readonly response: Response;
  readonly #transport: Transport;
  readonly #from: Source;
  readonly #credential: string | undefined;
  #start: CallStart | undefined;
  #isAsked = false;

  constructor(transport: Transport, { request, response }: Requested, from: Source, credential?: string) {
    this.request = request;
    this.response = response;
    this.#transport = transport;
    this.#from = from;
    this.#credential = credential;
  }

  /**
   * Calls one RPC with one message. `waits`: it may take long on purpose, and ends when the client goes, or the signal
   * is aborted.
   */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    input: MessageInitShape<I>,
    { waits = false }: { waits?: boolean | AbortSignal } = {},
  ): Promise<MessageShape<O>> {
    const { header, values } = this.begin();
    const gone = waits === false ? undefined : signalOfEnd(this.response);
    const signal = gone && waits instanceof AbortSignal ? AbortSignal.any([gone, waits]) : gone;
    // Not async, and with a function from elsewhere: calls that wait would keep all of this.
    const reply = this.#transport.unary(method, signal, undefined, header, input, values);
    return reply.then(messageFor(this.response), refused);
  }

  /** Calls one RPC with a stream of messages. What `inputs` throws, such as a `CutOff`, is thrown as it is. */
  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodClientStreaming<I, O>,
    inputs: AsyncGenerator<MessageInitShape<I>>,
  ): Promise<MessageShape<O>> {
    const { header, values } = this.begin();
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
      const reply = await this.#transport.stream(method, undefined, undefined, header, guarded(), values);
      passBack(reply.header, this.response);
      for await (const message of reply.message) return message;
      throw new ConnectError(`${method.name} sent no answer`, Code.Internal);
    } catch (error) {
      throw broken ?? toRestFailure(error);
    }
  }

  /**
   * Calls one RPC with one message, and gives the messages that it answers with. The call ends when nobody reads its
   * answer any more.
   */
  async *receive<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    input: MessageInitShape<I>,
  ): AsyncGenerator<MessageShape<O>> {
    const { header, values } = this.begin();
    const signal = signalOfEnd(this.response);
    async function* message() {
      yield input;
    }
    try {
      const reply = await this.#transport.stream(method, signal, undefined, header, message(), values);
      passBack(reply.header, this.response);
      yield* reply.message;
    } catch (error) {
      throw toRestFailure(error);
    }
  }

  /**
   * Asks whether a call would be refused before its service sees it. Anyone who has called anything before has been
   * asked.
   */
  protected async ask(ask: Admit, method: DescMethod, formId: string): Promise<void> {
    if (this.#isAsked) return;
    const { header, values } = this.begin();
    passBack(await ask(method, header, values, formId).catch(refused), this.response);
    this.#trustBody();
  }

  /** Finds out whose key the request has, before it is known what it calls. */
  async identify<Caller>(find: (header: Headers, values: ContextValues) => Promise<Caller>): Promise<Caller> {
    const { header, values } = this.begin();
    const caller = await find(header, values);
    this.#trustBody();
    return caller;
  }

  /** The body of a caller with a key does not count as that of a stranger. */
  #trustBody(): void {
    if (callerIfAny(this.begin())?.keyId !== undefined) setKnownCaller(this.request);
  }

  /** What every call begins with: what an RPC gets of the request beside its message. */
  begin(): CallStart {
    this.#isAsked = true;
    this.#start ??= startOf(this.request, this.#from, this.#credential);
    return this.#start;
  }
}

/** Takes the message from a reply, and passes its headers back. What the caller makes of it is done in a time slice. */
function messageFor(response: Response) {
  return async <Message>({ header, message }: { header: Headers; message: Message }) => {
    await untilTimeSlice();
    passBack(header, response);
    return message;
  };
}

async function refused(error: unknown): Promise<never> {
  await untilTimeSlice();
  throw toRestFailure(error);
}

/** Aborted when the client goes before its answer is complete. */
function signalOfEnd(response: Response): AbortSignal {
  const gone = new AbortController();
  // It comes once anyway; `once` would keep more memory for each of thousands that wait.
  response.on('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** The client's address and host, the request id, and of an API call the credentials. */
function startOf(request: Request, from: Source, credential: string | undefined): CallStart {
  const header = new Headers({ 'x-request-id': requestIdOf(request) });
  if (credential !== undefined) header.set('authorization', `Bearer ${credential}`);
  for (const name of passedOn[from]) {
    const value = request.headers[name];
    if (typeof value === 'string') header.set(name, value);
  }
  const isManagement = from === 'management';
  // Services tell a body without a media type by an empty one.
  if (isManagement && hasBody(request) && !header.has('content-type')) header.set('content-type', '');
  const values = contextOf({
    // The one address that Express found behind the trusted proxies, never the header as it came.
    clientAddress: request.ip ?? 'unknown',
    host: isManagement ? request.headers.host : undefined,
    line: accessLineOf(request),
  });
  return { header, values };
}

/** The id of a request in all logs. It is kept in the request's header, so that every reader gets the same. */
export function requestIdOf({ headers }: Request): string {
  const id = requestIdFrom(headers['x-request-id']);
  headers['x-request-id'] = id;
  return id;
}

const ofApi = ['authorization', 'origin', 'referer', 'accept-language'] as const;

/**
 * The headers that services get: of the management tier those that tell a browser, too, since its routes may be
 * open without a key. The credential of a page is its address, so a page passes no other on.
 */
const passedOn = {
  api: ofApi,
  management: [...ofApi, 'sec-fetch-site', 'content-type'],
  page: ['accept-language', 'user-agent'],
} as const satisfies Record<string, readonly string[]>;

function passBack(received: Headers, response: Response): void {
  // A list goes on after its reply has begun.
  if (response.headersSent) return;
  for (const name of passedBack) {
    const value = received.get(name);
    if (value !== null) response.setHeader(name, value);
  }
}

/** Whether a request came to a tier of the documented interface or to a page. */
type Source = keyof typeof passedOn;

/** Calls one RPC with one message, as `RpcClient` does. */
export type Call = RpcClient['call'];

/** One of several RPCs that are called alike. */
export type OneOf<Method extends DescMethodUnary> = DescMethodUnary<Method['input'], Method['output']>;

type Requested = { request: Request; response: Response };

type CallStart = { header: Headers; values: ContextValues };

/**
 * Throws what refuses a call before its service sees it: authentication, authorization and rate limits. The headers
 * say what is left of these.
 */
export type Admit = (
  method: DescMethod,
  header: Headers,
  values: ContextValues,
  formId: string,
) => Promise<Headers>;

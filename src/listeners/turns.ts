import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';

/**
 * Makes what bounds the calls that a client without a key has under way, and how many of them begin in one turn of the
 * event loop; the others wait. A client can send a thousand at once on several connections: most of the work is done in
 * the turn in which a call begins, and answers that nobody takes are kept in memory.
 *
 * Calls that show a key are begun at once, if their client has shown a valid one before, as those of a proxy that is
 * believed but names nobody.
 */
export function createTurns({ clientOfRequest, isKnownClient }: TurnOptions): Turns {
  const clients = new Map<string, ClientCalls>();
  /** Those whose calls began or ended in this turn, or may begin in the next one. */
  const due = new Set<string>();

  function see(client: string): void {
    if (due.size === 0) setImmediate(nextTurn);
    due.add(client);
  }

  function nextTurn(): void {
    const seen = [...due];
    due.clear();
    for (const client of seen) {
      const calls = clients.get(client);
      calls?.beginNext();
      if (calls?.mayContinue()) see(client);
      else if (calls?.isIdle()) clients.delete(client);
    }
  }

  function callsOf(client: string): ClientCalls {
    const calls = clients.get(client) ?? new ClientCalls(() => see(client));
    clients.set(client, calls);
    return calls;
  }

  return (handler) => (request, response) => {
    const client = clientOfRequest(request);
    const showsKey = request.headers.authorization !== undefined;
    if (client === undefined || (showsKey && isKnownClient(client))) {
      handler(request, response);
      return;
    }
    callsOf(client).take(request, response, () => handler(request, response));
    see(client);
  };
}

/** The calls of one client. */
class ClientCalls {
  #underWay = 0;
  #begunInTurn = 0;
  readonly #waiting: WaitingCall[] = [];
  readonly #onEnd: () => void;

  /** `onEnd` is called when one has ended. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  take(request: Request, response: Response, begin: () => void): void {
    if (this.#waiting.length > 0 || !this.#hasRoom()) this.#waiting.push({ request, response, begin });
    else this.#begin(response, begin);
  }

  /** Begins those whose turn it is. */
  beginNext(): void {
    this.#begunInTurn = 0;
    let gone = 0;
    for (const { request, response, begin } of this.#waiting) {
      if (!this.#hasRoom()) break;
      gone += 1;
      if (!isGone(request)) this.#begin(response, begin);
    }
    this.#waiting.splice(0, gone);
  }

  /** Whether there is something to do in the next turn. */
  mayContinue(): boolean {
    return this.#underWay < MAX_UNDER_WAY && (this.#waiting.length > 0 || this.#begunInTurn > 0);
  }

  isIdle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0;
  }

  #hasRoom(): boolean {
    return this.#begunInTurn < MAX_BEGUN_IN_TURN && this.#underWay < MAX_UNDER_WAY;
  }

  #begin(response: Response, begin: () => void): void {
    this.#begunInTurn += 1;
    this.#underWay += 1;
    response.on('close', this.#ended);
    begin();
  }

  readonly #ended = (): void => {
    this.#underWay -= 1;
    this.#onEnd();
  };
}

/** Whether nobody waits for the answer any more. */
function isGone(request: Request): boolean {
  return 'stream' in request ? request.stream.destroyed : request.socket.destroyed;
}

/** Some 15 ms of the dearest pages. */
const MAX_BEGUN_IN_TURN = 16;

/** More than may watch health from one address. Answers have some 160 KB for the largest form made without a key. */
const MAX_UNDER_WAY = 200;

export type TurnOptions = {
  /** Undefined for a proxy that is believed but names nobody. */
  clientOfRequest: (request: Request) => string | undefined;
  /** Whether a client has shown a valid key. */
  isKnownClient: (client: string) => boolean;
};

export type Turns = <Q extends Request, A extends Response>(
  handler: (request: Q, response: A) => void,
) => (request: Q, response: A) => void;

type WaitingCall = { request: Request; response: Response; begin: () => void };
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

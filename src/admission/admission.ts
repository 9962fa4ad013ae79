import type { Socket } from 'node:net';
import { type Log, throttledWarning } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { type ArrivalWatches, type Bodies, BodyAccount, createArrivalWatches } from './body-account.ts';
import { type Bounds, standardBounds } from './bounds.ts';
import { Client, Count, type Request, type Response, WaitingCount } from './client.ts';

/**
 * Admits or refuses each connection, request and part of a body, and counts what each client has of them. What is
 * refused is not kept.
 *
 * A client without a key can send a thousand requests at once on several connections: most of the work is done in the
 * time slice (a turn of the event loop) in which a request begins, answers that nobody takes are kept in memory, and so
 * are requests that wait. Requests that show a key begin at once, if their client has shown a valid one before, as do
 * those of a proxy that is believed but names nobody.
 */
export class Admission {
  readonly arrivals: ArrivalWatches;
  readonly #options: AdmissionOptions;
  readonly #bounds: Bounds;
  readonly #warn: ReturnType<typeof throttledWarning>;
  readonly #clients = new Map<string, Client>();
  /** For whom each counts; undefined for a proxy that is believed. */
  readonly #connections = new Map<Socket, Client | undefined>();
  readonly #waiting: WaitingCount;
  /** Those whose requests began or ended in this slice, or may begin in the next one. */
  readonly #due = new Set<Client>();
  readonly #bodies: Bodies;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#bounds = options.bounds ?? standardBounds;
    this.#warn = throttledWarning(options.log, options.now, WARN_EVERY_MS);
    const { strangers, known, arrival } = this.#bounds;
    this.#waiting = new WaitingCount(strangers.waiting);
    this.arrivals = createArrivalWatches(arrival);
    this.#bodies = {
      arrivals: this.arrivals,
      strangers: new Count(strangers.bodyBytes),
      known: new Count(known.bodyBytes),
      onRefused: () => {
        options.metrics?.onLimit('body_bytes');
        this.#warn({}, 'Bodies that are arriving fill their budget; the next ones are refused.');
      },
    };
  }

  /** How many connections are open. */
  connections(): number {
    return this.#connections.size;
  }

  destroyConnections(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
  }

  /** Counts a connection until it closes; returns false if too many are open. */
  connection(socket: Socket): boolean {
    const { maxConnections, maxConnectionsPerClient, clientOf, metrics } = this.#options;
    const { remoteAddress } = socket;
    // The client has gone while it waited to be accepted.
    if (remoteAddress === undefined) return false;
    if (this.#connections.size >= maxConnections) {
      metrics?.onLimit('connections');
      this.#warn({ maxConnections }, 'Too many connections are open; new ones are closed at once');
      return false;
    }
    const client = this.#clientNamed(clientOf(remoteAddress));
    if (client !== undefined && client.connections >= maxConnectionsPerClient) {
      metrics?.onLimit('connections_per_client');
      this.#warn(
        { client: client.name, maxConnectionsPerClient },
        'A client has too many connections; its new ones are closed at once. If it is a proxy, TRUST_PROXY exempts it',
      );
      return false;
    }
    if (client !== undefined) client.connections += 1;
    this.#connections.set(socket, client);
    // It comes once anyway; `once` would keep more memory for each connection.
    socket.on('close', () => this.#closed(socket));
    return true;
  }

  /** Begins a request now or later, or refuses it at once. What is pending is freed if its client goes. */
  request(request: Request, response: Response, { begin, refuse }: Outcomes): void {
    const client = this.#strangerOf(request);
    if (client === undefined) {
      begin();
      return;
    }
    this.#schedule(client);
    if (client.admit(request, response, begin)) return;
    this.#refusedToWait(client);
    refuse();
  }

  /**
   * Counts a request that waits for others on its connection, until the returned function is called; undefined if too
   * many wait.
   */
  hold(request: Request): (() => void) | undefined {
    const client = this.#strangerOf(request);
    if (client === undefined) return () => undefined;
    this.#schedule(client);
    const release = client.hold(request);
    if (release === undefined) this.#refusedToWait(client);
    return release;
  }

  /** An account for the body of a request. */
  body(request: Request): BodyAccount {
    return new BodyAccount(this.#bodies, () => this.#clientNamed(this.#options.clientOfRequest(request)));
  }

  /** The bytes of bodies that are held, of callers without a key and of the others. */
  heldBodies(): Record<'keyless' | 'key', Pick<Count, 'held' | 'most'>> {
    return { keyless: this.#bodies.strangers, key: this.#bodies.known };
  }

  #clientNamed(name: string | undefined): Client | undefined {
    if (name === undefined) return undefined;
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    const client = new Client(name, this.#bounds.client, this.#waiting, (changed) => this.#schedule(changed));
    this.#clients.set(name, client);
    return client;
  }

  /** Undefined for those whose requests are not bounded. */
  #strangerOf(request: Request): Client | undefined {
    const { rateLimit, clientOfRequest, isKnownClient } = this.#options;
    if (!rateLimit) return undefined;
    const name = clientOfRequest(request);
    const showsKey = request.headers.authorization !== undefined;
    return name !== undefined && showsKey && isKnownClient(name) ? undefined : this.#clientNamed(name);
  }

  #refusedToWait(client: Client): void {
    this.#options.metrics?.onLimit('waiting_requests');
    this.#warn(
      { client: client.name },
      'Too many requests without a key wait; the next ones are refused. If the client is a proxy, TRUST_PROXY tells its clients apart',
    );
  }

  #schedule(client: Client): void {
    if (this.#due.size === 0) setImmediate(this.#nextSlice);
    this.#due.add(client);
  }

  readonly #nextSlice = (): void => {
    const seen = [...this.#due];
    this.#due.clear();
    for (const client of seen) {
      client.beginNext();
      if (client.mayContinue()) this.#schedule(client);
      else this.#forgetIfIdle(client);
    }
  };

  #forgetIfIdle(client: Client): void {
    // One that was forgotten while its slice was due may have come again.
    if (client.isIdle() && this.#clients.get(client.name) === client) this.#clients.delete(client.name);
  }

  #closed(socket: Socket): void {
    const client = this.#connections.get(socket);
    this.#connections.delete(socket);
    if (client === undefined) return;
    client.connections -= 1;
    this.#forgetIfIdle(client);
  }
}

const WARN_EVERY_MS = 10_000;

type Outcomes = { begin: () => void; refuse: () => void };

export type AdmissionOptions = {
  maxConnections: number;
  maxConnectionsPerClient: number;
  /** Whether the requests of a client are bounded. */
  rateLimit: boolean;
  /** Whom an address counts for; undefined for a trusted proxy, whose connections are those of many clients. */
  clientOf: (address: string) => string | undefined;
  /** Whom a request counts for; undefined for a trusted proxy that names nobody. */
  clientOfRequest: (request: Request) => string | undefined;
  /** Whether a client has shown a valid key. */
  isKnownClient: (client: string) => boolean;
  /** Other bounds than the standard ones. */
  bounds?: Bounds;
  /** Milliseconds since 1970. */
  now: () => number;
  log: Log;
  metrics?: Pick<Metrics, 'onLimit'> | undefined;
};

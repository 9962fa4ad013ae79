import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Outside } from '../../../src/compose.ts';
import { resolveWith } from '../../../src/delivery/webhook/connector.ts';
import type { Faults } from './faults.ts';
import { runAs } from './scheduler.ts';
import { connectPair, ownEnd } from './socket.ts';
import type { Random, Receiver, WebhookObserved } from './types.ts';

/** The receivers of webhooks, with the names that lead to them. */
export class Receivers {
  readonly #options: ReceiverOptions;
  readonly #byHost = new Map<string, OpenReceiver>();
  readonly #byAddress = new Map<string, OpenReceiver>();

  constructor(options: ReceiverOptions) {
    this.#options = options;
  }

  open(name: string): Receiver {
    const host = `${name}.example`;
    const address = `5.9.0.${this.#byHost.size + 1}`;
    const known = this.#byHost.get(host);
    const opened = known ?? new OpenReceiver(name, host, address, this.#options);
    this.#byHost.set(host, opened);
    this.#byAddress.set(opened.address, opened);
    return opened;
  }

  /** How the service finds and reaches them. */
  network(): Required<Pick<Outside, 'resolveHost' | 'openConnector'>> {
    const { faults, pause } = this.#options;
    const resolve = async (host: string): Promise<string[]> => {
      await pause(1, 200);
      const found = this.#byHost.get(host);
      const fault = faults.of(['unknown-name', 'no-name-server'], found?.name ?? host);
      if (fault === 'no-name-server') throw Object.assign(new Error('queryA ETIMEOUT'), { code: 'ETIMEOUT' });
      if (found === undefined || fault !== undefined) {
        throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
      }
      return this.#options.faults.of(['dead-address'], found.name) === undefined
        ? [found.address]
        : [DEAD_ADDRESS, found.address];
    };
    const none = async () =>
      Promise.reject(Object.assign(new Error('queryAaaa ENODATA'), { code: 'ENODATA' }));
    return {
      resolveHost: resolveWith({ resolve4: resolve, resolve6: none } as unknown as Parameters<
        typeof resolveWith
      >[0]),
      openConnector:
        () =>
        ({ hostname }, callback) => {
          const receiver = this.#byAddress.get(hostname);
          if (hostname === DEAD_ADDRESS)
            void this.#options.pause(10_000, 10_001).then(() => callback(timedOut(), null));
          else if (receiver === undefined) callback(refused(), null);
          else receiver.connect(callback as Callback);
        },
    };
  }
}

class OpenReceiver implements Receiver {
  readonly name: string;
  readonly url: string;
  readonly address: string;
  readonly #host: string;
  readonly #options: ReceiverOptions;
  readonly #server: Server;
  #always: number | null = null;

  constructor(name: string, host: string, address: string, options: ReceiverOptions) {
    this.name = name;
    this.#host = host;
    this.address = address;
    this.url = `https://${host}/hook`;
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  always(status: number | null): void {
    this.#always = status;
  }

  connect(callback: Callback): void {
    const { faults, random, onPass, pause, track } = this.#options;
    const fault = faults.of(['refused', 'reset'], this.name);
    const [near, far] = connectPair({
      near: ownEnd(this.address),
      far: runAs(undefined, () => ownEnd('10.0.0.1')),
      latency: () => random.whole(1, 60),
      onPass: (direction) => onPass(near.owner, `webhook ${direction}`),
    });
    track(near);
    void pause(1, 100).then(() => {
      if (fault === 'refused') return callback(refused(), null);
      runAs(undefined, () => this.#server.emit('connection', far));
      if (fault === 'reset') void runAs(undefined, () => pause(1, 300)).then(() => far.reset());
      callback(null, near);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { faults, random, pause, now, onWebhook } = this.#options;
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const always = this.#always;
    const fault =
      always === null ? faults.of(['silent', 'lost', '3xx', '4xx', '5xx', 'slow'], this.name) : undefined;
    const tooSlow = fault === 'slow' && random.chance(0.4);
    const status =
      always ??
      (fault === '3xx'
        ? random.pick([301, 302, 303, 307, 308])
        : fault === '4xx'
          ? random.pick([400, 404, 422, 429])
          : fault === '5xx'
            ? random.pick([500, 502, 503])
            : random.pick([200, 204]));
    const answered = fault === 'silent' || fault === 'lost' ? fault : tooSlow ? 'lost' : status;
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    onWebhook({
      kind: 'webhook',
      at: now(),
      receiver: this.name,
      url: `https://${this.#host}${request.url}`,
      headers,
      body,
      answered,
    });
    if (fault === 'silent') return;
    if (fault === 'lost') return void request.socket.destroy();
    if (fault === 'slow') await pause(tooSlow ? 11_000 : 1_000, tooSlow ? 14_000 : 8_000);
    else await pause(1, 80);
    response.writeHead(status).end(status === 204 ? undefined : 'seen');
  }
}

/** An address of a receiver that answers no attempt to connect. */
const DEAD_ADDRESS = '5.9.255.255';

function timedOut(): Error {
  return Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT' });
}

function refused(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
}

type Callback = (error: Error | null, socket: unknown) => void;

export type ReceiverOptions = PeerOptions & { onWebhook: (observed: WebhookObserved) => void };

/** What every peer of the service has. */
export type PeerOptions = {
  now: () => number;
  random: Random;
  faults: Faults;
  /** Waits for some milliseconds of this range. */
  pause: (least: number, most: number) => Promise<void>;
  /** Bytes have passed the network, of this process; it can die of it. */
  onPass: (owner: unknown, place: string) => void;
  /** Keeps a connection of a process, to be broken when that dies. */
  track: (socket: import('./socket.ts').MemorySocket) => void;
};

import { Duplex } from 'node:stream';
import { currentOwner, type Owner, runAs } from './scheduler.ts';

/**
 * Makes both ends of a connection in memory. What one writes arrives at the other after `latency()` milliseconds, in
 * order. `onPass` is called before bytes arrive.
 */
export function connectPair(options: PairOptions): [MemorySocket, MemorySocket] {
  const { near, far, latency, onPass } = options;
  const first = new MemorySocket(near, latency, () => onPass?.('sent'));
  const second = new MemorySocket(far, latency, () => onPass?.('received'));
  first.peer = second;
  second.peer = first;
  return [first, second];
}

/** One end of a connection, with as much of `net.Socket` as HTTP and SMTP clients and servers use. */
export class MemorySocket extends Duplex {
  peer!: MemorySocket;
  readonly encrypted = false;
  readonly connecting = false;
  readonly remoteAddress: string;
  readonly remotePort = 40_000;
  readonly localAddress = '10.0.0.1';
  readonly localPort = 443;
  readonly owner: Owner | undefined;
  /** What is written is thrown away: the network has lost it. */
  isDeaf = false;
  readonly #latency: () => number;
  readonly #onPass: () => void;
  #arrivesAt = 0;
  #idle: NodeJS.Timeout | undefined;
  #idleMs = 0;

  constructor({ owner, remoteAddress }: End, latency: () => number, onPass: () => void) {
    super({ allowHalfOpen: true });
    this.owner = owner;
    this.remoteAddress = remoteAddress;
    this.#latency = latency;
    this.#onPass = onPass;
    // Whoever had the connection may have let go of it when it is reset.
    this.on('error', () => undefined);
  }

  get readyState(): string {
    return this.destroyed ? 'closed' : 'open';
  }

  setTimeout(ms: number, callback?: () => void): this {
    clearTimeout(this.#idle);
    this.#idleMs = ms;
    if (ms === 0) {
      if (callback) this.off('timeout', callback);
      return this;
    }
    if (callback) this.once('timeout', callback);
    this.#idle = runAs(this.owner, () => setTimeout(() => this.emit('timeout'), ms));
    return this;
  }

  get timeout(): number {
    return this.#idleMs;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** As when the other machine says that it knows nothing of this connection. */
  reset(): void {
    this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#touch();
    this.#send(() => {
      if (this.peer.isReady()) this.peer.arrive(chunk);
    });
    done();
  }

  override _final(done: () => void): void {
    this.#send(() => {
      if (this.peer.isReady()) this.peer.push(null);
    });
    done();
  }

  override _read(): void {}

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#idle);
    const isClean = error === null && this.writableFinished;
    this.#send(() => {
      if (!isClean && this.peer.isReady()) this.peer.reset();
    });
    done(error);
  }

  /** Whether bytes that arrive are taken. */
  isReady(): boolean {
    return !this.destroyed && this.owner?.isDead !== true;
  }

  arrive(chunk: Buffer): void {
    this.#touch();
    this.push(chunk);
  }

  #touch(): void {
    this.#idle?.refresh();
  }

  /** Belongs to the network: it happens also if the sender has died. */
  #send(arrive: () => void): void {
    if (this.isDeaf) return;
    this.#arrivesAt = Math.max(this.#arrivesAt, Date.now() + this.#latency());
    messagesUnderWay += 1;
    runAs(undefined, () =>
      setTimeout(() => {
        messagesUnderWay -= 1;
        this.#onPass();
        runAs(this.peer.owner, arrive);
      }, this.#arrivesAt - Date.now()),
    );
  }
}

/** Whether something that was written has not arrived. */
export function isNetworkQuiet(): boolean {
  return messagesUnderWay === 0;
}

let messagesUnderWay = 0;

export function ownEnd(remoteAddress: string): End {
  return { owner: currentOwner(), remoteAddress };
}

type End = { owner: Owner | undefined; remoteAddress: string };

type PairOptions = {
  near: End;
  far: End;
  latency: () => number;
  /** `sent`: bytes of the near end are about to arrive at the far one. */
  onPass?: (direction: 'sent' | 'received') => void;
};

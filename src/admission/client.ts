import type { Request, Response } from '../telemetry/access-log.ts';
import type { Bounds, WaitingBounds } from './bounds.ts';

/** What one client has, over all its connections. */
export class Client {
  readonly name: string;
  /** How many are open. */
  connections = 0;
  /** Of bodies that are held for it, while it has shown no key. */
  readonly bodyBytes: Count;
  #underWay = 0;
  #begunInSlice = 0;
  readonly #queue = new Set<WaitingRequest>();
  readonly #bounds: Bounds['client'];
  readonly #waiting: WaitingCount;
  readonly #waitingOfAll: WaitingCount;
  readonly #onChange: (client: Client) => void;

  /** `onChange` is called when something of it has ended. */
  constructor(
    name: string,
    bounds: Bounds['client'],
    waitingOfAll: WaitingCount,
    onChange: (client: Client) => void,
  ) {
    this.name = name;
    this.bodyBytes = new Count(bounds.bodyBytes);
    this.#bounds = bounds;
    this.#waiting = new WaitingCount(bounds.waiting);
    this.#waitingOfAll = waitingOfAll;
    this.#onChange = onChange;
  }

  /** Begins a request now or later; returns false, and keeps nothing of it, if too many wait. */
  admit(request: Request, response: Response, begin: () => void): boolean {
    if (this.#queue.size === 0 && this.#hasRoom()) {
      this.#begin(response, begin);
      return true;
    }
    const release = this.hold(request);
    if (release === undefined) return false;
    const waiting: WaitingRequest = { request, response, begin, leave };
    const queue = this.#queue;
    function leave() {
      response.off('close', leave);
      queue.delete(waiting);
      release?.();
    }
    response.on('close', leave);
    queue.add(waiting);
    return true;
  }

  /** Counts a request that waits, until the returned function is called; undefined if too many do. */
  hold({ url = '', rawHeaders }: Request): (() => void) | undefined {
    const headerBytes = rawHeaders.reduce((sum, text) => sum + text.length, url.length);
    const counts = [this.#waiting, this.#waitingOfAll];
    if (!counts.every((count) => count.hasRoom(headerBytes))) return undefined;
    for (const count of counts) count.add(1, headerBytes);
    return () => {
      for (const count of counts) count.add(-1, -headerBytes);
      this.changed();
    };
  }

  /** Begins those that waited longest, as many as may in this slice. */
  beginNext(): void {
    this.#begunInSlice = 0;
    for (const { request, response, begin, leave } of this.#queue) {
      if (!this.#hasRoom()) break;
      leave();
      if (!isGone(request)) this.#begin(response, begin);
    }
  }

  /** Whether there is something to do in the next slice. */
  mayContinue(): boolean {
    return this.#underWay < this.#bounds.underWay && (this.#queue.size > 0 || this.#begunInSlice > 0);
  }

  /** Whether there is nothing of it. */
  isIdle(): boolean {
    const counted = this.connections + this.bodyBytes.held + this.#underWay + this.#begunInSlice;
    return counted === 0 && this.#waiting.isEmpty();
  }

  /** Something of it has ended. */
  changed(): void {
    this.#onChange(this);
  }

  #hasRoom(): boolean {
    return this.#begunInSlice < this.#bounds.begunInSlice && this.#underWay < this.#bounds.underWay;
  }

  #begin(response: Response, begin: () => void): void {
    this.#begunInSlice += 1;
    this.#underWay += 1;
    response.on('close', this.#ended);
    begin();
  }

  readonly #ended = (): void => {
    this.#underWay -= 1;
    this.changed();
  };
}

/** How many requests wait, and the bytes of their headers. */
export class WaitingCount {
  readonly #requests: Count;
  readonly #headerBytes: Count;

  constructor(bounds: WaitingBounds) {
    this.#requests = new Count(bounds.requests);
    this.#headerBytes = new Count(bounds.headerBytes);
  }

  hasRoom(headerBytes: number): boolean {
    return this.#requests.hasRoom(1) && this.#headerBytes.hasRoom(headerBytes);
  }

  add(requests: 1 | -1, headerBytes: number): void {
    this.#requests.held += requests;
    this.#headerBytes.held += headerBytes;
  }

  isEmpty(): boolean {
    return this.#requests.held === 0;
  }
}

/** So much of something that has a bound. */
export class Count {
  held = 0;
  readonly most: number;

  constructor(most: number) {
    this.most = most;
  }

  hasRoom(more: number): boolean {
    return this.held + more <= this.most;
  }
}

/** Whether nobody waits for the answer any more. */
export function isGone(request: Request): boolean {
  return 'stream' in request ? request.stream.destroyed : request.socket.destroyed;
}

type WaitingRequest = { request: Request; response: Response; begin: () => void; leave: () => void };

export type { Request, Response };

/**
 * One thing that somebody outside of the service saw, in order. `at` is in milliseconds since 1970, by the true clock
 * of the world: that of a process can be off.
 */
export type Observed =
  | CallObserved
  | ReplyObserved
  | UnansweredObserved
  | WebhookObserved
  | MailObserved
  | FileObserved
  | FaultObserved
  | CrashObserved
  | StartObserved
  | JumpObserved;

/** Somebody calls the service: the request is on its way. */
type CallObserved = { kind: 'call'; at: number; request: CallRequest };

/** A whole reply has come back to whoever called. */
type ReplyObserved = { kind: 'reply'; at: number; request: CallRequest; reply: Reply };

/** No reply came: the process died, the connection broke, or the caller gave up. The call may have had its effect. */
type UnansweredObserved = { kind: 'unanswered'; at: number; request: CallRequest; why: string };

/** A request has arrived whole at a receiver of webhooks. */
export type WebhookObserved = {
  kind: 'webhook';
  at: number;
  /** The host name of the receiver. */
  receiver: string;
  url: string;
  headers: Record<string, string>;
  body: string;
  /**
   * What it answers: a status, or `lost` (taken, but the connection broke before the answer), or `silent` (taken, and
   * never answered).
   */
  answered: number | 'lost' | 'silent';
};

/** A mail has arrived whole at the mail server, or was refused by it at `step`. */
export type MailObserved = {
  kind: 'mail';
  at: number;
  from: string;
  to: string[];
  /** As sent, headers and body; empty if refused before. */
  raw: string;
  step: 'from' | 'to' | 'data';
  /** What the server answers at this step: 250 takes it, `lost` takes it but breaks the connection before the answer. */
  answered: number | 'lost';
};

/** A call of the service to the store of uploads. */
export type FileObserved = {
  kind: 'file';
  at: number;
  method: 'put' | 'get' | 'remove';
  id: string;
  /** `lost`: it was done, but the service was told that it failed. */
  answered: 'done' | 'missing' | 'failed' | 'lost';
};

/** The world misbehaves from now on (`ms` long), or once. */
export type FaultObserved = { kind: 'fault'; at: number; fault: string; about: string; ms?: number };

/** A process of the service lost its memory. `place` says where: a statement's fingerprint or a network event. */
type CrashObserved = { kind: 'crash'; at: number; process: number; place: string };

/**
 * A process of the service has started on the database that is there. `stopped` if one was stopped in order. `rotated`:
 * the secret key was changed while none ran.
 */
type StartObserved = { kind: 'start' | 'stopped' | 'rotated'; at: number; process: number };

/** Idle time was jumped over. */
type JumpObserved = { kind: 'jump'; at: number; from: number };

export type CallRequest = {
  /** Numbers the calls, from 1. */
  id: number;
  /** Who calls, as the actors name themselves. */
  actor: string;
  /** What the actor means by it, such as `submit`. Shown in traces and counted in the summary. */
  operation: string;
  /** Of what the process number is that gets it. */
  process: number;
  method: string;
  /** With query; of an RPC `/headlessforms.v1.FormsService/GetForm`. */
  path: string;
  headers: Record<string, string>;
  /** What was sent: JSON values as they are, other bodies as text or bytes. */
  body: unknown;
};

export type Reply = {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** Parsed, if it is JSON; else undefined. */
  json: ReturnType<typeof JSON.parse>;
};

/** Numbers from the seed alone. Each actor has its own (`fork`), so that one's choices don't move the others'. */
export type Random = {
  /** In [0, 1). */
  number(): number;
  /** A whole number in [least, most]. */
  whole(least: number, most: number): number;
  /** True in this share of the calls. */
  chance(share: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** Lower-case letters and digits. */
  text(length: number): string;
  fork(name: string): Random;
};

/** What the actors have. Everything they do goes through here, and everything they see is observed. */
export type World = {
  /** Milliseconds since 1970. */
  now(): number;
  sleep(ms: number): Promise<void>;
  random: Random;
  /** A key with the scope `*` of the default project, there from the start. */
  key: string;
  /** `BASE_URL`, which links in mails and replies begin with. */
  baseUrl: string;
  /** When the days end, in milliseconds since 1970. Then the actors return, faults end, and the service settles. */
  endsAt: number;
  /**
   * Calls a running process of the service by HTTP/1.1 over a connection in memory. The reply, or undefined if none
   * came within `timeoutMs` (default 30,000). While no process runs it waits for one (which is not a call yet).
   */
  call(actor: string, operation: string, call: Call): Promise<Reply | undefined>;
  receivers: {
    /** Opens a receiver of webhooks, at `https://NAME.example/hook`, though TLS is not simulated. */
    open(name: string): Receiver;
  };
  mailbox: {
    /** Mails the server has taken (answered 250 or `lost`) for an address so far, oldest first, as sent. */
    of(address: string): string[];
    /** The first link in the mails for an address, newest first, that matches; decoded from quoted-printable. */
    linkIn(address: string, pattern: RegExp): string | undefined;
  };
  /** Faults that last for a while, all seeded by the world itself; actors may add one (`about` a receiver or address). */
  faults: {
    begin(fault: Fault, about: string, ms: number): void;
  };
};

export type Call = {
  method: string;
  /** A path of the service, or a whole URL of it, as links are. */
  path: string;
  /** The bearer; `world.key` if undefined, none if null. */
  key?: string | null;
  headers?: Record<string, string>;
  /** An object or array goes as JSON, a string or bytes as they are. */
  body?: unknown;
  timeoutMs?: number;
};

export type Receiver = {
  name: string;
  url: string;
  /** Answers every request with this status (such as 410) from now on, over all faults; null: as the faults say. */
  always(status: number | null): void;
};

/**
 * What can be wrong with a peer. Of receivers (about: name, or `*`): `refused`, `reset`, `slow`, `silent`, `lost` (taken
 * but the reply is lost), `4xx`, `5xx`, `unknown-name`, `no-name-server`. Of the mail server (about: `*`, or an address):
 * `mail-refused`, `mail-reset`, `mail-slow`, `mail-silent`, `mail-lost`, `mail-scan` (taken, and answered only after it
 * was scanned), `mail-4xx-sender`, `mail-5xx-sender`, `mail-4xx-recipient`, `mail-5xx-recipient`, `mail-4xx-data`. Of the store of uploads (about: `*`): `store-away`,
 * `store-lost`. Of the process's clock (about: milliseconds it is off by): `clock-off`.
 */
export type Fault =
  | 'refused'
  | 'reset'
  | 'slow'
  | 'silent'
  | 'lost'
  | '3xx'
  | '4xx'
  | '5xx'
  | 'dead-address'
  | 'unknown-name'
  | 'no-name-server'
  | 'mail-refused'
  | 'mail-reset'
  | 'mail-slow'
  | 'mail-silent'
  | 'mail-lost'
  | 'mail-scan'
  | 'mail-4xx-sender'
  | 'mail-5xx-sender'
  | 'mail-4xx-recipient'
  | 'mail-5xx-recipient'
  | 'mail-4xx-data'
  | 'store-away'
  | 'store-lost'
  | 'clock-off';

/**
 * `test/days/actors/index.ts` exports this: keys, owners and visitors that act until `world.endsAt`, and then return.
 * It can throw `ActorError` style errors only for what is a bug of the actors.
 */
export type Actors = (world: World) => Promise<void>;

/**
 * `test/days/ledger/index.ts` exports this as `findLosses`: judges by what was observed. The end state is read when the
 * days are over, faults have ended and the service had time to finish (all retries, a day of sweeps).
 */
export type Ledger = (observed: readonly Observed[], end: EndState) => Promise<Finding[]>;

export type EndState = {
  /** Calls the service as `World.call` does, without faults. */
  call(call: Call): Promise<Reply>;
  /** Raw rows, only for "nothing erased anywhere", "counters equal rows" and "queues empty". */
  rows(sql: string, params?: unknown[]): Promise<Record<string, unknown>[]>;
  /** The ids and bytes in the store of uploads. */
  files: ReadonlyMap<string, Uint8Array>;
  now: number;
  baseUrl: string;
  key: string;
};

/** Sweeps come each minute, but idle time is jumped over with them: only for so long, in milliseconds. */
export const LONGEST_UNSWEPT_MS = 3 * 3_600_000;

/** A promise that was not kept. Rule and reason are fixed words (no ids): they are compared with the expected ones. */
export type Finding = {
  rule: string;
  reason: string;
  /** What it is about, with ids, for the person who reads. */
  detail: string;
  at?: number;
};

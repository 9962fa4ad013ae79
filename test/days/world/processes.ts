import { createServer, request as httpRequest, type Server } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { PGlite } from '@electric-sql/pglite';
import { pino } from 'pino';
import { Http1Request } from '../../../src/admission/chunk-budget.ts';
import { sealAnew } from '../../../src/cli/admin/rotate-secrets.ts';
import { compose, type Outside, type Service } from '../../../src/compose.ts';
import type { Config } from '../../../src/config.ts';
import { parseSecretKey, SecretBox, type SecretKey } from '../../../src/domain/secrets/secret-key.ts';
import { verifySecretKey } from '../../../src/secret-key.ts';
import { AuditWriter } from '../../../src/store/audit/audit-writer.ts';
import { machineClock } from '../../../src/store/database/clock.ts';
import type { CrashPlan } from './crash-plan.ts';
import { databaseOf, type Process } from './database.ts';
import type { Faults } from './faults.ts';
import { runAs } from './scheduler.ts';
import { connectPair, type MemorySocket, ownEnd } from './socket.ts';
import type { RunStatement } from './statements.ts';
import type { CallRequest, Observed, Random, Reply } from './types.ts';

/** The processes of the service: none, one or two at a time, over one database. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #sockets = new Set<MemorySocket>();
  #running: RunningProcess[] = [];
  #waiting: (() => void)[] = [];
  #alive: ServiceProcess[] = [];
  #count = 0;
  #secretKey = parseSecretKey('ab'.repeat(32));
  #rotating: Promise<unknown> = Promise.resolve();

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#running.length;
  }

  /** Whether no statement is under way. */
  isQuiet(): boolean {
    return this.#alive.every((process) => process.isDead || process.underWay() === 0);
  }

  /** Starts one more. It can die meanwhile; then another one is started by itself. */
  async start(): Promise<void> {
    await this.#rotating;
    this.#count += 1;
    const { observe, now } = this.#options;
    const process = newProcess(this.#count);
    this.#alive = [...this.#alive.filter(({ isDead }) => !isDead), process];
    observe({ kind: 'start', at: now(), process: process.number });
    const composing = runAs(process, () => this.#compose(process));
    const running = await Promise.race([composing, process.death.catch(() => undefined)]);
    if (running === undefined) return;
    this.#running.push(running);
    for (const proceed of this.#waiting.splice(0)) proceed();
  }

  /** Stops one in order, if one runs: what is under way is finished. */
  async stop(): Promise<void> {
    const stopping = this.#running.shift();
    if (stopping === undefined) return;
    const { process, service, server } = stopping;
    const stopped = runAs(process, async () => {
      service.api.drain();
      service.api.endStreams();
      await stopping.idle();
      await service.close();
      server.closeAllConnections();
    });
    await Promise.race([stopped, process.death.catch(() => undefined)]);
    if (process.isDead) return;
    process.isDead = true;
    this.#options.observe({ kind: 'stopped', at: this.#options.now(), process: process.number });
  }

  /** Stops all, has `admin rotate-secrets` change the secret key, and starts one with the new key. */
  async rotateSecrets(): Promise<void> {
    while (this.#running.length > 0) await this.stop();
    // One that starts has the former key.
    if (this.#alive.some(({ isDead }) => !isDead)) return;
    const next = parseSecretKey(
      this.#options.random.fork(`key ${this.#count}`).text(64).replaceAll(/[g-z]/g, 'f'),
    );
    this.#rotating = this.#rotateTo(next);
    await this.#rotating;
    this.#options.observe({ kind: 'rotated', at: this.#options.now(), process: this.#count });
    await this.start();
  }

  async #rotateTo(next: SecretKey): Promise<void> {
    const { pglite, statements, now } = this.#options;
    const log = pino({ level: 'silent' });
    const onStatement = () => undefined;
    const options = { statements, delay: () => 1, onStatement, log };
    const database = await databaseOf(newProcess(0), pglite, options);
    const auditWriter = new AuditWriter({ database, now, log });
    const context = {
      database,
      auditWriter,
      user: 'operator',
      schedule: [0],
      now,
      onChange: () => undefined,
    };
    await sealAnew(context, { current: this.#secretKey, previous: undefined, next });
    await auditWriter.close();
    this.#secretKey = next;
  }

  /** Drops the memory of a process, and breaks its connections. */
  crash(process: ServiceProcess, place: string): void {
    if (process.isDead) return;
    const { observe, now, random, sleep } = this.#options;
    observe({ kind: 'crash', at: now(), process: process.number, place });
    process.isDead = true;
    process.die();
    this.#running = this.#running.filter((each) => each.process !== process);
    for (const socket of this.#sockets) {
      if (socket.owner !== process) continue;
      this.#sockets.delete(socket);
      if (!socket.peer.destroyed) runAs(undefined, () => setTimeout(() => socket.peer.reset(), 1));
    }
    runAs(undefined, () => void sleep(random.whole(50, 90_000)).then(() => this.start()));
  }

  /** Keeps a connection of a process, to be broken when it dies. */
  track(socket: MemorySocket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Bytes pass the network: a process can die of it. */
  onPass = (owner: unknown, place: string): void => {
    const process = owner as ServiceProcess | undefined;
    if (process === undefined || process.isDead) return;
    if (this.#options.plan.reaches(`network: ${place}`)) this.crash(process, `network: ${place}`);
  };

  /** Calls one that runs, as soon as one does. */
  async call(request: Omit<CallRequest, 'process' | 'id'>, options: CallOptions): Promise<Reply | undefined> {
    while (this.#running.length === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const { observe, now, random } = this.#options;
    const running = random.pick(this.#running);
    const { process, server } = running;
    this.#calls += 1;
    const made = { id: this.#calls, ...request, process: process.number };
    observe({ kind: 'call', at: now(), request: made });
    const [near, far] = connectPair({
      near: runAs(undefined, () => ownEnd('10.0.0.1')),
      far: runAs(process, () => ownEnd(options.address)),
      latency: () => random.whole(1, 30),
      onPass: (direction) => this.onPass(process, `call ${direction}`),
    });
    this.track(far);
    running.begin();
    far.once('close', () => running.end());
    runAs(process, () => server.emit('connection', far));
    // The network loses some replies.
    if (random.chance(options.lostShare)) far.isDeaf = true;
    const answered = await send(near, made, options.timeoutMs).then(
      (reply) => ({ reply }),
      (error: unknown) => ({
        why: error instanceof Error && 'code' in error ? String(error.code) : String(error),
      }),
    );
    near.destroy();
    if ('why' in answered) {
      if (far.isDeaf) far.reset();
      observe({ kind: 'unanswered', at: now(), request: made, why: answered.why });
      return undefined;
    }
    observe({ kind: 'reply', at: now(), request: made, reply: answered.reply });
    return answered.reply;
  }

  #calls = 0;

  async #compose(process: ServiceProcess): Promise<RunningProcess> {
    const { config, pglite, statements, network, uploads, random, faults, plan, onLog } = this.#options;
    const secretKey = this.#secretKey;
    const secrets = new SecretBox(secretKey, undefined);
    const log = pino(
      { level: 'warn', base: null, timestamp: false },
      { write: (line) => onLog(process.number, line) },
    );
    const delays = random.fork(`statements ${process.number}`);
    const database = await databaseOf(process, pglite, {
      statements,
      delay: () => delayOf(delays),
      onStatement: (when, fingerprint) => {
        if (process.isDead) return;
        this.#options.onStatement(process.number, when, fingerprint);
        const place = `${when} ${fingerprint}`;
        if (plan.reaches(place)) this.crash(process, place);
      },
      log,
    });
    await verifySecretKey(database, secrets);
    const service = await compose(config, {
      ...network,
      database,
      ...uploads,
      disk: { isLow: () => false },
      secrets,
      secretKey,
      now: machineClock(() => Date.now() + faults.clockOffset()),
      random: Math.random,
      log,
    });
    const server = createServer(
      { IncomingMessage: Http1Request, requestTimeout: 0, headersTimeout: 0 },
      service.handlers.http,
    );
    let open = 0;
    let proceed = () => {};
    return {
      process,
      service,
      server,
      begin() {
        open += 1;
      },
      end() {
        open -= 1;
        if (open === 0) proceed();
      },
      idle: () => (open === 0 ? Promise.resolve() : new Promise<void>((resolve) => (proceed = resolve))),
    };
  }
}

/** One request on its own connection. */
function send(socket: MemorySocket, made: CallRequest, timeoutMs: number): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const { method, path, headers, body } = made;
    const request = httpRequest({
      method,
      path,
      headers: { ...headers, connection: 'close' },
      createConnection: () => socket as never,
    });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(Object.assign(new Error('No reply came'), { code: 'TIMEOUT' }));
    }, timeoutMs);
    request.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.on('response', (response) => {
      buffer(response)
        .then(
          (bytes) => {
            const text = bytes.toString('utf8');
            const isJson = String(response.headers['content-type']).includes('json');
            resolve({
              status: response.statusCode ?? 0,
              headers: Object.fromEntries(
                Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
              ),
              text,
              json: isJson && text !== '' ? JSON.parse(text) : undefined,
            });
          },
          (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
        )
        .finally(() => clearTimeout(timer));
    });
    if (body === undefined) request.end();
    else request.end(typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body));
  });
}

function newProcess(number: number): ServiceProcess {
  let underWay = 0;
  const { promise: death, reject } = Promise.withResolvers<never>();
  death.catch(() => undefined);
  return {
    number,
    isDead: false,
    death,
    die: () => reject(new Error('The process has died')),
    underWay: () => underWay,
    busy() {
      underWay += 1;
      return {
        [Symbol.dispose]() {
          underWay -= 1;
        },
      };
    },
  };
}

/** Most statements are quick, and some are not. */
function delayOf(random: Random): number {
  return random.chance(0.9)
    ? random.whole(1, 4)
    : random.chance(0.9)
      ? random.whole(5, 60)
      : random.whole(60, 900);
}

type ServiceProcess = Process & { number: number; die: () => void; underWay: () => number };

type RunningProcess = {
  process: ServiceProcess;
  service: Service;
  server: Server;
  begin: () => void;
  end: () => void;
  /** When no call is under way. */
  idle: () => Promise<void>;
};

type CallOptions = {
  /** Who calls, as an IP address. */
  address: string;
  timeoutMs: number;
  /** The share of replies that are lost on their way. */
  lostShare: number;
};

type ProcessesOptions = {
  config: Config;
  pglite: PGlite;
  statements: RunStatement;
  network: Pick<Outside, 'resolveHost' | 'openConnector' | 'openMailSocket'>;
  uploads: Pick<Outside, 'uploads' | 'spool'>;
  random: Random;
  faults: Faults;
  plan: CrashPlan;
  observe: (observed: Observed) => void;
  onStatement: (process: number, when: 'before' | 'after', fingerprint: string) => void;
  onLog: (process: number, line: string) => void;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
};

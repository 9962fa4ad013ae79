import type { PGlite } from '@electric-sql/pglite';
import { readConfig } from '../../../src/config.ts';
import { openFiles } from '../../../src/store/embedded/files.ts';
import { CrashPlan } from './crash-plan.ts';
import { Faults } from './faults.ts';
import { MailServer } from './mail-server.ts';
import { Processes } from './processes.ts';
import { createRandom } from './random.ts';
import { type PeerOptions, Receivers } from './receivers.ts';
import type { Scheduler } from './scheduler.ts';
import { isNetworkQuiet } from './socket.ts';
import { createStatements } from './statements.ts';
import { Trace } from './trace.ts';
import type { Actors, Call, Fault, Finding, Ledger, Observed, Random, Reply, World } from './types.ts';
import { LONGEST_UNSWEPT_MS } from './types.ts';
import { Uploads } from './uploads.ts';

/** Lets the service live through some days, and judges what was seen of it. */
export async function live(scheduler: Scheduler, options: DayOptions): Promise<Outcome> {
  const { seed, hours, crashes, places, path, isJumping, isRehearsal, dump, act, findLosses } = options;
  const trace = new Trace(scheduler.now);
  const random = createRandom(`seed ${seed}`);
  const now = () => scheduler.now;
  const sleep = (ms: number) => new Promise<void>((resolve) => scheduler.start(resolve, ms, false, true));
  const observed: Observed[] = [];
  const observe = (event: Observed) => {
    observed.push(event);
    trace.add(event);
    lastEventAt = scheduler.now;
  };
  let lastEventAt = scheduler.now;

  const faults = new Faults(now, observe);
  const plan = new CrashPlan(now);
  const peer = (name: string): PeerOptions => {
    const own = random.fork(name);
    return {
      now,
      random: own,
      faults,
      pause: (least, most) => sleep(own.whole(least, most)),
      onPass: (owner, place) => processes.onPass(owner, place),
      track: (socket) => processes.track(socket),
    };
  };
  const receivers = new Receivers({ ...peer('receivers'), onWebhook: observe });
  const mails = new MailServer({ ...peer('mail'), onMail: observe });
  const uploads = new Uploads({ ...peer('uploads'), onFile: observe });
  const pglite: PGlite = await openFiles({ place: undefined, dump });
  const processes: Processes = new Processes({
    config: readConfig(settings),
    pglite,
    statements: createStatements(pglite),
    network: { ...receivers.network(), openMailSocket: mails.openMailSocket },
    uploads: { uploads: uploads.store, spool: uploads.spool },
    random: random.fork('processes'),
    faults,
    plan,
    observe,
    onStatement: (process, when, fingerprint) => {
      if (when === 'before') trace.addStatement(scheduler.now, process, fingerprint);
    },
    onLog: (process, line) => trace.addLine(scheduler.now, `log ${process} ${line.trim()}`),
    now,
    sleep,
  });

  const beginsAt = scheduler.now;
  const endsAt = beginsAt + hours * HOUR_MS;
  if (places !== undefined) {
    plan.draw(random.fork('crashes'), { crashes, places, path, begin: beginsAt, end: endsAt });
  }
  const mayJump = () => {
    const steps = random.fork('jumps');
    let sweptAt = scheduler.now;
    const nextDue = async () => {
      const { rows } = await pglite.query<{ due: string | null }>(NEXT_DUE);
      const due = rows[0]?.due == null ? Number.POSITIVE_INFINITY : Number(rows[0].due);
      return Math.max(scheduler.now + 10_000, Math.min(due, scheduler.now + steps.whole(...JUMP_MS)));
    };
    scheduler.onJump = (from) => {
      observed.push({ kind: 'jump', at: scheduler.now, from });
      trace.addLine(scheduler.now, `jump from ${from - beginsAt}`);
      lastEventAt = scheduler.now - QUIET_MS + SETTLE_MS;
      const isSweeping = scheduler.now - sweptAt > SWEEP_MS;
      if (isSweeping) sweptAt = scheduler.now;
      return isSweeping;
    };
    scheduler.idleUntil = () => {
      const isQuiet = scheduler.now - lastEventAt >= QUIET_MS && processes.isQuiet() && isNetworkQuiet();
      return isQuiet ? nextDue() : undefined;
    };
  };
  if (isJumping) mayJump();
  let lostShare = LOST_SHARE;
  const call = (actor: string, operation: string, given: Call): Promise<Reply | undefined> =>
    processes.call(requestOf(actor, operation, given), {
      address: addressOf(actor),
      timeoutMs: given.timeoutMs ?? 30_000,
      lostShare,
    });
  const world: World = {
    now,
    sleep,
    random: random.fork('actors'),
    key: settings.BOOTSTRAP_API_KEY,
    baseUrl: settings.BASE_URL,
    endsAt,
    call,
    receivers,
    mailbox: mails,
    faults,
  };

  const day = async (): Promise<Finding[]> => {
    await processes.start();
    const acted = act(world);
    let isOver = false;
    const until = () => isOver || scheduler.now >= endsAt;
    void trouble(world, random.fork('faults'), until);
    void changeProcesses(world, processes, random.fork('restarts'), until);
    await acted;
    isOver = true;
    if (isRehearsal) return [];
    mayJump();
    faults.end();
    plan.end();
    lostShare = 0;
    await sleep(AFTERWARDS_MS);
    trace.judged(scheduler.now);
    const reply = async (given: Call) => {
      const found = await call('ledger', 'read', given);
      if (found === undefined) throw new Error(`No reply to ${given.method} ${given.path}`);
      return found;
    };
    return findLosses(observed, {
      call: reply,
      rows: async (sql, params) => (await pglite.query<Record<string, unknown>>(sql, params)).rows,
      files: uploads.files,
      now: scheduler.now,
      baseUrl: world.baseUrl,
      key: world.key,
    });
  };
  const findings = await scheduler.run(day()).catch((error: unknown) => {
    trace.addLine(scheduler.now, `error ${error instanceof Error ? error.stack : String(error)}`);
    return [{ rule: 'the days go on', reason: 'An error ended them', detail: String(error) }];
  });
  return {
    findings,
    observed,
    trace,
    passed: plan.passed,
    days: (scheduler.now - beginsAt) / (24 * HOUR_MS),
  };
}

/** Something is wrong now and then. */
async function trouble(world: World, random: Random, isOver: () => boolean): Promise<void> {
  for (;;) {
    await world.sleep(random.whole(20 * MINUTE_MS, 8 * HOUR_MS));
    if (isOver()) return;
    const fault = random.pick(troubles);
    const ms = random.chance(0.7) ? random.whole(5_000, 30 * MINUTE_MS) : random.whole(HOUR_MS, 4 * HOUR_MS);
    const about = fault === 'clock-off' ? String(random.pick([-90_000, -2_000, 3_000, 120_000])) : '*';
    world.faults.begin(fault, about, ms);
  }
}

const troubles: readonly Fault[] = [
  'refused',
  'reset',
  'slow',
  'silent',
  'lost',
  '3xx',
  '4xx',
  '5xx',
  'dead-address',
  'unknown-name',
  'no-name-server',
  'mail-refused',
  'mail-reset',
  'mail-slow',
  'mail-silent',
  'mail-lost',
  'mail-scan',
  'mail-4xx-sender',
  'mail-5xx-sender',
  'mail-4xx-recipient',
  'mail-5xx-recipient',
  'mail-4xx-data',
  'store-away',
  'store-lost',
  'clock-off',
];

/** A second process comes and goes, processes are replaced, and all get another secret key. */
async function changeProcesses(
  world: World,
  processes: Processes,
  random: Random,
  isOver: () => boolean,
): Promise<void> {
  for (;;) {
    await world.sleep(random.whole(2 * HOUR_MS, 30 * HOUR_MS));
    if (isOver()) return;
    if (random.chance(0.3)) await processes.rotateSecrets();
    else if (processes.count < 2) {
      await processes.start();
      if (random.chance(0.5)) await processes.stop();
    } else await processes.stop();
  }
}

function requestOf(actor: string, operation: string, { method, path, key, headers = {}, body }: Call) {
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
  const bearer = key === undefined ? settings.BOOTSTRAP_API_KEY : key;
  return {
    actor,
    operation,
    method,
    path: path.startsWith(settings.BASE_URL) ? path.slice(settings.BASE_URL.length) || '/' : path,
    headers: {
      host: new URL(settings.BASE_URL).host,
      ...(isJson && { 'content-type': 'application/json' }),
      ...(bearer !== null && { authorization: `Bearer ${bearer}` }),
      ...headers,
    },
    body,
  };
}

/** Each actor has an address of its own. */
function addressOf(actor: string): string {
  let number = 0;
  for (const letter of actor) number = (number * 31 + letter.charCodeAt(0)) % 64_000;
  return `81.2.${number >> 8}.${number & 255}`;
}

const settings = {
  BASE_URL: 'https://forms.example.com',
  SMTP_URL: 'smtp://mail.example:25',
  MAIL_FROM: 'forms@forms.example.com',
  SECRET_KEY: 'ab'.repeat(32),
  BOOTSTRAP_API_KEY: `hfs_${'simulated'.repeat(5).slice(0, 43)}`,
  DATA_DIR: '/nowhere',
  // Longer than may pass without sweeps.
  VACUUM_WINDOW: '02:00-06:00',
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Nothing was seen for so long: then time may be jumped over. */
const QUIET_MS = 3_000;
/** How long after a jump nothing has to be seen before the next one. */
const SETTLE_MS = 1_600;
const JUMP_MS = [MINUTE_MS, 2 * HOUR_MS] as const;
/** When sweeps are made up for. The next jump can be as long as `JUMP_MS`. */
const SWEEP_MS = LONGEST_UNSWEPT_MS - 2 * HOUR_MS;

/** When the service has to do something by itself, in milliseconds since 1970. Sweeps are not looked for. */
const NEXT_DUE = `select extract(epoch from least(
    (select min(greatest(due_at, leased_until, first_lease_until)) from delivery_queue),
    (select min(expires_at) from sessions where submitted_at is null and expiry_announced_at is null)
  )) * 1000 as due`;

/** All retries of a delivery take a day and a half. */
const AFTERWARDS_MS = 60 * HOUR_MS;

const LOST_SHARE = 0.01;

export type DayOptions = {
  seed: number;
  hours: number;
  crashes: number;
  /** Where a dry run passed; absent: nobody dies. */
  places?: readonly string[];
  /** Statements of which half of the places are drawn. */
  path: readonly string[];
  isJumping: boolean;
  /** Ends when people have acted: nothing is judged. */
  isRehearsal: boolean;
  /** A migrated database. */
  dump: Blob;
  act: Actors;
  findLosses: Ledger;
};

export type Outcome = {
  findings: Finding[];
  observed: Observed[];
  trace: Trace;
  /** The places that were passed. */
  passed: ReadonlySet<string>;
  /** Simulated. */
  days: number;
};

import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { boundsOf, LONGEST_WAIT_MS, ProcessCapacity } from '../../src/delivery/worker/capacity.ts';
import { createSettler } from '../../src/delivery/worker/settler.ts';
import { createWorker } from '../../src/delivery/worker/worker.ts';
import type { Claim } from '../../src/store/deliveries/claimed.ts';
import { createRandom } from '../days/world/random.ts';
import type { Random } from '../days/world/types.ts';
import { openTestDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

/** Small, so that every bound is reached often. */
const CONCURRENCY = 16;
const MAIL_CONNECTIONS = 3;
const most = boundsOf(CONCURRENCY);

/** The loop pauses for a second after each. */
const MOST_FAILURES = 3;

describe('the capacity of a process', () => {
  let nowMs: number;
  beforeEach(() => {
    nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  });
  afterEach(() => vi.restoreAllMocks());

  it.each(seeds(50))(
    'keeps its bounds and ends every claim once, whatever happens when (seed %s)',
    async (seed) => {
      const random = createRandom(seed);
      const { capacity, ...world } = openCapacity(random);
      const untouched = capacity.free();

      for (let n = 0; n < 400; n += 1) {
        if (random.chance(0.3)) world.claim();
        else if (random.chance(0.5)) world.answer();
        else if (random.chance(0.9)) await world.store();
        else nowMs += random.whole(1, random.chance(0.1) ? 70_000 : 5_000);
      }
      const stopping = capacity.stop();
      while (world.isBusy()) {
        world.answer();
        await world.store();
      }
      await stopping;

      expect(world.sentAtOnce()).toBe(CONCURRENCY);
      expect(world.ended()).toEqual(world.claimed());
      expect({ ...capacity.free(), receivers: [] }).toEqual({ ...untouched, receivers: [] });
    },
  );
});

describe('the claim loop', () => {
  it.each(seeds(2))(
    'has one statement under way and sends all that is due once, though statements fail (seed %s)',
    async (seed) => {
      await using database = await openTestDatabase('pglite');
      const { signal } = new AbortController();
      const log = pino({ level: 'silent' });
      const random = createRandom(seed);
      await givenDue(database, 2_000);
      const sent: string[] = [];
      let claiming = 0;
      let claimingAtOnce = 0;
      let failures = 0;
      const flaky: TestDatabase = {
        ...database,
        async execute(...statement) {
          claiming += 1;
          claimingAtOnce = Math.max(claimingAtOnce, claiming);
          try {
            if (failures < MOST_FAILURES && random.chance(0.2)) {
              failures += 1;
              throw new Error('The connection was cut');
            }
            return await database.execute(...statement);
          } finally {
            claiming -= 1;
          }
        },
      };
      const worker = createWorker({
        database: flaky,
        concurrency: CONCURRENCY,
        mailConnections: MAIL_CONNECTIONS,
        times: { delaySeconds: 0, totalSeconds: 60 },
        async attempt({ id, lease }) {
          sent.push(id);
          if (random.chance(0.3)) await new Promise(setImmediate);
          return { result: { id, lease, status: 'delivered' }, gone: false };
        },
        settle: createSettler({ database, signal, log, onChanges: () => undefined }),
        onGone: () => undefined,
        signal,
        now: Date.now,
        log,
      });

      // Woken at any time, as by commits; and at last by nothing but the loop itself.
      while (sent.length < 1_000) {
        worker.wake();
        await new Promise((resolve) => setTimeout(resolve, random.whole(0, 20)));
      }
      await until(
        () => sent.length >= 2_000,
        60_000,
        () => `${sent.length} of 2000 sent`,
      );
      await worker.stop();

      expect(failures).toBe(MOST_FAILURES);
      expect(claimingAtOnce).toBe(1);
      expect(new Set(sent).size).toBe(2_000);
      expect(sent).toHaveLength(2_000);
      expect(await database.select('select id from delivery_queue')).toEqual([]);
    },
  );
});

/** There are a million of these, and each `expect` keeps a stack. */
function expectAtMost(count: number, most: number): void {
  if (!(count <= most)) expect(count).toBeLessThanOrEqual(most);
}

function seeds(count: number): string[] {
  return Array.from({ length: count }, (_, n) => String(n));
}

/**
 * A capacity with sends that the test answers and stores, and a model of what each receiver is trusted with. What the
 * capacity sends is compared with the bounds then.
 */
function openCapacity(random: Random) {
  const held = new Map<string, { claim: Claim; since: number }>();
  const claimed: string[] = [];
  const ended: string[] = [];
  const sending: Sent[] = [];
  const storing: Sent[] = [];
  const trust = new Map<string, { limit: number; answeredAt: number }>();
  const slow = random.pick([0, 0.15]);
  const tenants = random.pick([['prj_1'], ['prj_1', 'prj_1 keyless', 'prj_2']]);
  let sentAtOnce = 0;

  const trustIn = (claim: Claim) =>
    trust.get(keyOf(claim)) ?? { limit: 4, answeredAt: Number.NEGATIVE_INFINITY };
  const isUnproven = (claim: Claim) => {
    const { limit, answeredAt } = trustIn(claim);
    return claim.content.channel === 'webhook' && !(limit > 1 && performance.now() - answeredAt < 60_000);
  };
  const finish = (id: string) => {
    held.delete(id);
    ended.push(id);
  };

  function expectWithinBounds({ claim, unproven }: Sent): void {
    const { channel } = claim.content;
    const since = held.get(claim.id)?.since ?? Number.NaN;
    const ofReceiver = sending.filter((each) => keyOf(each.claim) === keyOf(claim));
    const webhooks = sending.filter(isWebhook);
    const ofTenant = webhooks.filter((each) => each.claim.tenant === claim.tenant);
    const tenants = new Set([...held.values()].filter(isWebhook).map((each) => each.claim.tenant));
    expectAtMost(performance.now() - since, LONGEST_WAIT_MS[channel]);
    expectAtMost(webhooks.length, CONCURRENCY);
    expectAtMost(ofReceiver.length, Math.min(most.ofReceiver, trustIn(claim).limit));
    if (channel === 'mail') {
      const mails = sending.filter((each) => each.claim.content.channel === 'mail');
      expectAtMost(mails.length, MAIL_CONNECTIONS);
      return;
    }
    if (tenants.size > 1) expectAtMost(ofTenant.length, most.ofTenant);
    if (!unproven) return;
    expectAtMost(sending.filter((each) => each.unproven).length, most.unproven);
    expectAtMost(ofTenant.filter((each) => each.unproven).length, most.unprovenOfTenant);
  }

  const capacity = new ProcessCapacity({
    concurrency: CONCURRENCY,
    mailConnections: MAIL_CONNECTIONS,
    send: (claim, onAnswer) =>
      new Promise((resolve) => {
        const sent = { claim, onAnswer, unproven: isUnproven(claim), end: () => resolve(true) };
        sending.push(sent);
        sentAtOnce = Math.max(
          sentAtOnce,
          sending.filter(({ claim }) => claim.content.channel === 'webhook').length,
        );
        expectWithinBounds(sent);
      }),
    release: async ({ id }) => finish(id),
    onFreed: () => undefined,
  });

  return {
    capacity,
    claim() {
      const { total, mails } = capacity.free();
      const channels = Array.from({ length: Math.min(total, random.whole(1, 16)) }, () =>
        random.chance(0.2) ? ('mail' as const) : ('webhook' as const),
      );
      const tooMany = channels.filter((channel) => channel === 'mail').length - mails;
      const fitting = channels.toSorted().slice(Math.max(0, tooMany));
      const claims = fitting.map((channel, n) =>
        aClaim(`dlv_${claimed.length + n}`, channel, tenants, random),
      );
      for (const claim of claims) held.set(claim.id, { claim, since: performance.now() });
      claimed.push(...claims.map(({ id }) => id));
      expectAtMost([...held.values()].filter(isWebhook).length, most.claimed);
      capacity.add(claims);
    },
    answer() {
      const [sent] = sending.splice(random.whole(0, sending.length), 1);
      if (sent === undefined) return;
      const tookMs = random.chance(slow) ? Number.POSITIVE_INFINITY : random.whole(1, 500);
      const limit = tookMs > 500 ? 1 : trustIn(sent.claim).limit + 1;
      trust.set(keyOf(sent.claim), { limit, answeredAt: performance.now() });
      storing.push(sent);
      sent.onAnswer(tookMs);
    },
    /** Stores a result, and lets the capacity know. */
    async store() {
      const [stored] = storing.splice(random.whole(0, storing.length), 1);
      if (stored !== undefined) finish(stored.claim.id);
      stored?.end();
      await new Promise(setImmediate);
    },
    isBusy: () => sending.length + storing.length > 0,
    sentAtOnce: () => sentAtOnce,
    claimed: () => claimed.toSorted(),
    ended: () => ended.toSorted(),
  };
}

const isWebhook = ({ claim }: { claim: Claim }) => claim.content.channel === 'webhook';

type Sent = { claim: Claim; unproven: boolean; onAnswer: (tookMs: number) => void; end: () => void };

function keyOf({ tenant, receiver }: Claim): string {
  return `${tenant} ${receiver}`;
}

function aClaim(id: string, channel: 'webhook' | 'mail', tenants: string[], random: Random): Claim {
  const tenant = random.pick(tenants);
  const content =
    channel === 'mail'
      ? { channel, mail: {}, eventId: null }
      : { channel, url: 'https://example.com/', eventId: 'evt_1', body: '{}', webhook: null };
  return {
    id,
    lease: 'lease',
    projectId: 'prj_1',
    tenant,
    formId: 'form_1',
    kind: 'owner',
    receiver: `${channel}_${random.chance(0.5) ? 1 : random.whole(2, 5)}`,
    step: 0,
    postponedFrom: null,
    traceparent: null,
    content,
  };
}

/** Due deliveries of two tenants: most to a few receivers, some to many, and some mails. */
async function givenDue(database: TestDatabase, count: number): Promise<void> {
  await database.execute(
    `insert into delivery_queue (id, project_id, form_id, share, channel, kind, receiver, mail, due_at, created_at, queued_at)
     select 'dlv_' || n, 'prj_' || n % 2, 'form_1', 'prj_' || n % 2, case when n % 10 = 0 then 'mail' else 'webhook' end,
       'owner', case when n % 4 = 0 then 'many_' || n else 'few_' || n % 3 end, '{}',
       now() - interval '1 minute' + n * interval '1 ms', now(), now()
     from generate_series(1, $1::int) n`,
    [count],
  );
}

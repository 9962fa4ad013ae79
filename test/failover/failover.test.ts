import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { runOn } from '../support/postgres.ts';
import { until } from '../support/until.ts';
import { startCluster } from './cluster.ts';
import { longestSilence, startInstances, startWriters, type Writers } from './service.ts';

/** How often the primary crashes: `npm run test:failover -- --kills 20`. */
const KILLS = Number(process.env.TEST_KILLS ?? 3);
const WRITERS = 8;
/** What a crash takes until all are back, and more. */
const timeout = 240_000 + 60_000 * KILLS;

it('loses nothing acknowledged, stores nothing twice and delivers all, whatever crashes', {
  timeout,
}, async () => {
  await using owned = new AsyncDisposableStack();
  const cluster = owned.use(await startCluster({ synchronous: true }));
  const instances = await startInstances(owned, cluster.databaseUrl);
  const writers = startWriters(instances, WRITERS);
  const { acknowledged } = writers;

  await goesOn(writers);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await cluster.crashPrimary();
    await goesOn(writers, `crash ${kill + 1} of the primary`);
  }
  await instances.crash(0);
  await goesOn(writers, 'the crash of an instance');
  await cluster.crashEtcdLeader();
  await goesOn(writers, "the crash of etcd's leader");
  await cluster.cutStandbysOff(3_000);
  await goesOn(writers, 'a cut between the primary and its standbys');
  await writers.stop();

  const stored = await storedIn(cluster.databaseUrl);
  const lost = acknowledged.filter(({ key, id }) => stored.get(key)?.includes(id) !== true);
  const twice = [...stored].filter(([, ids]) => ids.length > 1);
  const missing = () => {
    const received = instances.received();
    return [...stored.values()].flat().filter((id) => !received.has(id));
  };
  await until(
    () => missing().length === 0,
    120_000,
    () => `${missing().length} of ${stored.size} were not delivered`,
  );
  console.log(
    `${KILLS} crashes of the primary, one each of an instance and of etcd's leader, one cut network: ` +
      `${acknowledged.length} acknowledged, ${lost.length} lost, ${twice.length} stored twice, all delivered; ` +
      `at most ${longestSilence(acknowledged).toFixed(1)} s without an acknowledgement`,
  );
  expect(acknowledged.length).toBeGreaterThan(1_000);
  expect(lost).toEqual([]);
  expect(twice).toEqual([]);
});

it('would see a loss: without synchronous standbys, crashes of the primary lose what was acknowledged', {
  timeout,
}, async () => {
  await using owned = new AsyncDisposableStack();
  const cluster = owned.use(await startCluster({ synchronous: false }));
  const instances = await startInstances(owned, cluster.databaseUrl);
  const writers = startWriters(instances, WRITERS);

  await goesOn(writers);
  await cluster.crashPrimary();
  await goesOn(writers, 'a crash of the primary');
  await writers.stop();

  const stored = await storedIn(cluster.databaseUrl);
  const lost = writers.acknowledged.filter(({ key, id }) => stored.get(key)?.includes(id) !== true);
  console.log(`Without synchronous standbys: ${lost.length} of ${writers.acknowledged.length} lost`);
  expect(lost.length).toBeGreaterThan(0);
});

/** Waits until 200 more are acknowledged, and a second more for some to be under way at any stage. */
async function goesOn({ acknowledged }: Writers, after = 'the start'): Promise<void> {
  const before = acknowledged.length;
  await until(
    () => acknowledged.length > before + 200,
    60_000,
    () => `${acknowledged.length - before} acknowledged after ${after}`,
  );
  await sleep(1_000);
  console.log(
    `After ${after}: ${acknowledged.length} acknowledged, at most ${longestSilence(acknowledged).toFixed(1)} s apart`,
  );
}

/** The ids of the submissions by their idempotency keys, as the primary has them. */
async function storedIn(databaseUrl: string): Promise<Map<string, string[]>> {
  const rows = await runOn(databaseUrl, 'select idempotency_key as key, id from submissions');
  const stored = new Map<string, string[]>();
  for (const { key, id } of rows) stored.set(String(key), [...(stored.get(String(key)) ?? []), String(id)]);
  return stored;
}

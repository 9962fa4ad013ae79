import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { createEventFeed, type EventFeed } from '../../../src/services/events/event-feed.ts';
import { type EventReader, openEventReader } from '../../../src/services/events/event-reader.ts';
import { insertEvents } from '../../../src/store/events.ts';
import { LATEST_COMMIT_MS } from '../../../src/store/submissions/submission-writer.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';

describe.each(engines)('a reader of events on %s', (engine) => {
  let database: TestDatabase;
  let feed: EventFeed;
  let now: number;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  beforeEach(() => {
    now = Date.now();
    feed = createEventFeed({ database, now: () => now, log: console });
    return async () => {
      await feed.close();
      await emptyTables(database);
    };
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('gets each event once, however late the database lets it be committed', async () => {
    using reader = await givenReader();
    const late = newId('evt', now);
    const committed: string[] = [];
    const given: string[] = [];

    for (const lateAt = now + LATEST_COMMIT_MS; now < lateAt; now += 5_000) {
      committed.push(await commit(newId('evt', now)));
      given.push(...(await readUntil(reader, committed.at(-1))));
    }
    committed.push(await commit(late));
    now += 5_000;
    given.push(...(await readUntil(reader, late)));

    expect(given.toSorted()).toEqual(committed.toSorted());
  });

  it('polls no more when the feed is closed while it begins to follow', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    using _ = { [Symbol.dispose]: () => vi.useRealTimers() };

    const following = feed.follow({ onEvents() {}, onSettled() {} });
    await feed.close();
    (await following)[Symbol.dispose]();

    expect(vi.getTimerCount()).toBe(0);
  });

  it('goes on from a cursor with what was committed late before it', async () => {
    using first = await givenReader();
    const late = newId('evt', now);
    now += LATEST_COMMIT_MS;
    const before = await commit(newId('evt', now));
    await readUntil(first, before);
    await commit(late);

    using second = await givenReader(first.cursor());

    expect(await readAll(second)).toEqual([late, before]);
  });

  it('gets what was dropped because it read too slowly, once and in order', async () => {
    using reader = await givenReader();
    const first = await commit(newId('evt', now));
    const given = await readUntil(reader, first);
    const ids = Array.from({ length: 1_500 }, () => newId('evt', now)).sort();
    await commit(...ids);
    using other = await givenReader();

    given.push(...(await readAll(reader)));

    expect(given).toEqual([first, ...ids]);
    expect(await readAll(other)).toEqual([]);
  });

  it('gets nothing of another project, form or type', async () => {
    using ofForm = await givenReader(undefined, 'form_one');
    using ofProject = await givenReader();
    const wanted = newId('evt', now);
    const event = { projectId: 'prj_one', formId: 'form_one', type: 'submission.created' };
    const created = { body: '{}', createdAt: new Date(now) };
    const others = [{ formId: 'form_two' }, { projectId: 'prj_two' }, { type: 'form.activated' }];

    await insertEvents(database, [
      { ...event, ...created, id: wanted },
      ...others.map((other) => ({ ...event, ...created, id: newId('evt', now), ...other })),
    ]);
    feed.announce();

    expect(await readUntil(ofForm, wanted)).toEqual([wanted]);
    expect(await readUntil(ofProject, wanted)).toHaveLength(2);
  });

  function givenReader(cursor?: string, formId = ''): Promise<EventReader> {
    const types = ['submission.created'];
    return openEventReader(feed, { database, now: () => now, projectId: 'prj_one', formId, types, cursor });
  }

  /** Commits events with these ids, and returns the first. */
  async function commit(...ids: string[]): Promise<string> {
    const event = { projectId: 'prj_one', formId: 'form_one', type: 'submission.created', body: '{}' };
    await insertEvents(
      database,
      ids.map((id) => ({ ...event, id, createdAt: new Date(now) })),
    );
    feed.announce();
    return ids[0] ?? '';
  }
});

/** Reads until nothing is left that is known of. */
async function readAll(reader: EventReader): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const read = await reader.read();
    ids.push(...read.map(({ event }) => event.id));
    if (read.length === 0) return ids;
  }
}

/** Reads until an event has come. */
async function readUntil(reader: EventReader, id: string | undefined): Promise<string[]> {
  const ids: string[] = [];
  await until(async () => {
    ids.push(...(await readAll(reader)));
    return ids.includes(id ?? '');
  });
  return ids;
}

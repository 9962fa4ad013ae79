import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { createEventTail, type EventTail } from '../../../src/services/webhooks/event-tail.ts';
import { insertEvents } from '../../../src/store/events.ts';
import { LATEST_COMMIT_MS } from '../../../src/store/submission-writer.ts';
import { emptyTables, engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';

describe.each(engines)('the tail of events on %s', (engine) => {
  let database: TestDatabase;
  let now: number;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  beforeEach(() => {
    now = Date.now();
    return emptyTables(database);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('gives each event once, however late the database lets it be committed', async () => {
    const tail = givenTail();
    await tail.begin();
    const late = newId('evt', now);
    const given: string[] = [];

    for (const committedAt = now + LATEST_COMMIT_MS; now < committedAt; now += 500) {
      await commit(newId('evt', now));
      given.push(...(await poll(tail)));
    }
    await commit(late);
    for (const until = now + 5_000; now <= until; now += 500) given.push(...(await poll(tail)));

    expect(given).toContain(late);
    expect(new Set(given).size).toBe(given.length);
  });

  it('goes on from a cursor with what was committed late before it', async () => {
    const first = givenTail();
    await first.begin();
    const late = newId('evt', now);
    now += LATEST_COMMIT_MS;
    await poll(first);
    await commit(late);

    const second = givenTail(first.cursor());
    await second.begin();

    expect(await poll(second)).toEqual([late]);
  });

  function givenTail(cursor?: string): EventTail {
    return createEventTail({ database, now: () => now, projectId: 'prj_one', formId: '', cursor });
  }

  function commit(id: string): Promise<void> {
    const event = { id, projectId: 'prj_one', formId: 'form_one', type: 'submission.created', body: '{}' };
    return insertEvents(database, [{ ...event, createdAt: new Date(now) }]);
  }
});

async function poll(tail: EventTail): Promise<string[]> {
  const ids: string[] = [];
  for await (const { event } of tail.poll()) ids.push(event.id);
  return ids;
}

import { expect, it } from 'vitest';
import type { EventFeed, Follower } from '../../../src/services/events/event-feed.ts';
import { createSessionWaits } from '../../../src/services/sessions/await-session.ts';

it('wakes for what came while nobody waited, once, and for nothing else', async () => {
  const { feed, give, followers } = givenFeed();
  const stopping = new AbortController();
  const waits = createSessionWaits({ events: feed, stopping: stopping.signal });
  const { signal } = new AbortController();
  const wait = await waits.open('sess_one');
  const wakesWithin = async (ms: number) => {
    const startedAt = performance.now();
    await wait.changed(ms, signal);
    return performance.now() - startedAt < ms / 2;
  };

  const woken = wakesWithin(20_000);
  give('sess_one');
  expect(await woken).toBe(true);
  give('sess_one');
  give('sess_one');
  expect(await wakesWithin(20_000)).toBe(true);
  give('sess_two');
  expect(await wakesWithin(50)).toBe(false);
  stopping.abort();
  expect(await wakesWithin(20_000)).toBe(true);

  wait[Symbol.dispose]();
  await Promise.resolve();
  expect(followers.size).toBe(0);
});

it('rejects for a caller that has gone, before or meanwhile', async () => {
  const { feed } = givenFeed();
  const waits = createSessionWaits({ events: feed, stopping: new AbortController().signal });
  using wait = await waits.open('sess_one');
  const gone = new AbortController();

  const waiting = wait.changed(1_000, gone.signal);
  gone.abort(new Error('gone'));

  await expect(waiting).rejects.toThrow('gone');
  await expect(wait.changed(1_000, gone.signal)).rejects.toThrow('gone');
});

/** A feed that gives what it is told to. */
function givenFeed() {
  const followers = new Set<Follower>();
  const feed: EventFeed = {
    announce() {},
    sendText() {},
    async follow(follower) {
      followers.add(follower);
      return { position: '', [Symbol.dispose]: () => followers.delete(follower) };
    },
    async close() {},
  };
  const give = (sessionId: string) => {
    const event = {
      id: 'evt_1',
      projectId: 'prj_1',
      formId: 'form_1',
      type: 'session.expired',
      submissionId: null,
    };
    for (const follower of followers) follower.onEvents?.([{ ...event, sessionId }]);
  };
  return { feed, give, followers };
}

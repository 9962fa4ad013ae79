import { smallestIdAt } from '../../domain/ids.ts';
import type { Queries } from '../../store/database/database.ts';
import { listEventIds, listEventsById, type StoredEvent } from '../../store/events.ts';
import { LATEST_COMMIT_MS } from '../../store/submission-writer.ts';

/**
 * Follows a project's events, or those of one form: each call of `poll` gives what has been committed
 * since the one before, oldest first.
 *
 * Begins after `cursor`, or else with what is committed from then on. An event can be committed later than
 * its id was made. So each poll begins some seconds back and leaves out what was given, and every few
 * seconds one begins where no event can be committed any more.
 */
export function createEventTail({ database, now, projectId, formId, cursor }: EventTailOptions): EventTail {
  /** Every event up to here has been given. */
  let position = cursor ?? smallestIdAt('evt', now() - SETTLED_MS);
  /** What has been given beyond the position. */
  const given = new Set<string>();
  let polledAllAt = Number.NEGATIVE_INFINITY;

  async function* ids(from: string): AsyncIterable<string[]> {
    for (let after = from; ; ) {
      const page = await listEventIds(database, { projectId, formId, after, limit: PAGE });
      yield page.filter((id) => !given.has(id));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last;
    }
  }

  function moveTo(id: string): void {
    if (id <= position) return;
    position = id;
    for (const old of given) if (old <= position) given.delete(old);
  }

  return {
    async begin() {
      if (cursor !== undefined) return position;
      for await (const page of ids(position)) for (const id of page) given.add(id);
      return position;
    },
    async *poll() {
      const at = now();
      const settled = smallestIdAt('evt', at - SETTLED_MS);
      const all = Math.abs(at - polledAllAt) >= POLL_ALL_EVERY_MS;
      const recent = smallestIdAt('evt', at - RECENT_MS);
      for await (const fresh of ids(all || recent < position ? position : recent)) {
        for (let from = 0; from < fresh.length; from += AT_ONCE) {
          for (const event of await listEventsById(database, fresh.slice(from, from + AT_ONCE))) {
            given.add(event.id);
            if (all) moveTo(event.id < settled ? event.id : settled);
            yield { event, cursor: position };
          }
        }
      }
      if (!all) return;
      moveTo(settled);
      polledAllAt = at;
    },
    cursor: () => position,
  };
}

/** The clocks of several processes differ by less. */
const CLOCKS_DIFFER_MS = 5_000;

/** No event that is older by its id is committed any more. */
const SETTLED_MS = LATEST_COMMIT_MS + CLOCKS_DIFFER_MS;

/** Nearly all events are committed within this; the few others are given by the next poll of all. */
const RECENT_MS = 2_000 + CLOCKS_DIFFER_MS;
const POLL_ALL_EVERY_MS = 5_000;

/** Ids are read in pages, bodies (of up to 256 KiB each) in small groups. */
const PAGE = 1_000;
const AT_ONCE = 20;

export type EventTail = {
  /** Takes what is there already as given, unless there was a cursor. Returns the cursor. */
  begin(): Promise<string>;
  poll(): AsyncIterable<{ event: StoredEvent; cursor: string }>;
  /** Where another tail may go on; it gives the events of the last seconds again. */
  cursor(): string;
};

export type EventTailOptions = {
  database: Queries;
  now: () => number;
  projectId: string;
  /** Empty: all forms. */
  formId: string;
  cursor: string | undefined;
};

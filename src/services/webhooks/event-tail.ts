import { smallestIdAt } from '../../domain/ids.ts';
import type { Queries } from '../../store/database/database.ts';
import { type EmittedEvent, listEventIds, listEventsById } from '../../store/events.ts';

/**
 * Makes what follows a project's events, or those of one form: each call of `poll` gives what has been
 * committed since the one before, oldest first.
 *
 * Begins after `cursor`, or else with what is committed from then on. An event can be committed later than
 * its id was made, so each poll begins some seconds before the last one, and leaves out what was given.
 */
export function createEventTail({ database, now, projectId, formId, cursor }: EventTailOptions): EventTail {
  /** Every event up to here has been given. */
  let position = cursor ?? smallestIdAt('evt', now() - SETTLED_MS);
  /** What has been given beyond the position. */
  const given = new Set<string>();

  async function* ids(): AsyncIterable<string[]> {
    for (let after = position; ; ) {
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
      for await (const page of ids()) for (const id of page) given.add(id);
      return position;
    },
    async *poll() {
      const settled = smallestIdAt('evt', now() - SETTLED_MS);
      for await (const fresh of ids()) {
        for (let from = 0; from < fresh.length; from += AT_ONCE) {
          for (const event of await listEventsById(database, fresh.slice(from, from + AT_ONCE))) {
            given.add(event.id);
            moveTo(event.id < settled ? event.id : settled);
            yield { event, cursor: position };
          }
        }
      }
      moveTo(settled);
    },
    cursor: () => position,
  };
}

/** Longer than a commit takes, and clocks of several processes differ. */
const SETTLED_MS = 5_000;

/** Ids are read in pages, bodies (of up to 256 KiB each) in small groups. */
const PAGE = 1_000;
const AT_ONCE = 20;

export type EventTail = {
  /** Takes what is there already as given, unless there was a cursor. Returns the cursor. */
  begin(): Promise<string>;
  poll(): AsyncIterable<{ event: EmittedEvent; cursor: string }>;
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

import type { HandlerContext } from '@connectrpc/connect';
import { isId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Queries } from '../../store/database/database.ts';
import { type EventHead, listEventHeads } from '../../store/events.ts';
import type { ServiceContext } from '../context.ts';
import { requireProjectForm } from '../forms/form-access.ts';
import { requireValidKey } from '../keys/key-reader.ts';
import { badParameter } from '../request-values.ts';
import { type EventFeed, settledId } from './event-feed.ts';

/**
 * Streams events to a caller, as `load` makes them: first a message without an item, then one for each
 * event, and one without an item when nothing came for some time. Each says where to go on after it.
 *
 * An event is read when the one before has been taken. Ends when the service stops; fails once the caller's key is
 * no longer valid. Throws RATE_LIMITED where the key, the project or the process has its number of streams open.
 */
export async function* streamEvents<T extends object>(
  context: ServiceContext,
  call: HandlerContext,
  { formId, cursor, types, load }: StreamOptions<T>,
): AsyncGenerator<{ cursor: string } | ({ cursor: string } & T)> {
  const { database, now, streams, audit } = context;
  const caller = callerOf(call);
  if (cursor !== '' && !isId('evt', cursor)) {
    throw badParameter('cursor', 'invalid_string', 'Expected the cursor of an earlier message');
  }
  if (formId !== '') await requireProjectForm(context.forms, caller, formId);
  using _ = streams.enter(caller);
  using key = context.keys.watch(call);
  const ended = AbortSignal.any([call.signal, context.stopping, key.ended]);
  using reader = await openEventReader(context.events, {
    database,
    now,
    projectId: caller.projectId,
    formId,
    types,
    cursor: cursor === '' ? undefined : cursor,
  });

  audit.note(call, formId === '' ? {} : { formId });
  yield { cursor: reader.cursor() };
  for (let quietSince = performance.now(); !ended.aborted; ) {
    const read = await reader.read();
    if (read.length > 0) await requireValidKey(context, call);
    const items = await load(read.map(({ event }) => event));
    for (const { event, cursor: next } of read) {
      const item = items.get(event.id);
      if (item === undefined) continue;
      yield { cursor: next, ...item };
      quietSince = performance.now();
    }
    const quietMs = QUIET_MS - (performance.now() - quietSince);
    if (quietMs > 0) {
      await reader.wait(quietMs, ended);
      continue;
    }
    yield { cursor: reader.cursor() };
    quietSince = performance.now();
  }
  key.ended.throwIfAborted();
}

/** Proxies end connections that are silent for a minute. */
const QUIET_MS = 15_000;

type StreamOptions<T> = {
  /** Empty: all forms of the project. */
  formId: string;
  /** That of an earlier message; empty: from now on. */
  cursor: string;
  types: readonly string[];
  /** What to send of each event, by its id; nothing for those that are left out. */
  load: (events: EventHead[]) => Promise<Map<string, T>>;
};

/**
 * Reads the events of a project, or of one form of it, for one reader: those after `cursor`, or else those that
 * are committed from now on. None is missed, and none is given twice.
 *
 * A reader that is slower than the events come is not waited for: beyond a bound, what is queued for it is dropped
 * and read from the database again when it asks.
 */
export async function openEventReader(
  feed: EventFeed,
  { database, now, projectId, formId, types, cursor }: EventReaderOptions,
): Promise<EventReader> {
  /** Events, and between them the ids up to which those before are all there are. */
  const queue: (EventHead | string)[] = [];
  let overflowed = false;
  let notify = () => {};
  const isWanted = (event: EventHead) =>
    event.projectId === projectId && (formId === '' || event.formId === formId) && types.includes(event.type);

  const following = await feed.follow({
    onEvents(events) {
      const wanted = events.filter(isWanted);
      if (wanted.length === 0) return;
      queue.push(...wanted);
      if (queue.length > MAX_QUEUED) {
        queue.length = 0;
        overflowed = true;
      }
      notify();
    },
    onSettled(id) {
      if (overflowed) return;
      if (typeof queue.at(-1) === 'string') queue.pop();
      queue.push(id);
    },
  });

  /** Every event up to here has been given. */
  let position = cursor ?? following.position;
  /** What has been given beyond the position. */
  const given = new Set<string>();
  /** Where to go on in the database; undefined if what comes is in the queue. */
  let unreadAfter = cursor;
  /** What was read from there, the next first. */
  let stored: EventHead[] = [];
  /** No event whose id is older was committed after that. */
  let settled = '';

  function moveTo(id: string): void {
    if (id <= position) return;
    position = id;
    for (const old of given) if (old <= position) given.delete(old);
  }

  function isBehind(): boolean {
    return overflowed || unreadAfter !== undefined || stored.length > 0;
  }

  function give(event: EventHead): Read[] {
    if (event.id <= position || given.has(event.id)) return [];
    given.add(event.id);
    return [{ event, cursor: position }];
  }

  /** Up to what can still be committed, the position follows each event. */
  async function readStored(after: string): Promise<Read[]> {
    if (stored.length === 0) {
      settled = settledId(now());
      stored = await listEventHeads(database, { projectId, formId, types, after, limit: PAGE });
      unreadAfter = stored.length < PAGE ? undefined : stored.at(-1)?.id;
    }
    const read = stored.splice(0, AT_ONCE).flatMap((event) => {
      const fresh = give(event);
      if (event.id < settled) moveTo(event.id);
      return fresh.map(() => ({ event, cursor: position }));
    });
    if (stored.length === 0 && unreadAfter === undefined) moveTo(settled);
    return read;
  }

  function readQueued(): Read[] {
    const read: Read[] = [];
    while (read.length < AT_ONCE) {
      const next = queue.shift();
      if (next === undefined) break;
      if (typeof next === 'string') moveTo(next);
      else read.push(...give(next));
    }
    return read;
  }

  return {
    cursor: () => position,
    async read() {
      for (;;) {
        if (overflowed) {
          overflowed = false;
          queue.length = 0;
          stored = [];
          unreadAfter = position;
        }
        if (!isBehind()) return readQueued();
        const read = await readStored(unreadAfter ?? position);
        if (read.length > 0) return read;
      }
    },
    async wait(ms, signal) {
      if (isBehind() || queue.length > 0 || signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      notify = resolve;
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', notify, { once: true });
      await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', notify);
    },
    [Symbol.dispose]: () => following[Symbol.dispose](),
  };
}

const PAGE = 200;

/** Bodies have up to 256 KiB each, and every reader may hold those of a group. */
const AT_ONCE = 5;

/** Some hundred bytes each. */
const MAX_QUEUED = 1_000;

export type EventReader = Disposable & {
  /** The next few events; none if there are none yet. */
  read(): Promise<Read[]>;
  /** Waits until there may be some, at most so long, or until the signal is aborted. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Where another reader may go on, if all that was read is used; it reads those of the last seconds again. */
  cursor(): string;
};

/** An event, and where to go on after it. */
type Read = { event: EventHead; cursor: string };

export type EventReaderOptions = {
  database: Queries;
  /** Milliseconds since 1970. */
  now: () => number;
  projectId: string;
  /** Empty: all forms. */
  formId: string;
  types: readonly string[];
  cursor: string | undefined;
};

import type { HandlerContext } from '@connectrpc/connect';
import { isId } from '../../domain/ids.ts';
import { callerOf } from '../../rpc/context.ts';
import type { EventHead } from '../../store/events.ts';
import type { ServiceContext } from '../context.ts';
import { requireProjectForm } from '../forms/form-access.ts';
import { requireValidKey } from '../keys/key-reader.ts';
import { badParameter } from '../request-values.ts';
import { openEventReader } from './event-reader.ts';

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

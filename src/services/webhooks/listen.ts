import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { ListenRequest, ListenResponseSchema } from '../../../gen/forms/v1/webhooks_pb.js';
import { isId } from '../../domain/ids.ts';
import { bearerOf, type Caller, callerOf, clientAddressOf } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { StoredEvent } from '../../store/events.ts';
import type { ServiceContext } from '../context.ts';
import { ownForm } from '../forms/form-access.ts';
import { badParameter } from '../request-values.ts';
import { createEventTail } from './event-tail.ts';

/**
 * Makes the stream of events for whoever listens. It polls the events twice a second while somebody
 * does; ends when the service stops; and fails once the caller's key is no longer valid. Throws RATE_LIMITED
 * where the key, the project or the process has its number of streams open.
 */
export function createListen(context: ServiceContext): Listen {
  const { maxStreams, maxStreamsPerKey } = context.settings;
  const open = new Map<string, number>();

  /** Counts a stream to everything it belongs to. */
  function openStream({ projectId, keyId = '' }: Caller): Disposable {
    const counts: Count[] = [
      { of: keyId, most: maxStreamsPerKey, who: 'This key' },
      { of: projectId, most: maxStreams, who: 'This project' },
      { of: 'process', most: MAX_STREAMS, who: 'This service' },
    ];
    for (const { of, most, who } of counts) {
      if ((open.get(of) ?? 0) < most) continue;
      const message = `${who} has ${most} streams open already`;
      throw failed(Reason.RATE_LIMITED, message, { retryAfter: RETRY_AFTER_SECONDS });
    }
    const add = (change: 1 | -1) => {
      for (const { of } of counts) {
        const count = (open.get(of) ?? 0) + change;
        if (count === 0) open.delete(of);
        else open.set(of, count);
      }
    };
    add(1);
    return { [Symbol.dispose]: () => add(-1) };
  }

  return async function* listen(request, call) {
    using _ = openStream(callerOf(call));
    const tail = await tailOf(context, request, call);
    const ended = AbortSignal.any([call.signal, context.stopping]);
    yield { cursor: await tail.begin() };
    for (let quietSince = context.now(); !ended.aborted; ) {
      await checkKey(context, call);
      for await (const { event, cursor } of tail.poll()) {
        yield { cursor, event: eventToMessage(event) };
        quietSince = context.now();
      }
      if (context.now() - quietSince >= QUIET_MS) {
        yield { cursor: tail.cursor() };
        quietSince = context.now();
      }
      await sleep(POLL_MS, undefined, { signal: ended }).catch(() => undefined);
    }
  };
}

/** A person waits for what they have just submitted. */
const POLL_MS = 500;

/** Proxies end connections that are silent for a minute. */
const QUIET_MS = 15_000;

/** Of one process, whoever holds them; each costs two cheap queries a second. */
const MAX_STREAMS = 100;
const RETRY_AFTER_SECONDS = 10;

async function tailOf(
  { database, now }: ServiceContext,
  { formId, cursor }: ListenRequest,
  call: HandlerContext,
) {
  const caller = callerOf(call);
  if (cursor !== '' && !isId('evt', cursor)) {
    throw badParameter('cursor', 'invalid_string', 'Expected the cursor of an earlier message');
  }
  if (formId !== '') await ownForm(database, caller, formId);
  const from = cursor === '' ? undefined : cursor;
  return createEventTail({ database, now, projectId: caller.projectId, formId, cursor: from });
}

/** A key may be revoked while its owner listens. */
async function checkKey({ keys }: ServiceContext, call: HandlerContext): Promise<void> {
  const key = bearerOf(call.requestHeader.get('authorization')) ?? '';
  if ((await keys.find(key, clientAddressOf(call))) === undefined) {
    throw failed(Reason.INVALID_KEY, 'The API key is no longer valid');
  }
}

function eventToMessage({ id, type, formId, body, createdAt }: StoredEvent) {
  return { id, type, formId, body, createTime: timestampFromDate(createdAt) };
}

/** The open streams of a key, a project or the process. */
type Count = { of: string; most: number; who: string };

type Listen = (
  request: ListenRequest,
  call: HandlerContext,
) => AsyncIterable<MessageInitShape<typeof ListenResponseSchema>>;

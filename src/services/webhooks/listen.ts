import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { ListenRequest, ListenResponseSchema } from '../../../gen/forms/v1/webhooks_pb.js';
import { isId } from '../../domain/ids.ts';
import { bearerOf, callerOf, clientAddressOf } from '../../rpc/context.ts';
import { failed } from '../../rpc/errors.ts';
import type { StoredEvent } from '../../store/events.ts';
import type { ServiceContext } from '../context.ts';
import { ownForm } from '../forms/form-access.ts';
import { badParameter } from '../request-values.ts';
import { createEventTail } from './event-tail.ts';

/**
 * Makes the stream of events for whoever listens. It polls the events twice a second while somebody
 * does; ends when the service stops; and fails once the caller's key is no longer valid.
 */
export function createListen(context: ServiceContext): Listen {
  let streams = 0;
  return async function* listen(request, call) {
    const tail = await tailOf(context, request, call);
    if (streams >= MAX_STREAMS) {
      throw failed(Reason.RATE_LIMITED, 'Too many listen already', { retryAfter: RETRY_AFTER_SECONDS });
    }
    streams += 1;
    try {
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
    } finally {
      streams -= 1;
    }
  };
}

/** A person waits for what they have just submitted. */
const POLL_MS = 500;

/** Proxies end connections that are silent for a minute. */
const QUIET_MS = 15_000;

/** Of one process; each costs two cheap queries a second. */
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

type Listen = (
  request: ListenRequest,
  call: HandlerContext,
) => AsyncIterable<MessageInitShape<typeof ListenResponseSchema>>;

import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { ListenRequest, ListenResponseSchema } from '../../../gen/forms/v1/webhooks_pb.js';
import { sentBody } from '../../domain/events/bodies.ts';
import { emittedEvents, eventTypeOf } from '../../domain/events/index.ts';
import { listEventsById, type StoredEvent } from '../../store/events.ts';
import type { ServiceContext } from '../context.ts';
import { streamEvents } from '../events/event-stream.ts';

/** Streams the events that webhooks receive, with the bodies that they get. */
export async function* listen(
  context: ServiceContext,
  { formId, cursor }: ListenRequest,
  call: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof ListenResponseSchema>> {
  const messages = streamEvents(context, call, {
    formId,
    cursor,
    types: emittedEvents,
    load: async (events) => {
      if (events.length === 0) return new Map();
      const stored = await listEventsById(
        context.database,
        events.map(({ id }) => id),
      );
      return new Map(stored.map((event) => [event.id, eventToMessage(event)]));
    },
  });
  for await (const { cursor: next, item: event } of messages) {
    yield event === undefined ? { cursor: next } : { cursor: next, event };
  }
}

function eventToMessage({ id, type, formId, body, createdAt }: StoredEvent) {
  return {
    id,
    type: eventTypeOf(type),
    formId,
    body: sentBody(body),
    createTime: timestampFromDate(createdAt),
  };
}

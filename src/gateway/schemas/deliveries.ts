import { durationMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type Attempt,
  type Delivery,
  DeliveryChannel,
  DeliveryStatus,
} from '../../../gen/forms/v1/webhooks_pb.js';
import {
  nextCursor,
  pageQuery,
  present,
  textOrNull,
  timeInput,
  timeOf,
  timeOrNull,
  timeReply,
} from './common.ts';

const status = z.enum(['pending', 'delivered', 'failed']);

export const deliveriesQuery = pageQuery.extend({
  status: status.exactOptional().describe('Only those with this status.'),
});

export const replayBody = z
  .strictObject({
    status: z.literal('failed').exactOptional().describe('What is replayed; failed deliveries in any case.'),
    created_after: timeInput.exactOptional(),
    created_before: timeInput.exactOptional(),
  })
  .meta({ id: 'ReplayInput' });

const attempt = z.object({
  id: z.string(),
  number: z.int(),
  status: z.enum(['delivered', 'failed']),
  response_status: z.int().nullable(),
  error: z.string().nullable(),
  duration_ms: z.int(),
  started_at: timeReply,
  response_body: z.string().nullable().describe('The first 2 KiB of the answer.'),
});

const delivery = z
  .object({
    id: z.string(),
    channel: z.enum(['webhook', 'mail']),
    webhook_id: z.string().nullable().describe('null for mail.'),
    address: z.string().nullable().describe('null for webhooks.'),
    event_id: z.string().nullable(),
    event: z.string(),
    status,
    attempt_count: z.int(),
    created_at: timeReply,
    last_attempt_at: timeReply.nullable(),
    next_attempt_at: timeReply.nullable(),
    delivered_at: timeReply.nullable(),
    response_status: z.int().nullable(),
    error: z.string().nullable(),
    attempts: z.array(attempt),
  })
  .meta({ id: 'DeliveryLog' });

export const deliveriesReply = z.object({ deliveries: z.array(delivery), next_cursor: nextCursor });
export const deliveryReply = z.object({ ok: z.literal(true), delivery });
export const replayedReply = z.object({ ok: z.literal(true), count: z.int() });

/** A delivery as replies have it. */
export function deliveryOf(message: Delivery | undefined): z.input<typeof delivery> {
  const there = present(message);
  return {
    id: there.id,
    channel: there.channel === DeliveryChannel.MAIL ? 'mail' : 'webhook',
    webhook_id: textOrNull(there.webhookId),
    address: textOrNull(there.address),
    event_id: textOrNull(there.eventId),
    event: there.event,
    status: statusOf(there.status),
    attempt_count: there.attemptCount,
    created_at: timeOf(there.createTime),
    last_attempt_at: timeOrNull(there.lastAttemptTime),
    next_attempt_at: timeOrNull(there.nextAttemptTime),
    delivered_at: timeOrNull(there.deliverTime),
    response_status: there.responseStatus ?? null,
    error: textOrNull(there.error),
    attempts: there.attempts.map(attemptOf),
  };
}

/** The status that a filter names, as a message has it. */
export function filterOf(name: z.output<typeof status> | undefined): DeliveryStatus {
  return name === undefined ? DeliveryStatus.UNSPECIFIED : statuses[name];
}

function attemptOf(message: Attempt): z.input<typeof attempt> {
  return {
    id: message.id,
    number: message.number,
    status: message.status === DeliveryStatus.DELIVERED ? 'delivered' : 'failed',
    response_status: message.responseStatus ?? null,
    error: textOrNull(message.error),
    duration_ms: message.duration === undefined ? 0 : Math.round(durationMs(message.duration)),
    started_at: timeOf(message.startTime),
    response_body: textOrNull(message.responseBody),
  };
}

function statusOf(value: DeliveryStatus): z.input<typeof status> {
  return status.options.find((name) => statuses[name] === value) ?? 'pending';
}

const statuses = {
  pending: DeliveryStatus.PENDING,
  delivered: DeliveryStatus.DELIVERED,
  failed: DeliveryStatus.FAILED,
};

import { durationMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type Attempt,
  type Delivery,
  DeliveryChannel,
  DeliveryStatus,
  WebhooksService,
} from '../../gen/forms/v1/webhooks_pb.js';
import { mailKindNameOf } from '../domain/delivery/mail-kind.ts';
import { eventNameOf } from '../domain/events/index.ts';
import { present, textOrNull, timeOf, timeOrNull } from '../http/values.ts';
import { listRoute } from './list-route.ts';
import { type Route, route, tagged } from './route.ts';
import { pageQuery, timeInput, timeReply } from './schemas.ts';

const { method: rpcs } = WebhooksService;

const status = z.enum(['pending', 'delivered', 'failed']);

const deliveriesQuery = pageQuery.extend({
  status: status.exactOptional().describe('Only those with this status.'),
});

const replayBody = z
  .strictObject({
    status: z.literal('failed').exactOptional().describe('What is replayed; failed deliveries in any case.'),
    created_after: timeInput.exactOptional(),
    created_before: timeInput.exactOptional(),
  })
  .meta({ id: 'ReplayInput' });

const testWebhookBody = z
  .strictObject({
    form_id: z
      .string()
      .min(1)
      .exactOptional()
      .describe('The form whose fields the answers are made up for; absent: the webhook’s, or the newest.'),
  })
  .meta({ id: 'TestWebhookInput' });

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
    attempts: z.array(attempt).describe('The last 100, oldest first.'),
  })
  .meta({ id: 'DeliveryLog' });

const deliveryReply = z.object({ ok: z.literal(true), delivery });
const replayedReply = z.object({ ok: z.literal(true), count: z.int() });

/** The routes of what was sent: the interface's, in its order, and those added to them. */
export const deliveryRoutes: Route[] = tagged('Deliveries', [
  listRoute('/v1/webhooks/:id/deliveries', rpcs.listDeliveries, {
    summary: 'List a webhook’s deliveries with their attempts, newest first',
    name: 'deliveries',
    query: deliveriesQuery,
    input: ({ id, query, page }) => ({ webhookId: id, ...page, status: filterOf(query.status) }),
    item: delivery,
    answer: ({ deliveries, nextPageToken }) => ({ items: deliveries.map(deliveryOf), nextPageToken }),
  }),
  route('post', '/v1/webhook-deliveries/:id/replay', rpcs.replayDelivery, {
    summary: 'Send a failed or delivered delivery again',
    input: ({ id }) => ({ deliveryId: id }),
    status: 202,
    errors: [409],
    reply: deliveryReply,
    answer: ({ delivery }) => ({ ok: true as const, delivery: deliveryOf(delivery) }),
  }),
  route('post', '/v1/webhooks/:id/replay', rpcs.replayDeliveries, {
    summary: 'Send a webhook’s failed deliveries again',
    body: replayBody,
    bodyOptional: true,
    input: ({ id, body }) => ({
      webhookId: id,
      createdAfter: body.created_after,
      createdBefore: body.created_before,
    }),
    status: 202,
    reply: replayedReply,
    answer: ({ count }) => ({ ok: true as const, count }),
  }),
  route('post', '/v1/webhooks/:id/test', rpcs.testWebhook, {
    summary: 'Send a signed webhook.test event with made-up answers',
    body: testWebhookBody,
    bodyOptional: true,
    input: ({ id, body }) => ({ webhookId: id, formId: body.form_id ?? '' }),
    status: 202,
    reply: deliveryReply,
    answer: ({ delivery }) => ({ ok: true as const, delivery: deliveryOf(delivery) }),
  }),
  listRoute('/v1/forms/:id/deliveries', rpcs.listFormDeliveries, {
    summary: 'List a form’s deliveries, mails too, newest first',
    name: 'deliveries',
    query: deliveriesQuery,
    input: ({ id, query, page }) => ({ formId: id, ...page, status: filterOf(query.status) }),
    item: delivery,
    answer: ({ deliveries, nextPageToken }) => ({ items: deliveries.map(deliveryOf), nextPageToken }),
  }),
]);

/** A delivery as replies have it. */
function deliveryOf(message: Delivery | undefined): z.input<typeof delivery> {
  const there = present(message);
  return {
    id: there.id,
    channel: there.channel === DeliveryChannel.MAIL ? 'mail' : 'webhook',
    webhook_id: textOrNull(there.webhookId),
    address: textOrNull(there.address),
    event_id: textOrNull(there.eventId),
    event: eventNameOf(there.eventType) || mailKindNameOf(there.mailKind),
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
function filterOf(name: z.output<typeof status> | undefined): DeliveryStatus {
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

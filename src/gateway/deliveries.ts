import { durationMs } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  AttemptSchema,
  DeliverySchema,
  MailKind,
  WebhooksService,
} from '../../gen/headlessforms/v1/webhooks_pb.js';
import { enumName } from '../domain/enums.ts';
import { eventNameOf } from '../domain/events/index.ts';
import { optional } from '../domain/json/optional.ts';
import { pageQuery, timeInput } from '../http/schemas.ts';
import { from, shape, timeReply } from '../http/shape.ts';
import { listRoute, type Route, replyOf, route, tagged } from './route.ts';

const { method: rpcs } = WebhooksService;

const status = z.enum(['pending', 'delivered', 'failed']);

const deliveriesQuery = pageQuery.extend({
  status: optional(status, 'Only those with this status.'),
});

const replayed =
  'What is sent; absent: failed deliveries. `missed`, of webhooks alone: events that the webhook has no delivery of, as those of the time in which it was off. It needs `created_after`, and the webhook to be on.';

const replayBody = z
  .strictObject({
    status: optional(z.enum(['failed', 'missed']), replayed),
    created_after: timeInput.exactOptional(),
    created_before: timeInput.exactOptional(),
  })
  .meta({ id: 'ReplayInput' });

const testWebhookBody = z
  .strictObject({
    form_id: optional(
      z.string().min(1),
      'The form whose fields the answers are made up for; absent: the webhook’s, or the newest.',
    ),
  })
  .meta({ id: 'TestWebhookInput' });

const attempt = shape(AttemptSchema, '', {
  id: z.string(),
  number: z.int(),
  status: z.enum(['delivered', 'failed']),
  response_status: z.int().nullable(),
  error: z.string().nullable(),
  duration_ms: from(
    ({ duration }) => (duration === undefined ? 0 : Math.round(durationMs(duration))),
    z.int(),
  ),
  started_at: timeReply,
  response_body: z.string().nullable().describe('The first 2 KiB of the answer.'),
});

const delivery = shape(DeliverySchema, 'DeliveryLog', {
  id: z.string(),
  channel: z.enum(['webhook', 'mail']),
  webhook_id: z.string().nullable().describe('null for emails, and for callbacks of sessions.'),
  address: z.string().nullable().describe('null for webhooks.'),
  event_id: z.string().nullable(),
  event: from(
    ({ eventType, mailKind }) => eventNameOf(eventType) || (enumName(MailKind, mailKind) ?? ''),
    z.string(),
  ),
  status,
  attempt_count: z.int(),
  created_at: timeReply,
  last_attempt_at: timeReply.nullable(),
  next_attempt_at: timeReply.nullable(),
  delivered_at: timeReply.nullable(),
  response_status: z.int().nullable(),
  error: z.string().nullable(),
  attempts: { ...attempt, schema: z.array(attempt.schema).describe('The last 100, oldest first.') },
});

const replayFailed = {
  body: replayBody,
  bodyOptional: true,
  status: 202,
  ...replyOf(rpcs.replayDeliveries.output, {
    ok: z.literal(true),
    count: z.int(),
    more: z.boolean().describe('Whether it has ended, after 10,000 or a long search, before all were sent.'),
    next_created_after: timeReply.nullable().describe('The created_after of the call that goes on.'),
  }),
};

const deliveryList = { name: 'deliveries', query: deliveriesQuery, item: delivery } as const;

/** The routes of what was sent: the interface's, in its order, and those added to them. */
export const deliveryRoutes: Route[] = tagged('Deliveries', [
  listRoute('/v1/webhooks/:id/deliveries', rpcs.listDeliveries, {
    summary: 'List a webhook’s deliveries with their attempts, newest first',
    ...deliveryList,
  }),
  route('post', '/v1/webhook-deliveries/:id/replay', rpcs.replayDelivery, {
    summary: 'Send a failed or delivered delivery again: to a webhook, or an email of a submission',
    apart: ['id'],
    input: ({ id }) => ({ deliveryId: id }),
    status: 202,
    errors: [409],
    ...replyOf(rpcs.replayDelivery.output, { ok: z.literal(true), delivery }),
  }),
  route('post', '/v1/webhooks/:id/replay', rpcs.replayDeliveries, {
    ...replayFailed,
    summary: 'Send a webhook’s failed deliveries again, or the events that it missed',
    errors: [409],
  }),
  route('post', '/v1/webhooks/:id/test', rpcs.testWebhook, {
    summary: 'Send a signed webhook.test event with made-up answers',
    body: testWebhookBody,
    bodyOptional: true,
    status: 202,
    ...replyOf(rpcs.testWebhook.output, { ok: z.literal(true), delivery }),
  }),
  listRoute('/v1/forms/:id/deliveries', rpcs.listFormDeliveries, {
    summary: 'List a form’s deliveries, including emails, newest first',
    ...deliveryList,
  }),
  route('post', '/v1/forms/:id/replay', rpcs.replayDeliveries, {
    ...replayFailed,
    name: 'replayFormDeliveries',
    summary: 'Send the failed emails of a form’s submissions again',
  }),
]);

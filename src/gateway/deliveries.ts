import { type Route, route } from './route.ts';
import { pageOf, textOrNull } from './schemas/common.ts';
import {
  deliveriesQuery,
  deliveriesReply,
  deliveryOf,
  deliveryReply,
  filterOf,
  replayBody,
  replayedReply,
} from './schemas/deliveries.ts';
import { testWebhookBody } from './schemas/webhooks.ts';

const tag = 'Deliveries';

/** The routes of what was sent: the interface's, in its order, and those added to them. */
export const deliveryRoutes: Route[] = [
  route('get', '/v1/webhooks/:id/deliveries', {
    name: 'listDeliveries',
    tag,
    summary: 'List a webhook’s deliveries with their attempts, newest first',
    access: 'webhooks:read',
    query: deliveriesQuery,
    call: ({ webhooks }) => webhooks.listDeliveries,
    input: ({ id, query }) => ({ webhookId: id, ...pageOf(query), status: filterOf(query.status) }),
    refused: ({ webhooks }, id, options) => webhooks.listDeliveries({ webhookId: id, pageSize: -1 }, options),
    reply: deliveriesReply,
    answer: ({ deliveries, nextPageToken }) => ({
      deliveries: deliveries.map(deliveryOf),
      next_cursor: textOrNull(nextPageToken),
    }),
  }),
  route('post', '/v1/webhook-deliveries/:id/replay', {
    name: 'replayDelivery',
    tag,
    summary: 'Send a failed or delivered delivery again',
    access: 'webhooks:write',
    call: ({ webhooks }) => webhooks.replayDelivery,
    input: ({ id }) => ({ deliveryId: id }),
    status: 202,
    errors: [409],
    reply: deliveryReply,
    answer: ({ delivery }) => ({ ok: true as const, delivery: deliveryOf(delivery) }),
  }),
  route('post', '/v1/webhooks/:id/replay', {
    name: 'replayDeliveries',
    tag,
    summary: 'Send a webhook’s failed deliveries again',
    access: 'webhooks:write',
    body: replayBody,
    bodyOptional: true,
    call: ({ webhooks }) => webhooks.replayDeliveries,
    input: ({ id, body }) => ({
      webhookId: id,
      createdAfter: body.created_after,
      createdBefore: body.created_before,
    }),
    refused: ({ webhooks }, id, options) => webhooks.updateWebhook({ webhookId: id, url: '' }, options),
    status: 202,
    reply: replayedReply,
    answer: ({ count }) => ({ ok: true as const, count }),
  }),
  route('post', '/v1/webhooks/:id/test', {
    name: 'testWebhook',
    tag,
    summary: 'Send a signed webhook.test event with made-up answers',
    access: 'webhooks:write',
    body: testWebhookBody,
    bodyOptional: true,
    call: ({ webhooks }) => webhooks.testWebhook,
    input: ({ id, body }) => ({ webhookId: id, formId: body.form_id ?? '' }),
    refused: ({ webhooks }, id, options) => webhooks.updateWebhook({ webhookId: id, url: '' }, options),
    status: 202,
    reply: deliveryReply,
    answer: ({ delivery }) => ({ ok: true as const, delivery: deliveryOf(delivery) }),
  }),
  route('get', '/v1/forms/:id/deliveries', {
    name: 'listFormDeliveries',
    tag,
    summary: 'List a form’s deliveries, mails too, newest first',
    access: 'submissions:read',
    query: deliveriesQuery,
    call: ({ webhooks }) => webhooks.listFormDeliveries,
    input: ({ id, query }) => ({ formId: id, ...pageOf(query), status: filterOf(query.status) }),
    refused: ({ webhooks }, id, options) =>
      webhooks.listFormDeliveries({ formId: id, pageSize: -1 }, options),
    reply: deliveriesReply,
    answer: ({ deliveries, nextPageToken }) => ({
      deliveries: deliveries.map(deliveryOf),
      next_cursor: textOrNull(nextPageToken),
    }),
  }),
];

import { type Route, route } from './route.ts';
import { durationOf, okReply, timeOf } from './schemas/common.ts';
import {
  createWebhookBody,
  eventsOf,
  rotateSecretBody,
  secretRotatedReply,
  updateWebhookBody,
  webhookCreatedReply,
  webhookOf,
  webhookReply,
  webhooksReply,
} from './schemas/webhooks.ts';

const tag = 'Webhooks';

/** The routes of the interface's webhooks, in its order, and those added to them. */
export const webhookRoutes: Route[] = [
  route('post', '/v1/webhooks', {
    name: 'createWebhook',
    tag,
    summary: 'Register an endpoint for signed events',
    access: 'webhooks:write',
    body: createWebhookBody,
    call: ({ webhooks }) => webhooks.createWebhook,
    input: ({ body }) => ({
      url: body.url,
      events: eventsOf(body.events),
      secret: body.secret ?? '',
      formId: body.form_id ?? '',
    }),
    refused: ({ webhooks }, _id, options) => webhooks.createWebhook({}, options),
    status: 201,
    errors: [404],
    reply: webhookCreatedReply,
    answer: ({ webhook, secret }) => ({ webhook: webhookOf(webhook), ...(secret === '' ? {} : { secret }) }),
  }),
  route('get', '/v1/webhooks', {
    name: 'listWebhooks',
    tag,
    summary: 'List the project’s webhooks',
    access: 'webhooks:read',
    call: ({ webhooks }) => webhooks.listWebhooks,
    input: () => ({}),
    reply: webhooksReply,
    answer: ({ webhooks }) => ({ webhooks: webhooks.map(webhookOf) }),
  }),
  route('get', '/v1/webhooks/:id', {
    name: 'getWebhook',
    tag,
    summary: 'Read a webhook',
    access: 'webhooks:read',
    call: ({ webhooks }) => webhooks.getWebhook,
    input: ({ id }) => ({ webhookId: id }),
    reply: webhookReply,
    answer: ({ webhook }) => ({ webhook: webhookOf(webhook) }),
  }),
  route('delete', '/v1/webhooks/:id', {
    name: 'deleteWebhook',
    tag,
    summary: 'Delete a webhook; what waits to be delivered is dropped',
    access: 'webhooks:write',
    call: ({ webhooks }) => webhooks.deleteWebhook,
    input: ({ id }) => ({ webhookId: id }),
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
  route('patch', '/v1/webhooks/:id', {
    name: 'updateWebhook',
    tag,
    summary: 'Change a webhook, or turn it off or on again',
    access: 'webhooks:write',
    body: updateWebhookBody,
    bodyOptional: true,
    call: ({ webhooks }) => webhooks.updateWebhook,
    input: ({ id, body }) => ({ ...body, webhookId: id, events: eventsOf(body.events) }),
    refused: ({ webhooks }, id, options) => webhooks.updateWebhook({ webhookId: id, url: '' }, options),
    reply: webhookReply,
    answer: ({ webhook }) => ({ webhook: webhookOf(webhook) }),
  }),
  route('post', '/v1/webhooks/:id/rotate-secret', {
    name: 'rotateWebhookSecret',
    tag,
    summary: 'Make a new signing secret',
    access: 'webhooks:write',
    body: rotateSecretBody,
    bodyOptional: true,
    call: ({ webhooks }) => webhooks.rotateWebhookSecret,
    input: ({ id, body }) => ({ webhookId: id, effectiveIn: durationOf(body.effective_in) }),
    refused: ({ webhooks }, id, options) =>
      webhooks.rotateWebhookSecret({ webhookId: id, effectiveIn: { seconds: -1n, nanos: 0 } }, options),
    reply: secretRotatedReply,
    answer: ({ webhook, secret, effectiveTime }) => ({
      webhook: webhookOf(webhook),
      secret,
      effective_at: timeOf(effectiveTime),
    }),
  }),
];

import { z } from 'zod';
import { type WebhookEvent, WebhookSchema, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { registrableEvents, registrableNames } from '../domain/events/index.ts';
import { pageSizes, secretDelaySeconds } from '../domain/limits/limits.ts';
import { durationOf, from, shape, timeOf, timeReply } from '../http/shape.ts';
import { listRoute, type Route, route, tagged } from './route.ts';
import {
  idempotencyKey,
  idempotencyKeyOf,
  largePageQuery,
  okReply,
  receiverUrl,
  seconds,
  signingSecret,
  template,
} from './schemas.ts';

const { method: rpcs } = WebhooksService;

const event = z.enum(registrableNames);

/** The services check these, with all else that is wrong; the API description says them. */
const url = receiverUrl;
const events = z.array(event).meta({ minItems: 1, maxItems: registrableNames.length, uniqueItems: true });
const formId = z.string().min(1);

const traceparent = z
  .boolean()
  .exactOptional()
  .describe('Whether deliveries have a `traceparent` header, where the service records traces.');

const createWebhookBody = z
  .strictObject({
    url,
    events: events.describe('At least one, each once.'),
    secret: signingSecret.exactOptional(),
    form_id: formId.exactOptional().describe('Absent: all forms of the project.'),
    traceparent,
    template: template.exactOptional(),
  })
  .meta({ id: 'CreateWebhookInput' });

const updateWebhookBody = z
  .strictObject({
    url: url.exactOptional(),
    events: events.min(1).exactOptional(),
    active: z.boolean().exactOptional().describe('true turns the webhook on again, false turns it off.'),
    traceparent,
    template: template.nullable().exactOptional().describe('null removes it.'),
  })
  .meta({ id: 'UpdateWebhookInput' });

const rotateSecretBody = z
  .strictObject({
    effective_in: seconds(secretDelaySeconds)
      .exactOptional()
      .describe('Seconds until deliveries are signed with the new secret.'),
  })
  .meta({ id: 'RotateSecretInput' });

const webhook = shape(WebhookSchema, 'Webhook', {
  id: z.string(),
  url: z.string(),
  events: from(
    ({ events }) => event.options.filter((name) => events.includes(registrableEvents[name])),
    z.array(event),
  ),
  form_id: z.string().nullable(),
  active: z.boolean(),
  created_at: timeReply,
  disabled_at: timeReply.nullable(),
  disabled_reason: z.string().nullable(),
  traceparent: z.literal(true).exactOptional().describe('Only if deliveries have that header.'),
  template: template.exactOptional().describe('Only if it has one.'),
});

const webhookReply = z.object({ webhook: webhook.schema });

const webhookCreatedReply = z.object({
  webhook: webhook.schema,
  secret: z.string().exactOptional().describe('Only if the service made it, and only here.'),
});

const secretRotatedReply = z.object({ webhook: webhook.schema, secret: z.string(), effective_at: timeReply });

/** The routes of the interface's webhooks, in its order, and those added to them. */
export const webhookRoutes: Route[] = tagged('Webhooks', [
  route('post', '/v1/webhooks', rpcs.createWebhook, {
    summary: 'Register an endpoint for signed events',
    body: createWebhookBody,
    headers: { 'Idempotency-Key': idempotencyKey },
    input: ({ body }, { request }) => ({
      url: body.url,
      events: eventsOf(body.events),
      secret: body.secret ?? '',
      formId: body.form_id ?? '',
      traceparent: body.traceparent ?? false,
      ...(body.template !== undefined && { template: body.template }),
      idempotencyKey: idempotencyKeyOf(request),
    }),
    status: 201,
    errors: [404, 409],
    reply: webhookCreatedReply,
    answer: ({ webhook: made, secret }) => ({
      webhook: webhook.of(made),
      ...(secret === '' ? {} : { secret }),
    }),
  }),
  listRoute('/v1/webhooks', rpcs.listWebhooks, {
    summary: 'List the project’s webhooks, newest first',
    name: 'webhooks',
    query: largePageQuery,
    pageSize: pageSizes.max,
    input: ({ page }) => page,
    item: webhook,
  }),
  route('get', '/v1/webhooks/:id', rpcs.getWebhook, {
    summary: 'Read a webhook',
    input: ({ id }) => ({ webhookId: id }),
    reply: webhookReply,
    answer: ({ webhook: there }) => ({ webhook: webhook.of(there) }),
  }),
  route('delete', '/v1/webhooks/:id', rpcs.deleteWebhook, {
    summary: 'Delete a webhook; what waits to be delivered is dropped',
    input: ({ id }) => ({ webhookId: id }),
    reply: okReply,
    answer: () => ({ ok: true as const }),
  }),
  route('patch', '/v1/webhooks/:id', rpcs.updateWebhook, {
    summary: 'Change a webhook, or turn it off or on again',
    body: updateWebhookBody,
    bodyOptional: true,
    input: ({ id, body: { template: given, ...body } }) => ({
      ...body,
      webhookId: id,
      events: eventsOf(body.events),
      ...(given !== undefined && { template: given ?? {} }),
    }),
    reply: webhookReply,
    answer: ({ webhook: there }) => ({ webhook: webhook.of(there) }),
  }),
  route('post', '/v1/webhooks/:id/rotate-secret', rpcs.rotateWebhookSecret, {
    summary: 'Make a new signing secret',
    body: rotateSecretBody,
    bodyOptional: true,
    input: ({ id, body }) => ({ webhookId: id, effectiveIn: durationOf(body.effective_in) }),
    reply: secretRotatedReply,
    answer: ({ webhook: there, secret, effectiveTime }) => ({
      webhook: webhook.of(there),
      secret,
      effective_at: timeOf(effectiveTime),
    }),
  }),
]);

/** The event types of a body, as messages have them. */
function eventsOf(names: readonly z.output<typeof event>[] | undefined): WebhookEvent[] {
  return names?.map((name) => registrableEvents[name]) ?? [];
}

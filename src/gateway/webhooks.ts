import { z } from 'zod';
import { WebhookSchema, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { webhookHeaderLimits } from '../domain/delivery/webhook-headers.ts';
import { registrableEvents, registrableNames } from '../domain/events/index.ts';
import { optional } from '../domain/json/optional.ts';
import { pageSizes, secretDelaySeconds } from '../domain/limits/limits.ts';
import { sendJson } from '../http/reply.ts';
import { largePageQuery, receiverUrl, seconds, signingSecret, template } from '../http/schemas.ts';
import { from, shape, timeReply } from '../http/shape.ts';
import { customRoute, done, listRoute, type Route, replyOf, route, tagged } from './route.ts';

const { method: rpcs } = WebhooksService;

const event = z.enum(registrableNames);

/** The services check these, with all else that is wrong; the API description says them. */
const url = receiverUrl;
const events = z.array(event).max(registrableNames.length).meta({ minItems: 1, uniqueItems: true });
const formId = z.string().min(1);

const traceparent = optional(
  z.boolean(),
  'Whether deliveries have a `traceparent` header, where the service records traces.',
);

const headers = z
  .record(z.string(), z.string())
  .describe(
    `Headers of its deliveries, at most ${webhookHeaderLimits.count} and ${webhookHeaderLimits.bytes} bytes. Stored encrypted, and sent to the origin of \`url\` alone.`,
  );

const filter = z
  .strictObject({
    source: optional(z.string().min(1), 'Only submissions with this source.'),
    field_id: optional(z.string().min(1), 'Only those whose answer to this field is `value`, or has it.'),
    value: z.union([z.string(), z.number(), z.boolean()]).exactOptional(),
  })
  .meta({
    id: 'WebhookFilter',
    description: 'Which submissions it receives. Other events are not filtered.',
  });

const ed25519 = optional(z.boolean(), 'Whether `webhook-signature` has a `v1a` signature (Ed25519), too.');

const toEvents = (names: z.output<typeof events>) => names.map((name) => registrableEvents[name]);

const createWebhookBody = z
  .strictObject({
    url,
    events: events.transform(toEvents).describe('At least one, each once.'),
    secret: signingSecret.exactOptional(),
    form_id: optional(formId, 'Absent: all forms of the project.'),
    traceparent,
    template: template.exactOptional(),
    headers: headers.exactOptional(),
    filter: filter.exactOptional(),
    ed25519,
  })
  .meta({ id: 'CreateWebhookInput' });

const updateWebhookBody = z
  .strictObject({
    url: url.exactOptional(),
    events: events.min(1).transform(toEvents).exactOptional(),
    active: optional(z.boolean(), 'true turns the webhook on again, false turns it off.'),
    traceparent,
    template: optional(template.nullable(), 'null removes it.'),
    headers: optional(headers.nullable(), 'In place of all before; null removes them.'),
    filter: optional(filter.nullable(), 'null removes it.'),
    ed25519,
  })
  .meta({ id: 'UpdateWebhookInput' });

const rotateSecretBody = z
  .strictObject({
    effective_in: optional(
      seconds(secretDelaySeconds),
      'Seconds until deliveries are signed with the new secret.',
    ),
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
  traceparent: optional(z.literal(true), 'Only if deliveries have that header.'),
  template: optional(template, 'Only if it has one.'),
  secret_format: z
    .enum(['whsec', 'raw'])
    .nullable()
    .describe(
      'How libraries of Standard Webhooks read the secret: as `whsec_` and base64, or as the key itself.',
    ),
  header_names: optional(z.array(z.string()), 'Only if it has headers; their values are never shown.'),
  filter: optional(filter, 'Only if it has one.'),
  public_key: optional(z.string(), '`whpk_…`, by which `v1a` signatures are checked. Only if it has these.'),
});

const publicKeyReply = z.object({
  public_key: z.string().describe('`whpk_` and the 32 bytes of the Ed25519 key in base64.'),
});

/** The routes of the interface's webhooks, in its order, and those added to them. */
export const webhookRoutes: Route[] = tagged('Webhooks', [
  route('post', '/v1/webhooks', rpcs.createWebhook, {
    summary: 'Register an endpoint for signed events',
    body: createWebhookBody,
    status: 201,
    errors: [404, 409],
    ...replyOf(rpcs.createWebhook.output, {
      webhook,
      secret: optional(z.string(), 'Only if the service made it, and only here.'),
    }),
  }),
  listRoute('/v1/webhooks', rpcs.listWebhooks, {
    summary: 'List the project’s webhooks, newest first',
    name: 'webhooks',
    query: largePageQuery,
    pageSize: pageSizes.max,
    item: webhook,
  }),
  route('get', '/v1/webhooks/:id', rpcs.getWebhook, {
    summary: 'Read a webhook',
    ...replyOf(rpcs.getWebhook.output, { webhook }),
  }),
  route('delete', '/v1/webhooks/:id', rpcs.deleteWebhook, {
    summary: 'Delete a webhook; pending deliveries are cancelled',
    ...done,
  }),
  route('patch', '/v1/webhooks/:id', rpcs.updateWebhook, {
    summary: 'Change a webhook, or turn it off or on again',
    body: updateWebhookBody,
    bodyOptional: true,
    ...replyOf(rpcs.updateWebhook.output, { webhook }),
  }),
  customRoute('get', '/.well-known/webhooks/:id', rpcs.getWebhookPublicKey, {
    summary: 'Read the key that checks a webhook’s `v1a` signatures',
    reply: publicKeyReply,
    async handle(context) {
      const { publicKey } = await context.call(rpcs.getWebhookPublicKey, { webhookId: context.id });
      context.response.setHeader('cache-control', 'public, max-age=300');
      sendJson(context.response, 200, { public_key: publicKey } satisfies z.input<typeof publicKeyReply>);
    },
  }),
  route('post', '/v1/webhooks/:id/rotate-secret', rpcs.rotateWebhookSecret, {
    summary: 'Make a new signing secret',
    body: rotateSecretBody,
    bodyOptional: true,
    ...replyOf(rpcs.rotateWebhookSecret.output, { webhook, secret: z.string(), effective_at: timeReply }),
  }),
]);

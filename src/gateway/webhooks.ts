import { fromJson } from '@bufbuild/protobuf';
import { ValueSchema } from '@bufbuild/protobuf/wkt';
import { z } from 'zod';
import {
  type WebhookEvent,
  type WebhookFilter,
  WebhookSchema,
  WebhooksService,
} from '../../gen/headlessforms/v1/webhooks_pb.js';
import { webhookHeaderLimits } from '../domain/delivery/webhook-headers.ts';
import { registrableEvents, registrableNames } from '../domain/events/index.ts';
import { pageSizes, secretDelaySeconds } from '../domain/limits/limits.ts';
import { sendJson } from '../http/reply.ts';
import { durationOf, fieldsOf, from, shape, timeOf, timeReply } from '../http/shape.ts';
import { customRoute, done, listRoute, type Route, replyWith, route, tagged } from './route.ts';
import { largePageQuery, receiverUrl, seconds, signingSecret, template } from './schemas.ts';

const { method: rpcs } = WebhooksService;

const event = z.enum(registrableNames);

/** The services check these, with all else that is wrong; the API description says them. */
const url = receiverUrl;
const events = z.array(event).max(registrableNames.length).meta({ minItems: 1, uniqueItems: true });
const formId = z.string().min(1);

const traceparent = z
  .boolean()
  .exactOptional()
  .describe('Whether deliveries have a `traceparent` header, where the service records traces.');

const headers = z
  .record(z.string(), z.string())
  .describe(
    `Headers of its deliveries, at most ${webhookHeaderLimits.count} and ${webhookHeaderLimits.bytes} bytes. Stored encrypted, and sent to the origin of \`url\` alone.`,
  );

const filter = z
  .strictObject({
    source: z.string().min(1).exactOptional().describe('Only submissions with this source.'),
    field_id: z
      .string()
      .min(1)
      .exactOptional()
      .describe('Only those whose answer to this field is `value`, or has it.'),
    value: z.union([z.string(), z.number(), z.boolean()]).exactOptional(),
  })
  .meta({
    id: 'WebhookFilter',
    description: 'Which submissions it receives. Other events are not filtered.',
  });

const ed25519 = z
  .boolean()
  .exactOptional()
  .describe('Whether `webhook-signature` has a `v1a` signature (Ed25519), too.');

const createWebhookBody = z
  .strictObject({
    url,
    events: events.describe('At least one, each once.'),
    secret: signingSecret.exactOptional(),
    form_id: formId.exactOptional().describe('Absent: all forms of the project.'),
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
    events: events.min(1).exactOptional(),
    active: z.boolean().exactOptional().describe('true turns the webhook on again, false turns it off.'),
    traceparent,
    template: template.nullable().exactOptional().describe('null removes it.'),
    headers: headers.nullable().exactOptional().describe('In place of all before; null removes them.'),
    filter: filter.nullable().exactOptional().describe('null removes it.'),
    ed25519,
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
  secret_format: z
    .enum(['whsec', 'raw'])
    .nullable()
    .describe(
      'How libraries of Standard Webhooks read the secret: as `whsec_` and base64, or as the key itself.',
    ),
  header_names: from(
    ({ headerNames }) => (headerNames.length === 0 ? undefined : headerNames),
    z.array(z.string()).exactOptional().describe('Only if it has headers; their values are never shown.'),
  ),
  filter: from(
    ({ filter: of }) => of && filterReply(of),
    filter.exactOptional().describe('Only if it has one.'),
  ),
  public_key: z
    .string()
    .exactOptional()
    .describe('`whpk_…`, by which `v1a` signatures are checked. Only if it has these.'),
});

const publicKeyReply = z.object({
  public_key: z.string().describe('`whpk_` and the 32 bytes of the Ed25519 key in base64.'),
});

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
    input: ({ body: { headers, filter, ed25519, ...body } }) => ({
      ...fieldsOf(body),
      ...requested({ headers, filter, ed25519 }),
      events: eventsOf(body.events),
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
    ...replyWith('webhook', webhook),
  }),
  route('delete', '/v1/webhooks/:id', rpcs.deleteWebhook, {
    summary: 'Delete a webhook; pending deliveries are cancelled',
    input: ({ id }) => ({ webhookId: id }),
    ...done,
  }),
  route('patch', '/v1/webhooks/:id', rpcs.updateWebhook, {
    summary: 'Change a webhook, or turn it off or on again',
    body: updateWebhookBody,
    bodyOptional: true,
    input: ({ id, body: { template: given, headers, filter, ...body } }) => ({
      ...body,
      ...requested({ headers, filter, ed25519: body.ed25519 }),
      webhookId: id,
      events: eventsOf(body.events),
      ...(given !== undefined && { template: given ?? {} }),
    }),
    ...replyWith('webhook', webhook),
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
    input: ({ id, body }) => ({ webhookId: id, effectiveIn: durationOf(body.effective_in) }),
    reply: secretRotatedReply,
    answer: ({ webhook: there, secret, effectiveTime }) => ({
      webhook: webhook.of(there),
      secret,
      effective_at: timeOf(effectiveTime),
    }),
  }),
]);

/** What else a body asks for, as messages have it. Null removes it. */
function requested({ headers, filter, ed25519 }: Asked) {
  return {
    ...(headers !== undefined && { headers: { values: headers ?? {} } }),
    ...(filter !== undefined && {
      filter: {
        source: filter?.source ?? '',
        fieldId: filter?.field_id ?? '',
        ...(filter?.value !== undefined && { value: fromJson(ValueSchema, filter.value) }),
      },
    }),
    ...(ed25519 !== undefined && { ed25519 }),
  };
}

function filterReply({ source, fieldId, value }: WebhookFilter): z.output<typeof filter> {
  const kind = value?.kind;
  const isPlain = kind?.case === 'stringValue' || kind?.case === 'numberValue' || kind?.case === 'boolValue';
  return {
    ...(source !== '' && { source }),
    ...(fieldId !== '' && { field_id: fieldId }),
    ...(isPlain && { value: kind.value }),
  };
}

type Asked = {
  headers?: z.output<typeof headers> | null | undefined;
  filter?: z.output<typeof filter> | null | undefined;
  ed25519?: boolean | undefined;
};

/** The event types of a body, as messages have them. */
function eventsOf(names: readonly z.output<typeof event>[] | undefined): WebhookEvent[] {
  return names?.map((name) => registrableEvents[name]) ?? [];
}

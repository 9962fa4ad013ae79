import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CreateWebhookRequest,
  UpdateWebhookRequest,
  WebhookEvent,
  WebhooksService,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { newSigningKey, publicKeyOf } from '../../domain/delivery/signature.ts';
import { headerProblems, sealableHeaders } from '../../domain/delivery/webhook-headers.ts';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { custom, type Violation } from '../../domain/errors/violations.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { emittedEvents, eventTypeOf } from '../../domain/events/index.ts';
import { templateProblems } from '../../domain/events/template.ts';
import { isId, newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { pageSizes, secretDelaySeconds } from '../../domain/limits/limits.ts';
import { newWebhookSecret } from '../../domain/secrets/new-secrets.ts';
import { callerOf } from '../../rpc/context.ts';
import { dropPendingDeliveries } from '../../store/deliveries/remove.ts';
import { type EventHead, listEventsById, type StoredEvent } from '../../store/events.ts';
import {
  deleteWebhook,
  findSigningWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type Webhook,
  type WebhookChange,
} from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { streamEvents } from '../events/event-stream.ts';
import { projectForm } from '../forms/form-access.ts';
import { keepReply } from '../idempotency.ts';
import { pageRequestOf, requireFound, secondsProblems } from '../request-values.ts';
import { activeState, newWebhookState } from './definition-webhook.ts';
import { deliveryMethods } from './deliveries.ts';
import { eventName, eventPayload, webhookToMessage } from './webhook-proto.ts';
import {
  aboutWebhook,
  eventProblems,
  filterProblems,
  givenFilter,
  insertWithinLimits,
  projectWebhook,
  secretProblems,
  urlProblems,
} from './webhook-request.ts';

/** Registers endpoints, and shows what became of each delivery to them. */
export function webhooksService(context: ServiceContext): ServiceImpl<typeof WebhooksService> {
  const { database, secrets, now, audit } = context;
  return {
    ...deliveryMethods(context),

    createWebhook: (request, call) => createWebhook(context, request, call),

    async listWebhooks(request, call) {
      const page = await listWebhooks(
        database,
        callerOf(call).projectId,
        pageRequestOf(request, 'wh', pageSizes.max),
      );
      return {
        webhooks: page.items.map((webhook) => webhookToMessage(webhook, context)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async getWebhook({ webhookId }, call) {
      const webhook = await projectWebhook(database, callerOf(call), webhookId);
      return { webhook: webhookToMessage(webhook, context) };
    },

    updateWebhook: (request, call) => changeWebhook(context, request, call),

    async deleteWebhook({ webhookId }, call) {
      const { projectId } = callerOf(call);
      if (!isId('wh', webhookId)) throw notFound('webhook');
      await database.transaction(async (tx) => {
        if (!(await deleteWebhook(tx, projectId, webhookId))) throw notFound('webhook');
        await audit.change(tx, call, { resource: webhookId });
      });
      await dropPendingDeliveries(database, webhookId);
      return {};
    },

    /** Streams the events that webhooks receive, with the bodies that they get. */
    async *listen({ formId, cursor }, call) {
      const load = async (events: EventHead[]) => {
        const ids = events.map(({ id }) => id);
        const stored = ids.length === 0 ? [] : await listEventsById(database, ids);
        return new Map(stored.map((event) => [event.id, { event: eventToMessage(event) }]));
      };
      yield* streamEvents(context, call, { formId, cursor, types: emittedEvents, load });
    },

    async getWebhookPublicKey({ webhookId }) {
      const { signingKey } = await requireFound('wh', webhookId, () =>
        findSigningWebhook(database, webhookId),
      );
      if (signingKey === null) throw notFound('webhook');
      return { publicKey: publicKeyOf(secrets.open(signingKey)) };
    },

    /** Makes a new secret, which signs at once or after `effective_in`. A rotation planned before is dropped. */
    async rotateWebhookSecret({ webhookId, effectiveIn }, call) {
      const caller = callerOf(call);
      refuseIfAny(secondsProblems(effectiveIn, 'effective_in', secretDelaySeconds));
      await projectWebhook(database, caller, webhookId);

      const secret = newWebhookSecret();
      const at = new Date(now());
      const effectiveAt = new Date(at.getTime() + (effectiveIn === undefined ? 0 : durationMs(effectiveIn)));
      const sealed = secrets.seal(secret);
      const rotation = { projectId: caller.projectId, webhookId, secret: sealed, effectiveAt, now: at };
      return database.transaction(async (tx) => {
        const rotated = await rotateWebhookSecret(tx, rotation);
        if (rotated === null) throw notFound('webhook');
        await audit.change(tx, call, aboutWebhook(rotated));
        const effectiveTime = timestampFromDate(effectiveAt);
        return keepReply(tx, call, { webhook: webhookToMessage(rotated, context), secret, effectiveTime });
      });
    },
  };
}

async function createWebhook(context: ServiceContext, request: CreateWebhookRequest, call: HandlerContext) {
  const { database, settings, secrets, now, audit } = context;
  const { url, secret, formId } = request;
  const template = givenTemplate(request);
  const { values: headers } = request.headers ?? { values: {} };
  const caller = callerOf(call);
  refuseIfAny([
    ...urlProblems(url, settings.allowPrivateWebhooks),
    ...eventProblems(request.events),
    ...secretProblems(secret),
    ...templateProblems(template ?? {}, 'template'),
    ...headerProblems(headers),
    ...filterProblems(request.filter),
  ]);
  const filter = givenFilter(request.filter) ?? null;
  if (formId !== '') await projectForm(database, caller, formId);

  const signing = secret === '' ? newWebhookSecret() : secret;
  const webhook: Webhook = {
    ...newWebhookState,
    id: newId('wh', now()),
    projectId: caller.projectId,
    formId: formId === '' ? null : formId,
    url,
    events: eventNames(request.events),
    secret: secrets.seal(signing),
    keyless: false,
    fromDefinition: false,
    sendsTraceparent: request.traceparent,
    template: template ?? null,
    headers: sealedHeaders(context, headers, url),
    filter,
    signingKey: request.ed25519 ? secrets.seal(newSigningKey()) : null,
    createdAt: new Date(now()),
  };
  const limits = { maxWebhooks: settings.maxWebhooks, path: 'url' };
  const shown = secret === '' ? signing : '';
  return database.transaction(async (tx) => {
    await insertWithinLimits(tx, webhook, limits);
    await audit.change(tx, call, aboutWebhook(webhook));
    return keepReply(tx, call, { webhook: webhookToMessage(webhook, context), secret: shown });
  });
}

async function changeWebhook(context: ServiceContext, request: UpdateWebhookRequest, call: HandlerContext) {
  const { database, settings, secrets, now, audit } = context;
  const caller = callerOf(call);
  const { url, events, active, traceparent, ed25519 } = request;
  const template = givenTemplate(request);
  const headers = request.headers?.values;
  refuseIfAny([
    ...(url === undefined ? [] : urlProblems(url, settings.allowPrivateWebhooks)),
    ...(events.length === 0 ? [] : eventProblems(events)),
    ...templateProblems(template ?? {}, 'template'),
    ...headerProblems(headers ?? {}),
    ...filterProblems(request.filter),
  ]);
  const filter = givenFilter(request.filter);
  const before = await projectWebhook(database, caller, request.webhookId);
  if (headers === undefined && before.headers !== null && isElsewhere(url, before.url)) {
    throw invalid([custom('headers', 'The URL has another origin: give the headers for it, or none')]);
  }
  const change: WebhookChange = {
    ...(url !== undefined && { url }),
    ...(events.length > 0 && { events: eventNames(events) }),
    ...(traceparent !== undefined && { sendsTraceparent: traceparent }),
    ...(template !== undefined && { template }),
    ...(filter !== undefined && { filter }),
    ...(headers !== undefined && { headers: sealedHeaders(context, headers, url ?? before.url) }),
    ...(ed25519 !== undefined &&
      ed25519 !== (before.signingKey !== null) && {
        signingKey: ed25519 ? secrets.seal(newSigningKey()) : null,
      }),
    ...(active !== undefined && active !== before.active && switched(active, new Date(now()))),
  };
  const webhook = await database.transaction(async (tx) => {
    const changed = await updateWebhook(tx, caller.projectId, before.id, change);
    if (changed === null) throw notFound('webhook');
    const named = {
      url,
      events: events.length > 0 ? events : undefined,
      active,
      traceparent,
      template,
      filter,
      headers,
      ed25519,
    };
    const detail = Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    await audit.change(tx, call, { ...aboutWebhook(changed), detail: detail.join(',') });
    return changed;
  });
  return { webhook: webhookToMessage(webhook, context) };
}

/** The template of a request; null for an empty one, by which events are sent as they are. */
function givenTemplate({ template }: Pick<CreateWebhookRequest, 'template'>): JsonObject | null | undefined {
  return template !== undefined && Object.keys(template).length === 0 ? null : template;
}

/** Whether a URL has another origin than the one before; without one nothing changes. */
function isElsewhere(url: string | undefined, before: string): boolean {
  return url !== undefined && new URL(url).origin !== new URL(before).origin;
}

function sealedHeaders(
  { secrets }: ServiceContext,
  headers: Record<string, string>,
  url: string,
): string | null {
  const text = sealableHeaders(headers, url);
  return text === null ? null : secrets.seal(text);
}

/** Turning a webhook on gives it a fresh start: its past failures do not turn it off again. */
function switched(active: boolean, at: Date): WebhookChange {
  if (active) return { ...activeState, failuresBeforeSuccess: 0 };
  return { active, disabledAt: at, disabledReason: 'Turned off by its owner' };
}

function refuseIfAny(violations: Violation[]): void {
  if (violations.length > 0) throw invalid(violations);
}

function eventNames(events: WebhookEvent[]): string[] {
  return events.flatMap((event) => eventName(event) ?? []);
}

function eventToMessage({ id, type: name, formId, body: stored, createdAt }: StoredEvent) {
  const type = eventTypeOf(name);
  const body = sentBody(stored);
  const createTime = timestampFromDate(createdAt);
  return { id, type, formId, body, createTime, payload: eventPayload(type, body) };
}

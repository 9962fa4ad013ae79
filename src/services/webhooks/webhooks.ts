import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CreateWebhookRequest,
  RotateWebhookSecretRequest,
  RotateWebhookSecretResponseSchema,
  UpdateWebhookRequest,
  WebhookEvent,
  WebhooksService,
} from '../../../gen/forms/v1/webhooks_pb.js';
import type { Violation } from '../../domain/errors/violations.ts';
import { isId, newId } from '../../domain/ids.ts';
import { pageSizes, secretDelaySeconds } from '../../domain/limits/limits.ts';
import { newWebhookSecret } from '../../domain/secrets/new-secrets.ts';
import { callerOf } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import { dropPendingDeliveries } from '../../store/deliveries/delivery-removal.ts';
import { rotateWebhookSecret } from '../../store/webhooks/webhook-secrets.ts';
import {
  deleteWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  type WebhookChange,
} from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { ownForm } from '../forms/form-access.ts';
import { makeOnce, secretInContent } from '../idempotency/make-once.ts';
import { pageRequestOf, secondsProblems } from '../request-values.ts';
import { activeState, newWebhookState } from './definition-webhook.ts';
import { deliveryMethods } from './deliveries.ts';
import { listen } from './listen.ts';
import { insertWithinLimits } from './webhook-limits.ts';
import { eventName, webhookToMessage } from './webhook-message.ts';
import { aboutWebhook, eventProblems, ownWebhook, secretProblems, urlProblems } from './webhook-request.ts';

/** Registers endpoints, and shows what became of each delivery to them. */
export function webhooksService(context: ServiceContext): ServiceImpl<typeof WebhooksService> {
  const { database, audit } = context;
  return {
    ...deliveryMethods(context),

    createWebhook: (request, call) => createWebhook(context, request, call),

    async listWebhooks(request, call) {
      const page = await listWebhooks(
        database,
        callerOf(call).projectId,
        pageRequestOf(request, 'wh', pageSizes.max),
      );
      return { webhooks: page.items.map(webhookToMessage), nextPageToken: page.nextCursor ?? '' };
    },

    async getWebhook({ webhookId }, call) {
      return { webhook: webhookToMessage(await ownWebhook(database, callerOf(call), webhookId)) };
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

    listen: (request, call) => listen(context, request, call),

    rotateWebhookSecret: (request, call) => rotateSecret(context, request, call),
  };
}

async function createWebhook(context: ServiceContext, request: CreateWebhookRequest, call: HandlerContext) {
  const { database, settings, secrets, now, audit } = context;
  const { url, secret, formId } = request;
  const caller = callerOf(call);
  refuseIfAny([
    ...urlProblems(url, settings.allowPrivateWebhooks),
    ...eventProblems(request.events),
    ...secretProblems(secret),
  ]);
  if (formId !== '') await ownForm(database, caller, formId);

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
    createdAt: new Date(now()),
  };
  const limits = { maxWebhooks: settings.maxWebhooks, path: 'url' };
  const shown = secret === '' ? signing : '';
  return makeOnce(context, call, {
    key: request.idempotencyKey,
    content: {
      url,
      events: webhook.events,
      secret: secretInContent(context, secret),
      form_id: webhook.formId,
      // Left out by default, so that calls are the same as those before it was there.
      ...(request.traceparent && { traceparent: true }),
    },
    again: async (first) => ({
      webhook: webhookToMessage(await ownWebhook(database, caller, first.id)),
      secret: first.secret,
    }),
    async make(record) {
      await database.transaction(async (tx) => {
        await record(tx, { id: webhook.id, secret: shown });
        await insertWithinLimits(tx, webhook, limits);
        await audit.change(tx, call, aboutWebhook(webhook));
      });
      return { webhook: webhookToMessage(webhook), secret: shown };
    },
  });
}

async function changeWebhook(context: ServiceContext, request: UpdateWebhookRequest, call: HandlerContext) {
  const { database, settings, now, audit } = context;
  const caller = callerOf(call);
  const { url, events, active, traceparent } = request;
  refuseIfAny([
    ...(url === undefined ? [] : urlProblems(url, settings.allowPrivateWebhooks)),
    ...(events.length === 0 ? [] : eventProblems(events)),
  ]);
  const before = await ownWebhook(database, caller, request.webhookId);
  const change: WebhookChange = {
    ...(url !== undefined && { url, failuresInRow: 0, openUntil: null }),
    ...(events.length > 0 && { events: eventNames(events) }),
    ...(traceparent !== undefined && { sendsTraceparent: traceparent }),
    ...(active !== undefined && active !== before.active && switched(active, new Date(now()))),
  };
  const webhook = await database.transaction(async (tx) => {
    const changed = await updateWebhook(tx, caller.projectId, before.id, change);
    if (changed === null) throw notFound('webhook');
    const named = { url, events: events.length > 0 ? events : undefined, active, traceparent };
    const detail = Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    await audit.change(tx, call, { ...aboutWebhook(changed), detail: detail.join(',') });
    return changed;
  });
  return { webhook: webhookToMessage(webhook) };
}

/** Turning a webhook on gives it a fresh start: its past failures do not turn it off again. */
function switched(active: boolean, at: Date): WebhookChange {
  if (active) return { ...activeState, failuresBeforeSuccess: 0 };
  return { active, disabledAt: at, disabledReason: 'Turned off by its owner' };
}

/** Makes a new signing secret, which signs at once or after `effective_in`. A rotation planned before is dropped. */
async function rotateSecret(
  { database, secrets, now, audit }: ServiceContext,
  { webhookId, effectiveIn }: RotateWebhookSecretRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof RotateWebhookSecretResponseSchema>> {
  const caller = callerOf(call);
  refuseIfAny(secondsProblems(effectiveIn, 'effective_in', secretDelaySeconds));
  await ownWebhook(database, caller, webhookId);

  const secret = newWebhookSecret();
  const at = new Date(now());
  const rotation = {
    projectId: caller.projectId,
    webhookId,
    secret: secrets.seal(secret),
    effectiveAt: new Date(at.getTime() + (effectiveIn === undefined ? 0 : durationMs(effectiveIn))),
    now: at,
  };
  const webhook = await database.transaction(async (tx) => {
    const rotated = await rotateWebhookSecret(tx, rotation);
    if (rotated === null) throw notFound('webhook');
    await audit.change(tx, call, aboutWebhook(rotated));
    return rotated;
  });
  return {
    webhook: webhookToMessage(webhook),
    secret,
    effectiveTime: timestampFromDate(rotation.effectiveAt),
  };
}

function refuseIfAny(violations: Violation[]): void {
  if (violations.length > 0) throw invalid(violations);
}

function eventNames(events: WebhookEvent[]): string[] {
  return events.flatMap((event) => eventName(event) ?? []);
}

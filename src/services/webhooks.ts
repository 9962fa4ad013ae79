import type { ServiceImpl } from '@connectrpc/connect';
import type {
  CreateWebhookRequest,
  UpdateWebhookRequest,
  WebhookEvent,
  WebhooksService,
} from '../../gen/forms/v1/webhooks_pb.js';
import { isId, newId } from '../domain/ids.ts';
import { newWebhookSecret } from '../domain/secrets.ts';
import type { Violation } from '../domain/violations.ts';
import type { Queries } from '../store/database.ts';
import { dropPendingDeliveries } from '../store/deliveries.ts';
import {
  deleteWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  type WebhookChange,
} from '../store/webhooks.ts';
import { type Caller, callerOf } from './calls/context.ts';
import { invalid, notFound } from './calls/errors.ts';
import { deliveryMethods } from './deliveries.ts';
import { freshWebhook, turnedOn } from './delivery-webhook.ts';
import type { Shared } from './deps.ts';
import { formOf } from './form-lookup.ts';
import { createListen } from './listen.ts';
import { eventProblems, secretProblems, urlProblems } from './webhook-checks.ts';
import { webhookOf } from './webhook-lookup.ts';
import { eventName, webhookMessage } from './webhook-message.ts';
import { rotateSecret } from './webhook-rotation.ts';
import { testWebhook } from './webhook-test.ts';

/** Registers endpoints, and tells what became of each delivery to them. */
export function webhooksService(shared: Shared): ServiceImpl<typeof WebhooksService> {
  const { database } = shared;
  return {
    ...deliveryMethods(shared),

    createWebhook: (request, context) => createWebhook(shared, request, callerOf(context)),

    async listWebhooks(_request, context) {
      const all = await allWebhooks(database, callerOf(context).projectId);
      return { webhooks: all.map(webhookMessage) };
    },

    async getWebhook({ webhookId }, context) {
      return { webhook: webhookMessage(await webhookOf(database, callerOf(context), webhookId)) };
    },

    updateWebhook: (request, context) => change(shared, request, callerOf(context)),

    async deleteWebhook({ webhookId }, context) {
      const { projectId } = callerOf(context);
      const found = isId('wh', webhookId) && (await deleteWebhook(database, projectId, webhookId));
      if (!found) throw notFound('webhook');
      await dropPendingDeliveries(database, webhookId);
      return {};
    },

    listen: createListen(shared),

    rotateWebhookSecret: (request, context) => rotateSecret(shared, request, callerOf(context)),

    testWebhook: async (request, context) => {
      const caller = callerOf(context);
      const webhook = await webhookOf(database, caller, request.webhookId);
      return testWebhook(shared, webhook, request.formId, caller);
    },
  };
}

async function createWebhook(shared: Shared, request: CreateWebhookRequest, caller: Caller) {
  const { database, settings, secrets, now } = shared;
  const { url, secret, formId } = request;
  refuseIfAny([
    ...urlProblems(url, settings.allowPrivateWebhooks),
    ...eventProblems(request.events),
    ...secretProblems(secret),
  ]);
  if (formId !== '') await formOf(database, caller, formId);

  const signing = secret === '' ? newWebhookSecret() : secret;
  const webhook: Webhook = {
    ...freshWebhook,
    id: newId('wh', now()),
    projectId: caller.projectId,
    formId: formId === '' ? null : formId,
    url,
    events: eventNames(request.events),
    secret: secrets.seal(signing),
    keyless: false,
    fromDefinition: false,
    createdAt: new Date(now()),
  };
  await insertWebhook(database, webhook);
  return { webhook: webhookMessage(webhook), secret: secret === '' ? signing : '' };
}

async function change(shared: Shared, request: UpdateWebhookRequest, caller: Caller) {
  const { database, settings, now } = shared;
  const { url, events, active } = request;
  refuseIfAny([
    ...(url === undefined ? [] : urlProblems(url, settings.allowPrivateWebhooks)),
    ...(events.length === 0 ? [] : eventProblems(events)),
  ]);
  const before = await webhookOf(database, caller, request.webhookId);
  const webhook = await updateWebhook(database, caller.projectId, before.id, {
    ...(url !== undefined && { url }),
    ...(events.length > 0 && { events: eventNames(events) }),
    ...(active !== undefined && active !== before.active && switched(active, new Date(now()))),
  });
  if (webhook === null) throw notFound('webhook');
  return { webhook: webhookMessage(webhook) };
}

/** Turning a webhook on gives it a fresh start: its past failures do not turn it off again. */
function switched(active: boolean, at: Date): WebhookChange {
  if (active) return { ...turnedOn, failuresBeforeSuccess: 0 };
  return { active, disabledAt: at, disabledReason: 'Turned off by its owner' };
}

function refuseIfAny(violations: Violation[]): void {
  if (violations.length > 0) throw invalid(violations);
}

function eventNames(events: WebhookEvent[]): string[] {
  return events.flatMap((event) => eventName(event) ?? []);
}

async function allWebhooks(db: Queries, projectId: string): Promise<Webhook[]> {
  const all: Webhook[] = [];
  let cursor: string | undefined;
  do {
    const page = await listWebhooks(db, projectId, { limit: WEBHOOKS_AT_ONCE, cursor });
    all.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

const WEBHOOKS_AT_ONCE = 500;

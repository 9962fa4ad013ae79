import type { ServiceImpl } from '@connectrpc/connect';
import type {
  CreateWebhookRequest,
  UpdateWebhookRequest,
  WebhookEvent,
  WebhooksService,
} from '../../../gen/forms/v1/webhooks_pb.js';
import { isId, newId } from '../../domain/ids.ts';
import { newWebhookSecret } from '../../domain/secrets.ts';
import type { Violation } from '../../domain/violations.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { dropPendingDeliveries } from '../../store/deliveries.ts';
import {
  deleteWebhook,
  insertWebhook,
  listWebhooks,
  updateWebhook,
  type Webhook,
  type WebhookChange,
} from '../../store/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { formOf } from '../forms/form-lookup.ts';
import { deliveryMethods } from './deliveries.ts';
import { freshWebhook, turnedOn } from './delivery-webhook.ts';
import { createListen } from './listen.ts';
import { rotateSecret } from './secret-rotation.ts';
import { testWebhook } from './test-event.ts';
import { eventProblems, secretProblems, urlProblems } from './webhook-checks.ts';
import { webhookOf } from './webhook-lookup.ts';
import { eventName, webhookMessage } from './webhook-message.ts';

/** Registers endpoints, and tells what became of each delivery to them. */
export function webhooksService(context: ServiceContext): ServiceImpl<typeof WebhooksService> {
  const { database } = context;
  return {
    ...deliveryMethods(context),

    createWebhook: (request, call) => createWebhook(context, request, callerOf(call)),

    async listWebhooks(_request, call) {
      const all = await allWebhooks(database, callerOf(call).projectId);
      return { webhooks: all.map(webhookMessage) };
    },

    async getWebhook({ webhookId }, call) {
      return { webhook: webhookMessage(await webhookOf(database, callerOf(call), webhookId)) };
    },

    updateWebhook: (request, call) => change(context, request, callerOf(call)),

    async deleteWebhook({ webhookId }, call) {
      const { projectId } = callerOf(call);
      const found = isId('wh', webhookId) && (await deleteWebhook(database, projectId, webhookId));
      if (!found) throw notFound('webhook');
      await dropPendingDeliveries(database, webhookId);
      return {};
    },

    listen: createListen(context),

    rotateWebhookSecret: (request, call) => rotateSecret(context, request, callerOf(call)),

    testWebhook: async (request, call) => {
      const caller = callerOf(call);
      const webhook = await webhookOf(database, caller, request.webhookId);
      return testWebhook(context, webhook, request.formId, caller);
    },
  };
}

async function createWebhook(context: ServiceContext, request: CreateWebhookRequest, caller: Caller) {
  const { database, settings, secrets, now } = context;
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

async function change(context: ServiceContext, request: UpdateWebhookRequest, caller: Caller) {
  const { database, settings, now } = context;
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

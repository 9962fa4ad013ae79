import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  DeliveryStatus,
  DeliveryStatusSchema,
  type ReplayDeliveriesRequest,
  ReplayStatus,
  ReplayStatusSchema,
  type TestWebhookRequest,
  type WebhooksService,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { sampleAnswers } from '../../domain/answers/json-schema.ts';
import { failed, notFound } from '../../domain/errors/failure.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { newId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { insertTestDelivery } from '../../store/deliveries/enqueue.ts';
import {
  type Delivery,
  findDelivery,
  type LoggedDelivery,
  listDeliveries,
} from '../../store/deliveries/log.ts';
import { type ReplayRange, replayDeliveries, replayDelivery } from '../../store/deliveries/replay.ts';
import { type Form, listForms } from '../../store/forms/forms.ts';
import { findWebhook } from '../../store/webhooks/webhooks.ts';
import type { About } from '../audit/audit.ts';
import type { ServiceContext } from '../context.ts';
import { definitionInUse, projectForm } from '../forms/form-access.ts';
import { keepReply } from '../idempotency.ts';
import { askedName, badParameter, dateOfTimestamp, pageRequestOf, requireFound } from '../request-values.ts';
import { deliveryToMessage } from './webhook-proto.ts';
import { aboutWebhook, projectWebhook } from './webhook-request.ts';

/** The RPCs that show the log of deliveries, send them again, and send one for a test. */
export function deliveryMethods(context: ServiceContext) {
  const { database, notifyWorkers, audit } = context;
  return {
    async listDeliveries(request, call) {
      const webhook = await projectWebhook(database, callerOf(call), request.webhookId);
      const page = await logPage(database, { webhookId: webhook.id }, request);
      audit.note(call, aboutWebhook(webhook));
      return page;
    },

    async listFormDeliveries(request, call) {
      const { id } = await projectForm(database, callerOf(call), request.formId);
      const page = await logPage(database, { formId: id }, request);
      audit.note(call, { formId: id });
      return page;
    },

    async replayDelivery({ deliveryId }, call) {
      const caller = callerOf(call);
      const { delivery } = await projectDelivery(database, caller, deliveryId);
      return sendAgain(context, delivery, call, { resource: deliveryId }, async (tx) => ({
        delivery: deliveryToMessage(await projectDelivery(tx, caller, deliveryId)),
      }));
    },

    async replayDeliveries(request, call) {
      const { range, about } = await replayed(context, callerOf(call), request);
      // It works in groups, so that the entry comes before all of them.
      await database.transaction((tx) => audit.change(tx, call, about));
      try {
        const { count, next } = await replayDeliveries(database, range, call.signal);
        const rest = next === undefined ? {} : { more: true, nextCreatedAfter: timestampFromDate(next) };
        // After the groups: a call that is repeated before finds only what has failed since.
        return await database.transaction((tx) => keepReply(tx, call, { count, ...rest }));
      } finally {
        // Of a call that ends early some may be pending.
        notifyWorkers();
      }
    },

    testWebhook: (request, call) => testWebhook(context, request, call),
  } satisfies Partial<ServiceImpl<typeof WebhooksService>>;
}

async function logPage(
  database: Queries,
  of: { webhookId: string } | { formId: string },
  request: LogRequest,
) {
  const page = pageRequestOf(request, 'dlv');
  const status = askedName(DeliveryStatus, request.status, 'status', DeliveryStatusSchema);
  const filter = { ...of, ...(status !== undefined && { status }) };
  const { items, nextCursor } = await listDeliveries(database, filter, page);
  return { deliveries: items.map(deliveryToMessage), nextPageToken: nextCursor ?? '' };
}

/** Takes a delivery back into the queue, and returns the reply. Throws CONFLICT and NOT_FOUND if that can't be. */
export async function sendAgain<Reply extends Record<string, unknown>>(
  { database, audit, notifyWorkers }: Pick<ServiceContext, 'database' | 'audit' | 'notifyWorkers'>,
  { id, projectId, channel, status }: Delivery,
  call: HandlerContext,
  about: About,
  replyOf: (tx: Transaction) => Promise<Reply>,
): Promise<Reply> {
  const reply = await database.transaction(async (tx) => {
    if (!(await replayDelivery(tx, { projectId, id }))) return undefined;
    await audit.change(tx, call, about);
    return keepReply(tx, call, await replyOf(tx));
  });
  if (reply !== undefined) {
    notifyWorkers();
    return reply;
  }
  if (status === 'pending') throw failed(Reason.CONFLICT, 'The delivery is pending: it will be sent anyway');
  if (channel === 'webhook') throw notFound('delivery');
  throw failed(Reason.CONFLICT, 'Only deliveries to webhooks and emails of submissions can be sent again');
}

/** What a call sends again: of a webhook or a form of the caller's project, and of what time. */
async function replayed(
  { database, now, settings }: ServiceContext,
  caller: Caller,
  request: ReplayDeliveriesRequest,
): Promise<{ range: ReplayRange; about: About }> {
  const { webhookId, formId, status } = request;
  const createdAfter = request.createdAfter && dateOfTimestamp(request.createdAfter);
  const createdBefore = request.createdBefore && dateOfTimestamp(request.createdBefore);
  const isMissed = askedName(ReplayStatus, status, 'status', ReplayStatusSchema) === 'missed';
  const range = { createdAfter, createdBefore };
  if (isMissed && createdAfter === undefined) throw badParameter('created_after', 'invalid_type', 'Required');
  if (createdAfter && createdBefore && createdBefore <= createdAfter)
    throw badParameter('created_before', 'too_small', 'Expected a time after created_after');
  if (formId === '') {
    const webhook = await projectWebhook(database, caller, webhookId);
    const about = aboutWebhook(webhook);
    if (!isMissed) return { range: { ...range, webhookId: webhook.id }, about };
    if (!webhook.active) throw failed(Reason.CONFLICT, 'The webhook is off: turn it on first');
    // Of events from before, what was delivered may have left the log.
    const kept = now() - settings.deliveryRetentionDays * DAY_MS;
    const since = Math.max(createdAfter?.getTime() ?? 0, webhook.createdAt.getTime(), kept);
    return { range: { ...range, createdAfter: new Date(since), missedBy: webhook }, about };
  }
  if (webhookId !== '') throw badParameter('form_id', 'custom', 'Expected a webhook or a form, not both');
  if (isMissed) throw badParameter('status', 'invalid_enum_value', 'Only webhooks can miss events');
  const { id } = await projectForm(database, caller, formId);
  return { range: { ...range, formId: id }, about: { formId: id } };
}

/** An email, or a delivery to a webhook, of the caller's project; those of a deleted webhook are not found. */
async function projectDelivery(db: Queries, caller: Caller, deliveryId: string): Promise<LoggedDelivery> {
  const { projectId } = caller;
  return requireFound('dlv', deliveryId, async () => {
    const logged = await findDelivery(db, projectId, deliveryId);
    const { webhookId = null, kind } = logged?.delivery ?? {};
    return webhookId === null ||
      kind === 'session.ended' ||
      (await findWebhook(db, projectId, webhookId)) !== null
      ? logged
      : null;
  });
}

/**
 * Sends a webhook an event with made-up answers: to the form that is named, or the webhook's own, or the project's
 * newest; in a project without forms about one that is made up. It is signed, logged and retried as any other, on a
 * webhook that is turned off too.
 */
async function testWebhook(
  { database, now, notifyWorkers, audit }: ServiceContext,
  { webhookId, formId }: TestWebhookRequest,
  call: HandlerContext,
) {
  const caller = callerOf(call);
  const webhook = await projectWebhook(database, caller, webhookId);
  const wanted = formId === '' ? webhook.formId : formId;
  const form =
    wanted === null ? await newestForm(database, caller) : await projectForm(database, caller, wanted);
  const definition = form && (await definitionInUse(database, form));
  const { formId: tested, answers } =
    form && definition ? { formId: form.id, answers: sampleAnswers(definition) } : madeUpForm;

  const at = new Date(now());
  const event = { id: newId('evt', at.getTime()), at: at.toISOString() };
  const body = eventTypes['webhook.test'].body(event, {
    webhookId: webhook.id,
    formId: tested,
    answers,
  });
  const { url, keyless } = webhook;
  const delivery = { id: newId('dlv', at.getTime()), webhookId: webhook.id, url, keyless };
  const { projectId } = caller;
  const reply = await database.transaction(async (tx) => {
    await insertTestDelivery(tx, {
      event: { id: event.id, projectId, formId: form?.id ?? '', type: 'webhook.test', body, createdAt: at },
      delivery,
    });
    await audit.change(tx, call, aboutWebhook(webhook));
    const logged = await findDelivery(tx, projectId, delivery.id);
    if (logged === null) throw notFound('delivery');
    return keepReply(tx, call, { delivery: deliveryToMessage(logged) });
  });
  notifyWorkers();
  return reply;
}

/** What the event is about in a project without forms: a receiver can be written before the first one. */
const madeUpForm = {
  formId: 'form_example',
  answers: { name: 'Someone', email: 'someone@example.com', message: 'Some text.' },
};

async function newestForm(database: Queries, caller: Caller): Promise<Form | undefined> {
  const { items } = await listForms(database, caller.projectId, { limit: 1 });
  const [newest] = items;
  return newest && projectForm(database, caller, newest.id);
}

type LogRequest = { pageSize: number; pageToken: string; status: DeliveryStatus };

import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type {
  DeliveryStatus,
  TestWebhookRequest,
  TestWebhookResponseSchema,
  WebhooksService,
} from '../../../gen/forms/v1/webhooks_pb.js';
import { sampleAnswers } from '../../domain/answers/sample-answers.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { isId, newId } from '../../domain/ids.ts';
import { type Caller, callerOf } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { findDelivery, type LoggedDelivery, listDeliveries } from '../../store/deliveries/deliveries.ts';
import {
  insertTestDelivery,
  replayDelivery,
  replayFailedDeliveries,
} from '../../store/deliveries/delivery-replay.ts';
import { type Form, listForms } from '../../store/forms/forms.ts';
import { findWebhook } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { definitionInUse, ownForm } from '../forms/form-access.ts';
import { pageRequestOf } from '../request-values.ts';
import { deliveryToMessage, statusFilterOf } from './webhook-message.ts';
import { aboutWebhook, ownWebhook } from './webhook-request.ts';

/** The RPCs that show the log of deliveries, send them again, and send one for a test. */
export function deliveryMethods(context: ServiceContext): DeliveryMethods {
  const { database, notifyWorkers, audit } = context;
  return {
    async listDeliveries(request, call) {
      const webhook = await ownWebhook(database, callerOf(call), request.webhookId);
      const page = await logPage(database, { webhookId: webhook.id }, request);
      audit.note(call, aboutWebhook(webhook));
      return page;
    },

    async listFormDeliveries(request, call) {
      const { id } = await ownForm(database, callerOf(call), request.formId);
      const page = await logPage(database, { formId: id }, request);
      audit.note(call, { formId: id });
      return page;
    },

    async replayDelivery({ deliveryId }, call) {
      const caller = callerOf(call);
      const before = await ownDelivery(database, caller, deliveryId);
      const replayed = await database.transaction(async (tx) => {
        const done = await replayDelivery(tx, { projectId: caller.projectId, id: deliveryId });
        if (done) await audit.change(tx, call, { resource: deliveryId });
        return done;
      });
      if (!replayed) {
        if (before.delivery.status !== 'pending') throw notFound('delivery');
        throw failed(Reason.CONFLICT, 'The delivery is pending: it will be sent anyway');
      }
      notifyWorkers();
      return { delivery: deliveryToMessage(await ownDelivery(database, caller, deliveryId)) };
    },

    async replayDeliveries({ webhookId, createdAfter, createdBefore }, call) {
      const webhook = await ownWebhook(database, callerOf(call), webhookId);
      // It works in groups, so that the entry comes before all of them.
      await database.transaction((tx) => audit.change(tx, call, aboutWebhook(webhook)));
      const count = await replayFailedDeliveries(database, {
        webhookId: webhook.id,
        ...(createdAfter !== undefined && { createdAfter: instantOf(createdAfter) }),
        ...(createdBefore !== undefined && { createdBefore: instantOf(createdBefore) }),
      });
      notifyWorkers();
      return { count };
    },

    testWebhook: (request, call) => testWebhook(context, request, call),
  };
}

async function logPage(
  database: Queries,
  of: { webhookId: string } | { formId: string },
  request: LogRequest,
) {
  const page = pageRequestOf(request, 'dlv');
  const status = statusFilterOf(request.status);
  const filter = { ...of, ...(status !== undefined && { status }) };
  const { items, nextCursor } = await listDeliveries(database, filter, page);
  return { deliveries: items.map(deliveryToMessage), nextPageToken: nextCursor ?? '' };
}

/** A delivery to a webhook of the caller's project; those of a deleted webhook and mails are not found. */
async function ownDelivery(db: Queries, caller: Caller, deliveryId: string): Promise<LoggedDelivery> {
  const { projectId } = caller;
  const logged = isId('dlv', deliveryId) ? await findDelivery(db, projectId, deliveryId) : null;
  const webhookId = logged?.delivery.webhookId ?? null;
  const webhook = webhookId === null ? null : await findWebhook(db, projectId, webhookId);
  if (logged === null || webhook === null) throw notFound('delivery');
  return logged;
}

/**
 * Sends a webhook an event with made-up answers: to the form that is named, or the webhook's own,
 * or the project's newest. It is signed, logged and retried as any other, on a webhook that is
 * turned off too.
 */
async function testWebhook(
  { database, forms, now, notifyWorkers, audit }: ServiceContext,
  { webhookId, formId }: TestWebhookRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof TestWebhookResponseSchema>> {
  const caller = callerOf(call);
  const webhook = await ownWebhook(database, caller, webhookId);
  const wanted = formId === '' ? webhook.formId : formId;
  const form = wanted === null ? await newestForm(database, caller) : await ownForm(database, caller, wanted);
  const definition = form && (await definitionInUse(database, form));
  const answers = definition ? await sampleAnswers(definition, forms.checkerOf(form.id, definition)) : {};

  const at = new Date(now());
  const event = { id: newId('evt', at.getTime()), at: at.toISOString() };
  const body = eventTypes['webhook.test'].body(event, {
    webhookId: webhook.id,
    formId: form?.id ?? null,
    answers,
  });
  const { url, keyless } = webhook;
  const delivery = { id: newId('dlv', at.getTime()), webhookId: webhook.id, url, keyless };
  const { projectId } = caller;
  await database.transaction(async (tx) => {
    await insertTestDelivery(tx, {
      event: { id: event.id, projectId, formId: form?.id ?? '', type: 'webhook.test', body, createdAt: at },
      delivery,
    });
    await audit.change(tx, call, aboutWebhook(webhook));
  });
  notifyWorkers();

  const logged = await findDelivery(database, projectId, delivery.id);
  if (logged === null) throw notFound('delivery');
  return { delivery: deliveryToMessage(logged) };
}

async function newestForm(database: Queries, caller: Caller): Promise<Form | undefined> {
  const { items } = await listForms(database, caller.projectId, { limit: 1 });
  const [newest] = items;
  return newest && ownForm(database, caller, newest.id);
}

/** A time beyond the range of `Date` reads as the nearest within it. */
function instantOf(time: Timestamp): Date {
  return new Date(Math.min(Math.max(timestampMs(time), -MAX_DATE_MS), MAX_DATE_MS));
}

/** ECMA-262, 21.4.1.1. */
const MAX_DATE_MS = 8.64e15;

type LogRequest = { pageSize: number; pageToken: string; status: DeliveryStatus };

type DeliveryMethods = Pick<
  ServiceImpl<typeof WebhooksService>,
  'listDeliveries' | 'listFormDeliveries' | 'replayDelivery' | 'replayDeliveries' | 'testWebhook'
>;

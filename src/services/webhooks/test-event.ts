import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TestWebhookResponseSchema } from '../../../gen/forms/v1/webhooks_pb.js';
import { sampleAnswers } from '../../domain/answers/sample-answers.ts';
import { testPayload } from '../../domain/events/payload.ts';
import { newId } from '../../domain/ids.ts';
import type { Caller } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import { findDelivery, insertTestDelivery } from '../../store/deliveries.ts';
import { type Form, listForms } from '../../store/forms.ts';
import type { Webhook } from '../../store/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { definitionInUse, formOf } from '../forms/form-lookup.ts';
import { deliveryMessage } from './webhook-message.ts';

/**
 * Sends a webhook an event with made-up answers: to the form that is named, or the webhook's own,
 * or the project's newest. It is signed, logged and retried as any other, on a webhook that is
 * turned off too.
 */
export async function testWebhook(
  { database, now, nudge }: ServiceContext,
  webhook: Webhook,
  formId: string,
  caller: Caller,
): Promise<MessageInitShape<typeof TestWebhookResponseSchema>> {
  const wanted = formId === '' ? webhook.formId : formId;
  const form = wanted === null ? await newestForm() : await formOf(database, caller, wanted);
  const answers = form === undefined ? {} : sampleAnswers(await definitionInUse(database, form));

  const at = new Date(now());
  const event = { id: newId('evt', at.getTime()), at };
  const body = testPayload(event, { webhookId: webhook.id, formId: form?.id ?? null, answers });
  const delivery = { id: newId('dlv', at.getTime()), webhookId: webhook.id, url: webhook.url };
  const { projectId } = caller;
  await database.transaction((tx) =>
    insertTestDelivery(tx, {
      event: { id: event.id, projectId, formId: form?.id ?? '', type: 'webhook.test', body, createdAt: at },
      delivery,
    }),
  );
  nudge();

  const logged = await findDelivery(database, { projectId, id: delivery.id });
  if (logged === null) throw notFound('delivery');
  return { delivery: deliveryMessage(logged) };

  async function newestForm(): Promise<Form | undefined> {
    const { items } = await listForms(database, caller.projectId, { limit: 1 });
    return items[0];
  }
}

import type { Delivery } from '../../domain/definition/definition.ts';
import { fieldPathOf } from '../../domain/definition/definition-path.ts';
import { isKeyless, newId } from '../../domain/ids.ts';
import { newWebhookSecret } from '../../domain/secrets/new-secrets.ts';
import { nullsOf } from '../../store/database/columns.ts';
import type { Transaction } from '../../store/database/database.ts';
import type { Form } from '../../store/forms/forms.ts';
import {
  findDefinitionWebhook,
  rotateWebhookSecret,
  updateWebhook,
  type Webhook,
  WebhookEntity,
} from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { insertWithinLimits } from './webhook-request.ts';

/**
 * Brings the form's own webhook in line with its definition, as part of the transaction that makes
 * the definition current. Deliveries made before keep their URL.
 *
 * Returns the signing secret if one was made, which is to be shown this once; else ''. `secret` is
 * the one that came with the definition. Throws `INVALID_ARGUMENT` at the definition's URL if there are too many
 * webhooks for one more.
 */
export async function syncDefinitionWebhook(
  tx: Transaction,
  { secrets, settings: { maxWebhooks } }: Pick<ServiceContext, 'secrets' | 'settings'>,
  { form, delivery, secret, at }: DeliveryChange,
): Promise<string> {
  const webhook = await findDefinitionWebhook(tx, form.id);
  if (delivery.type === 'email') {
    if (webhook?.active) await turnOff(tx, webhook, at);
    return '';
  }
  if (webhook === null) {
    const signing = secret ?? newWebhookSecret();
    const added = newWebhook(form, delivery.url, secrets.seal(signing), at);
    await insertWithinLimits(tx, added, { maxWebhooks, path: fieldPathOf('delivery.url') });
    return secret === undefined ? signing : '';
  }
  const { id, projectId } = webhook;
  await updateWebhook(tx, projectId, id, {
    ...(delivery.url !== webhook.url && { url: delivery.url }),
    ...(webhook.disabledReason === DELIVERED_BY_MAIL && activeState),
  });
  if (secret !== undefined) {
    const sealed = secrets.seal(secret);
    await rotateWebhookSecret(tx, { projectId, webhookId: id, secret: sealed, effectiveAt: at, now: at });
  }
  return '';
}

async function turnOff(tx: Transaction, { projectId, id }: Webhook, at: Date): Promise<void> {
  const off = { active: false, disabledAt: at, disabledReason: DELIVERED_BY_MAIL };
  await updateWebhook(tx, projectId, id, off);
}

function newWebhook(form: Form, url: string, secret: string, createdAt: Date): Webhook {
  return {
    ...newWebhookState,
    id: newId('wh', createdAt.getTime()),
    projectId: form.projectId,
    formId: form.id,
    url,
    events: ['submission.created'],
    secret,
    keyless: isKeyless(form),
    fromDefinition: true,
    createdAt,
  };
}

/** The state of a webhook that is turned on (again): past failures no longer count. */
export const activeState = {
  active: true,
  disabledAt: null,
  disabledReason: null,
  failingSince: null,
  failuresInRow: 0,
  openUntil: null,
} as const;

/** What all webhooks begin with. */
export const newWebhookState = {
  ...nullsOf(WebhookEntity),
  ...activeState,
  sendsTraceparent: false,
  announcedFailing: false,
  failuresBeforeSuccess: 0,
} as const;

/** Shown to people; it also marks that the definition turned it off, rather than a person or failures. */
const DELIVERED_BY_MAIL = 'The form is now delivered by email';

export type DeliveryChange = {
  form: Form;
  delivery: Delivery;
  secret: string | undefined;
  at: Date;
};

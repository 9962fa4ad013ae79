import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

/** A registered endpoint. Secrets are sealed texts (see `SecretBox` in domain). */
export const WebhookEntity = defineEntity({
  name: 'Webhook',
  tableName: 'webhooks',
  properties: {
    id: id().primary(),
    projectId: id(),
    /** Null: the events of all forms of the project. */
    formId: id().strictNullable(),
    url: text(),
    events: p.array(),
    /** Signs deliveries. */
    secret: text(),
    /** Takes the place of `secret` from `nextSecretAt` on; both null when no rotation is planned. */
    nextSecret: text().strictNullable(),
    nextSecretAt: time().strictNullable(),
    /** Still named in `webhook-signature` until `previousSecretUntil`. */
    previousSecret: text().strictNullable(),
    previousSecretUntil: time().strictNullable(),
    /** Belongs to a form made without a key: fewer attempts, limited rate. */
    keyless: p.boolean(),
    /** Made from a form's `delivery`; follows its `url` when a new version is published. */
    fromDefinition: p.boolean(),
    active: p.boolean(),
    disabledAt: time().strictNullable(),
    disabledReason: text().strictNullable(),
    /** The first failure since the last success; null while it works. */
    failingSince: time().strictNullable(),
    lastSuccessAt: time().strictNullable(),
    /** Counts until the first success, then stays. */
    failuresBeforeSuccess: p.integer().default(0),
    createdAt: time(),
    /** Gone for every reader; its history is purged in the background. */
    deletedAt: time().strictNullable(),
  },
  indexes: [
    { name: 'webhooks_by_project', properties: ['projectId', 'id'], where: 'deleted_at is null' },
    // Fan-out asks for these alone: a project can hold a webhook for each of very many forms.
    {
      name: 'webhooks_of_project',
      properties: ['projectId'],
      where: 'form_id is null and deleted_at is null',
    },
    { name: 'webhooks_by_form', properties: ['formId'], where: 'form_id is not null' },
    { name: 'webhooks_deleted', properties: ['deletedAt'], where: 'deleted_at is not null' },
  ],
  uniques: [
    {
      name: 'webhooks_definition_unique',
      properties: ['formId'],
      where: 'from_definition and deleted_at is null',
    },
  ],
});

export type Webhook = InferEntity<typeof WebhookEntity>;

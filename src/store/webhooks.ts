import { defineEntity, type InferEntity, LockMode, p } from '@mikro-orm/core';
import { id, text, time } from './database/columns.ts';
import { type Page, type PageRequest, pageOf } from './database/page.ts';
import type { Queries, Transaction } from './database/queries.ts';

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

/** Stores a webhook. */
export async function insertWebhook(db: Queries, webhook: Webhook): Promise<void> {
  await db.write((em) => em.insert(WebhookEntity, webhook));
}

/** Finds a webhook of a project; a deleted one is not found. */
export async function findWebhook(
  db: Queries,
  projectId: string,
  webhookId: string,
): Promise<Webhook | null> {
  return db.read((em) => em.findOne(WebhookEntity, { id: webhookId, projectId, deletedAt: null }));
}

/** Finds the webhook that a form's own `delivery` made. */
export async function findDefinitionWebhook(db: Queries, formId: string): Promise<Webhook | null> {
  return db.read((em) => em.findOne(WebhookEntity, { formId, fromDefinition: true, deletedAt: null }));
}

/** Lists a project's webhooks, newest first. */
export async function listWebhooks(
  db: Queries,
  projectId: string,
  page: PageRequest,
): Promise<Page<Webhook>> {
  const before = page.cursor !== undefined && { id: { $lt: page.cursor } };
  const where = { projectId, deletedAt: null, ...before };
  const rows = await db.read((em) =>
    em.find(WebhookEntity, where, { orderBy: { id: 'desc' }, limit: page.limit + 1 }),
  );
  return pageOf(rows, page.limit);
}

/** Changes a webhook of a project, and returns it as it is now; null if there is none. What is not named stays. */
export async function updateWebhook(
  db: Queries,
  projectId: string,
  webhookId: string,
  change: WebhookChange,
): Promise<Webhook | null> {
  const where = { id: webhookId, projectId, deletedAt: null };
  if (Object.keys(change).length > 0) await db.write((em) => em.nativeUpdate(WebhookEntity, where, change));
  return findWebhook(db, projectId, webhookId);
}

/**
 * Deletes a webhook for every reader, and says whether there was one. Its deliveries are not found from
 * then on; those pending are dropped and the history is removed in the background.
 */
export async function deleteWebhook(db: Queries, projectId: string, webhookId: string): Promise<boolean> {
  const rows = await db.query(
    `update webhooks set deleted_at = now(), active = false
     where id = $1 and project_id = $2 and deleted_at is null returning id`,
    [webhookId, projectId],
  );
  return rows.length > 0;
}

/**
 * Gives a webhook another sealed secret, which signs from `effectiveAt` on; the one before is named along
 * for a day after that. A rotation that was planned and has not happened is dropped.
 */
export async function rotateWebhookSecret(
  tx: Transaction,
  rotation: { projectId: string; webhookId: string; secret: string; effectiveAt: Date; now: Date },
): Promise<Webhook | null> {
  const { projectId, webhookId, secret, effectiveAt, now } = rotation;
  const webhook = await tx.read((em) =>
    em.findOne(
      WebhookEntity,
      { id: webhookId, projectId, deletedAt: null },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    ),
  );
  if (webhook === null) return null;

  const current = secretsAt(webhook, now);
  const later = effectiveAt > now;
  return updateWebhook(tx, projectId, webhookId, {
    secret: later ? current.secret : secret,
    nextSecret: later ? secret : null,
    nextSecretAt: later ? effectiveAt : null,
    previousSecret: later ? current.previousSecret : current.secret,
    previousSecretUntil: later ? current.previousSecretUntil : new Date(now.getTime() + OVERLAP_MS),
  });
}

/** The sealed secrets a webhook signs with at a time: `previousSecret` is null outside the overlap. */
export function secretsAt(webhook: SigningSecrets, now: Date): SecretsAt {
  const { secret, nextSecret, nextSecretAt, previousSecret, previousSecretUntil } = webhook;
  if (nextSecret !== null && nextSecretAt !== null && nextSecretAt <= now) {
    const until = new Date(nextSecretAt.getTime() + OVERLAP_MS);
    return until > now
      ? { secret: nextSecret, previousSecret: secret, previousSecretUntil: until }
      : { secret: nextSecret, previousSecret: null, previousSecretUntil: null };
  }
  return previousSecretUntil !== null && previousSecretUntil > now
    ? { secret, previousSecret, previousSecretUntil }
    : { secret, previousSecret: null, previousSecretUntil: null };
}

/** How long receivers may take to change over. */
const OVERLAP_MS = 24 * 60 * 60 * 1000;

export type WebhookChange = Partial<Omit<Webhook, 'id' | 'projectId' | 'createdAt' | 'deletedAt'>>;
/** The sealed secrets that a webhook has. */
export type SigningSecrets = Pick<
  Webhook,
  'secret' | 'nextSecret' | 'nextSecretAt' | 'previousSecret' | 'previousSecretUntil'
>;
export type SecretsAt = Pick<Webhook, 'secret' | 'previousSecret' | 'previousSecretUntil'>;

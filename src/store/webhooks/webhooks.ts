import { defineEntity, type InferEntity, LockMode, p, raw } from '@mikro-orm/core';
import { DAY_MS } from '../../domain/limits/limits.ts';
import {
  id,
  type JsonObject,
  json,
  sealed,
  text,
  textOrNull,
  time,
  toMillisecond,
} from '../database/columns.ts';
import {
  deleteSome,
  findPage,
  type Page,
  type PageRequest,
  type Queries,
  type Transaction,
} from '../database/queries.ts';
import { pendingWhere } from '../deliveries/queue-table.ts';
import { removeDeliveries } from '../deliveries/remove.ts';

/** A registered endpoint. Secrets are sealed texts (see `SecretBox` in domain). */
export const WebhookEntity = defineEntity({
  name: 'Webhook',
  tableName: 'webhooks',
  properties: {
    id: id().primary(),
    projectId: id(),
    /**
     * Null: the events of all forms of the project. `CALLBACKS`: one that stands for an origin that callbacks go to.
     */
    formId: id().strictNullable(),
    url: text(),
    events: p.array(),
    /** Signs deliveries. */
    secret: sealed(),
    /** Takes the place of `secret` from `nextSecretAt` on; both null when no rotation is planned. */
    nextSecret: sealed().strictNullable(),
    nextSecretAt: time().strictNullable(),
    /** Still named in `webhook-signature` until `previousSecretUntil`. */
    previousSecret: sealed().strictNullable(),
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
    /** Since the last success, or since it was turned on, or a delivery of it replayed. */
    failuresInRow: p.integer().default(0),
    /**
     * While its circuit breaker is open: when the receiver is tried again. What is due before waits. From then on in
     * the past, until it has worked and what was postponed is due.
     */
    openUntil: time().strictNullable(),
    /** Whether its deliveries carry the trace that they belong to. */
    sendsTraceparent: p.boolean().default(false),
    /** What its bodies are made by; null: events are sent as they are. */
    template: json<JsonObject>().strictNullable(),
    /** Headers of its deliveries, as `sealableHeaders` writes them. */
    headers: sealed().strictNullable(),
    /** Which submissions it receives; null: all. */
    filter: json<WebhookFilter>().strictNullable(),
    /** The Ed25519 key that signs, too. */
    signingKey: sealed().strictNullable(),
    /** Whether people were told that it fails, and not yet that it works again. */
    announcedFailing: p.boolean().default(false),
    /** The event by which they were told last. */
    announcedBy: id().strictNullable(),
    createdAt: time(),
    /**
     * Gone for every reader; its history is purged in the background. One that went with its form or project is still
     * `active` while it is told of the submissions that go with these.
     */
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
    {
      name: 'webhooks_resumable',
      properties: ['id'],
      where: 'open_until is not null and failing_since is null',
    },
    { name: 'webhooks_of_callbacks_by_use', properties: ['createdAt'], where: "form_id = 'callbacks'" },
  ],
  uniques: [
    {
      name: 'webhooks_definition_unique',
      properties: ['formId'],
      where: 'from_definition and deleted_at is null',
    },
    {
      name: 'webhooks_of_callbacks_unique',
      properties: ['projectId', 'url'],
      where: "form_id = 'callbacks'",
    },
  ],
});

export type Webhook = InferEntity<typeof WebhookEntity>;

/**
 * In place of a form: a row that stands for an origin to which a project's callbacks go, and keeps what its circuit
 * breaker knows. It is no webhook of anybody: nobody registers, reads or changes it.
 */
export const CALLBACKS = 'callbacks';

const registered = { $or: [{ formId: null }, { formId: { $ne: CALLBACKS } }] };

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
  return db.read((em) =>
    em.findOne(WebhookEntity, { id: webhookId, projectId, deletedAt: null, ...registered }),
  );
}

/** Finds a webhook of any project whose public key receivers may still ask for. */
export async function findSigningWebhook(
  db: Queries,
  id: string,
): Promise<Pick<Webhook, 'signingKey'> | null> {
  const where = { id, signingKey: { $ne: null }, $or: [{ deletedAt: null }, { active: true }] };
  return db.read((em) => em.findOne(WebhookEntity, where, { fields: ['signingKey'] }));
}

/** Finds the webhook that a form's own `delivery` made. */
export async function findDefinitionWebhook(db: Queries, formId: string): Promise<Webhook | null> {
  return db.read((em) => em.findOne(WebhookEntity, { formId, fromDefinition: true, deletedAt: null }));
}

/**
 * Counts a project's webhooks by the form that they are bound to, null for those of all forms: either those
 * of forms made without a key, as far as they are active, or all others.
 */
export async function countWebhooks(
  db: Queries,
  { projectId, keyless }: Pick<Webhook, 'projectId' | 'keyless'>,
): Promise<Map<string | null, number>> {
  const rows = await db.select(
    `select form_id, count(*)::int as count from webhooks
     where project_id = $1 and keyless = $2 and (active or not keyless) and deleted_at is null
       and form_id is distinct from '${CALLBACKS}'
     group by form_id`,
    [projectId, keyless],
  );
  return new Map(rows.map((row) => [textOrNull(row.form_id), Number(row.count)]));
}

/** Lists a project's webhooks, newest first. */
export async function listWebhooks(
  db: Queries,
  projectId: string,
  page: PageRequest,
): Promise<Page<Webhook>> {
  return findPage(db, page, (em, before, range) =>
    em.find(WebhookEntity, { projectId, deletedAt: null, ...registered, ...before }, range),
  );
}

/** The webhooks with a template that listen to a form: few, by the limit of those that may. */
export async function listTemplates(
  db: Queries,
  { projectId, id: formId }: { projectId: string; id: string },
): Promise<Pick<Webhook, 'id' | 'template'>[]> {
  const listening = { $or: [{ formId }, { formId: null }] };
  const where = { projectId, ...listening, template: { $ne: null }, deletedAt: null };
  return db.read((em) =>
    em.find(WebhookEntity, where, { fields: ['id', 'template'], orderBy: { id: 'asc' } }),
  );
}

/**
 * Changes a webhook of a project, and returns it as it is now; null if there is none. What is not named stays. A URL
 * closes the circuit breaker.
 */
export async function updateWebhook(
  db: Queries,
  projectId: string,
  webhookId: string,
  change: WebhookChange,
): Promise<Webhook | null> {
  const where = { id: webhookId, projectId, deletedAt: null };
  const closed = change.url !== undefined && { failuresInRow: 0, openUntil: raw(closedAt('open_until')) };
  if (Object.keys(change).length > 0)
    await db.write((em) => em.nativeUpdate(WebhookEntity, where, { ...change, ...closed }));
  return findWebhook(db, projectId, webhookId);
}

/**
 * SQL of what becomes of the time when a receiver is tried again if the circuit breaker closes: it is over. It is
 * cleared when what was postponed is due.
 */
export function closedAt(openUntil: string): string {
  return `case when ${openUntil} > now() then ${toMillisecond('now()')} else ${openUntil} end`;
}

/**
 * Deletes a webhook for every reader, and says whether there was one. Its deliveries are not found from
 * then on; those pending are dropped and the history is removed in the background.
 */
export async function deleteWebhook(db: Queries, projectId: string, webhookId: string): Promise<boolean> {
  const where = { id: webhookId, projectId, deletedAt: null, ...registered };
  const change = { deletedAt: raw('now()'), active: false };
  return (await db.write((em) => em.nativeUpdate(WebhookEntity, where, change))) > 0;
}

/**
 * Deletes the webhooks of a form or a project that is deleted itself. Those that registered `submission.deleted` are
 * still sent that, of what goes with it, until `purgeDeletedWebhooks` finds nothing left to be said.
 */
export async function closeWebhooks(
  tx: Transaction,
  owner: { formId: string } | { projectId: string },
): Promise<void> {
  const active = raw("active and 'submission.deleted' = any(events)");
  const change = { deletedAt: raw('now()'), active };
  await tx.write((em) => em.nativeUpdate(WebhookEntity, { ...owner, deletedAt: null }, change));
}

/**
 * Removes up to `limit` deliveries of deleted webhooks with their attempts, and webhooks that have none
 * left. Returns how many rows of a kind.
 */
export async function purgeDeletedWebhooks(db: Queries, limit: number): Promise<number> {
  await db.execute(
    `update webhooks w set active = false where deleted_at is not null and active
       and not exists (select from forms f where f.deleted_at is not null
         and (f.id = w.form_id or (w.form_id is null and f.project_id = w.project_id)))
       and not exists (${pendingWhere('webhook_id = w.id')})`,
  );
  const gone = await db.select(`select id from webhooks where ${purgeable} limit ${limit}`);
  const removed = await removeDeliveries(db, 'webhook_id = any($1)', [gone.map((row) => row.id)], limit);
  if (removed > 0) return removed;
  const webhooks = await deleteSome(db, 'webhooks', {
    where: `${purgeable}
      and not exists (select from deliveries where deliveries.webhook_id = webhooks.id)
      and not exists (${pendingWhere('webhook_id = webhooks.id')})`,
    limit,
  });
  return webhooks.length;
}

/**
 * Removes up to `limit` rows that stand for origins of callbacks, made before a time, to which no delivery goes.
 * Returns how many.
 */
export async function purgeCallbackOrigins(db: Queries, before: Date, limit: number): Promise<number> {
  const removed = await deleteSome(db, 'webhooks', {
    where: `form_id = '${CALLBACKS}' and created_at < $1
      and not exists (select from deliveries where deliveries.webhook_id = webhooks.id)
      and not exists (${pendingWhere('webhook_id = webhooks.id')})`,
    params: [before],
    limit,
  });
  return removed.length;
}

/** The condition of a webhook that nothing more is said to when its form or project goes. */
export const notClosing = '(deleted_at is null or not active)';

const purgeable = 'deleted_at is not null and not active';

/**
 * Which submissions a webhook receives: those with this source, and whose answer to a field is a value, or has it among
 * others. What is absent is not asked for. `alike` is the value in another normal form of Unicode.
 */
export type WebhookFilter = { [name in 'source' | 'fieldId' | 'alike']?: string } & {
  value?: string | number | boolean;
};

export type WebhookChange = Partial<Omit<Webhook, 'id' | 'projectId' | 'createdAt' | 'deletedAt'>>;

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
const OVERLAP_MS = DAY_MS;

/** The sealed secrets that a webhook has. */
export type SigningSecrets = Pick<
  Webhook,
  'secret' | 'nextSecret' | 'nextSecretAt' | 'previousSecret' | 'previousSecretUntil'
>;
type SecretsAt = Pick<Webhook, 'secret' | 'previousSecret' | 'previousSecretUntil'>;

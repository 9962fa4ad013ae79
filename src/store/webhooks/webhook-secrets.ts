import { LockMode } from '@mikro-orm/core';
import { DAY_MS } from '../../domain/limits/limits.ts';
import type { Transaction } from '../database/queries.ts';
import { updateWebhook, type Webhook, WebhookEntity } from './webhooks.ts';

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
export type SecretsAt = Pick<Webhook, 'secret' | 'previousSecret' | 'previousSecretUntil'>;

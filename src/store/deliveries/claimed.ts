import { nullsOf, objectOf, rowsOf, textOrNull, timeOrNull } from '../database/columns.ts';
import type { Row } from '../database/queries.ts';
import { type SigningSecrets, type Webhook, WebhookEntity } from '../webhooks/webhooks.ts';

const webhooks = rowsOf(
  WebhookEntity,
  [
    'active',
    'keyless',
    'secret',
    'nextSecret',
    'nextSecretAt',
    'previousSecret',
    'previousSecretUntil',
    'sendsTraceparent',
    'template',
    'headers',
    'signingKey',
  ],
  'w',
);

/** The columns of a webhook that a claim needs, of the table `w`. */
export const webhookColumns = `w.id as found_webhook, ${webhooks.columns}`;

/** What `claimsOf` reads, of a queued delivery `c` with the `body` and `traceparent` of its event. */
export const claimColumns = `c.id, c.project_id, c.form_id, c.event_id, c.share, c.channel, c.kind, c.receiver,
  c.url, c.mail, c.step, c.leased_until, case when c.postponed then c.queued_at end as postponed_from,
  c.body, c.traceparent, ${webhookColumns}, called.callback, called.callback_secret`;

/** The joins of `claimColumns`. */
export const claimJoins = `left join webhooks w on w.id = c.webhook_id
    and (w.deleted_at is null or (w.active and c.kind = 'submission.deleted'))
  left join lateral (
    select s.callback, s.callback_secret from sessions s
    where c.kind = 'session.ended' and s.id = (select e.session_id from events e where e.id = c.event_id)
  ) called on true`;

/** Of rows with `claimColumns`. A row without a claim is passed over. */
export function claimsOfRows(rows: Row[]): Claim[] {
  return rows.flatMap((row) => {
    if (typeof row.id !== 'string') return [];
    return {
      id: row.id,
      lease: String(row.leased_until),
      projectId: String(row.project_id),
      tenant: String(row.share),
      formId: String(row.form_id),
      kind: String(row.kind),
      receiver: String(row.receiver),
      step: Number(row.step),
      postponedFrom: timeOrNull(row.postponed_from),
      traceparent: textOrNull(row.traceparent),
      content: row.channel === 'mail' ? mailContent(row) : webhookContent(row),
    };
  });
}

function mailContent({ mail, event_id }: Row): QueuedMailContent {
  return { channel: 'mail', mail, eventId: textOrNull(event_id) };
}

function webhookContent(row: Row): WebhookContent {
  return {
    channel: 'webhook',
    url: String(row.url),
    eventId: String(row.event_id),
    body: textOrNull(row.body),
    webhook: row.kind === 'session.ended' ? claimedCallback(row) : claimedWebhook(row),
  };
}

/** The callback of a session: its secret and template are the session's. Null if that is gone. */
function claimedCallback({ receiver, callback, callback_secret: secret }: Row): ClaimedWebhook | null {
  if (callback === null) return null;
  const { template } = objectOf(callback);
  return {
    ...nullsOf(WebhookEntity),
    id: String(receiver),
    active: true,
    keyless: false,
    secret: String(secret),
    sendsTraceparent: false,
    template: template === undefined ? null : objectOf(template),
  };
}

/** The webhook in a row with `webhookColumns`; null if it was deleted. */
export function claimedWebhook(row: Row): ClaimedWebhook | null {
  if (typeof row.found_webhook !== 'string') return null;
  return { ...webhooks.map(row), id: row.found_webhook };
}

/** A delivery to make. */
export type Claim = {
  id: string;
  /** Distinguishes this claim from a later one, for `settleDeliveries`. */
  lease: string;
  projectId: string;
  /** Whose part of the capacity it uses. */
  tenant: string;
  formId: string;
  kind: string;
  receiver: string;
  /** Attempts since it was made or replayed. */
  step: number;
  /** When it was made or last replayed, if its webhook's circuit breaker has put it off since; else null. */
  postponedFrom: Date | null;
  /** The trace of the request that caused it; null if none is recorded. */
  traceparent: string | null;
  content: WebhookContent | QueuedMailContent;
};

export type QueuedMailContent = {
  channel: 'mail';
  /** What is stored of it. */
  mail: unknown;
  /** Null if it is about none. */
  eventId: string | null;
};

export type WebhookContent = {
  channel: 'webhook';
  url: string;
  eventId: string;
  /** As it is stored or sent: `sentBody` makes the one of the other. Null if the event is gone. */
  body: string | null;
  /** Null if it was deleted. Secrets are sealed. */
  webhook: ClaimedWebhook | null;
};

export type ClaimedWebhook = Pick<
  Webhook,
  'id' | 'active' | 'keyless' | 'sendsTraceparent' | 'template' | 'headers' | 'signingKey'
> &
  SigningSecrets;

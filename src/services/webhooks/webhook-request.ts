import type { WebhookEvent } from '../../../gen/forms/v1/webhooks_pb.js';
import { checkWebhookUrl } from '../../domain/addresses/public-address.ts';
import { required, type Violation } from '../../domain/errors/violations.ts';
import { registrableNames } from '../../domain/events/index.ts';
import { isId } from '../../domain/ids.ts';
import { textProblem } from '../../domain/json/well-formed.ts';
import { secretLength } from '../../domain/limits/limits.ts';
import type { Caller } from '../../rpc/context.ts';
import { notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { findWebhook, type Webhook } from '../../store/webhooks/webhooks.ts';
import type { About } from '../audit/audit.ts';
import { eventName } from './webhook-message.ts';

/** A webhook of the caller's project. Throws NOT_FOUND. */
export async function ownWebhook(db: Queries, caller: Caller, webhookId: string): Promise<Webhook> {
  const webhook = isId('wh', webhookId) ? await findWebhook(db, caller.projectId, webhookId) : null;
  if (webhook === null) throw notFound('webhook');
  return webhook;
}

/** What the audit log says that a call was about. */
export function aboutWebhook({ id, formId }: Webhook): About {
  return { resource: id, ...(formId !== null && { formId }) };
}

/** What is wrong with the URL of a webhook, at `url`. */
export function urlProblems(url: string, allowPrivate: boolean): Violation[] {
  if (url === '') return [required('url')];
  const message = textProblem(url) ?? checkWebhookUrl(url, { allowPrivate });
  return message === undefined ? [] : [{ path: 'url', code: 'invalid_string', message }];
}

/** What is wrong with the events a webhook shall receive, at `events`. */
export function eventProblems(events: WebhookEvent[]): Violation[] {
  if (events.length === 0) {
    return [{ path: 'events', code: 'too_small', message: 'Expected at least one event' }];
  }
  return events.flatMap((event, index): Violation[] => {
    const path = `events[${index}]`;
    if (eventName(event) === undefined) {
      const message = `Expected one of ${registrableNames.map((name) => `"${name}"`).join(', ')}`;
      return [{ path, code: 'invalid_enum_value', message }];
    }
    if (events.indexOf(event) === index) return [];
    return [{ path, code: 'custom', message: 'The event is named twice' }];
  });
}

/** What is wrong with a signing secret, at `secret`; an empty one is none. */
export function secretProblems(secret: string): Violation[] {
  const path = 'secret';
  if (secret === '') return [];
  const problem = textProblem(secret);
  if (problem !== undefined) return [{ path, code: 'custom', message: problem }];
  if (secret.length < secretLength.min) {
    return [{ path, code: 'too_small', message: `Expected at least ${secretLength.min} characters` }];
  }
  if (secret.length <= secretLength.max) return [];
  return [{ path, code: 'too_big', message: `Expected at most ${secretLength.max} characters` }];
}

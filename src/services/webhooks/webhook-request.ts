import {
  type WebhookFilter as FilterMessage,
  type WebhookEvent,
  WebhookEventSchema,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { checkWebhookUrl } from '../../domain/addresses/ip-address.ts';
import { invalid } from '../../domain/errors/failure.ts';
import { custom, oneOfEnum, required, type Violation } from '../../domain/errors/violations.ts';
import { textProblem } from '../../domain/json/json-problems.ts';
import { formLimits, MAX_SOURCE_LENGTH, secretLength } from '../../domain/limits/limits.ts';
import { normalForms } from '../../domain/text/typed-signs.ts';
import type { Caller } from '../../rpc/context.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { lockProject } from '../../store/projects/projects.ts';
import {
  countWebhooks,
  findWebhook,
  insertWebhook,
  type Webhook,
  type WebhookFilter,
} from '../../store/webhooks/webhooks.ts';
import type { About } from '../audit/audit.ts';
import { requireFound, textProblems } from '../request-values.ts';
import { eventName } from './webhook-proto.ts';

/** A webhook of the caller's project. Throws NOT_FOUND. */
export function projectWebhook(db: Queries, { projectId }: Caller, webhookId: string): Promise<Webhook> {
  return requireFound('wh', webhookId, () => findWebhook(db, projectId, webhookId));
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
  const { length } = WebhookEventSchema.values;
  if (events.length > length)
    return [{ path: 'events', code: 'too_big', message: `Expected at most ${length} events` }];
  return events.flatMap((event, index): Violation[] => {
    const path = `events[${index}]`;
    if (eventName(event) === undefined) {
      return [{ path, code: 'invalid_enum_value', message: oneOfEnum(WebhookEventSchema) }];
    }
    if (events.indexOf(event) === index) return [];
    return [{ path, code: 'custom', message: 'The event is named twice' }];
  });
}

/** What is wrong with a signing secret, at `secret`; an empty one is none. */
export function secretProblems(secret: string): Violation[] {
  return textProblems(secret, 'secret', secretLength);
}

/** The filter of a request without problems; null for an empty one, by which everything is received. */
export function givenFilter(message: FilterMessage | undefined): WebhookFilter | null | undefined {
  if (message === undefined) return undefined;
  const { source, fieldId } = message;
  const value = plainValue(message);
  const alike = typeof value === 'string' && normalForms(value).find((form) => form !== value);
  const filter = {
    ...(source !== '' && { source }),
    ...(fieldId !== '' && { fieldId }),
    ...(value !== undefined && { value }),
    ...(alike && { alike }),
  };
  return Object.keys(filter).length === 0 ? null : filter;
}

/** What is wrong with the filter of a request, at `filter`. */
export function filterProblems(message: FilterMessage | undefined): Violation[] {
  if (message === undefined) return [];
  const { source, fieldId } = message;
  const value = plainValue(message);
  if (
    message.value !== undefined &&
    (value === undefined || (typeof value === 'number' && !Number.isFinite(value)))
  ) {
    return [custom('filter.value', 'Expected a text, a number or a boolean')];
  }
  return [
    ...textProblems(source, 'filter.source', { max: MAX_SOURCE_LENGTH }),
    ...textProblems(fieldId, 'filter.field_id', { max: formLimits.fieldId }),
    ...(typeof value === 'string' ? textProblems(value, 'filter.value', { max: VALUE_LENGTH }) : []),
    ...(fieldId !== '' && value === undefined ? [required('filter.value')] : []),
    ...(fieldId === '' && value !== undefined ? [required('filter.field_id')] : []),
  ];
}

function plainValue({ value }: FilterMessage): WebhookFilter['value'] {
  const kind = value?.kind;
  const isPlain = kind?.case === 'stringValue' || kind?.case === 'numberValue' || kind?.case === 'boolValue';
  return isPlain ? kind.value : undefined;
}

/** Of a text that an answer is compared with, in characters. */
const VALUE_LENGTH = 1000;

/**
 * Stores a webhook, unless its project or one of its forms has as many as it may. Of any number of calls at
 * once, by any number of processes, no more are stored.
 *
 * What strangers make, the webhooks of forms made without a key, is counted apart: it never uses up what the
 * project's keys may make. Throws `INVALID_ARGUMENT` at `path`.
 */
export async function insertWithinLimits(
  tx: Transaction,
  webhook: Webhook,
  { maxWebhooks, path }: { maxWebhooks: number; path: string },
): Promise<void> {
  await lockProject(tx, webhook.projectId);
  const counts = await countWebhooks(tx, webhook);
  const message = tooMany(webhook, counts, maxWebhooks);
  if (message !== undefined) throw invalid([{ path, code: 'too_big', message }]);
  await insertWebhook(tx, webhook);
}

function tooMany(
  { formId, keyless }: Webhook,
  counts: ReadonlyMap<string | null, number>,
  maxWebhooks: number,
): string | undefined {
  const total = counts.values().reduce((sum, count) => sum + count, 0);
  if (total >= maxWebhooks) {
    return `A project has at most ${maxWebhooks} webhooks${keyless ? ' of forms made without a key' : ''}`;
  }
  const ofAllForms = counts.get(null) ?? 0;
  const bound = formId === null ? mostOfOneForm(counts) : (counts.get(formId) ?? 0);
  if (ofAllForms + bound < MAX_LISTENING) return undefined;
  return `At most ${MAX_LISTENING} webhooks listen to one form, those of all forms included`;
}

function mostOfOneForm(counts: ReadonlyMap<string | null, number>): number {
  return Math.max(0, ...counts.entries().map(([formId, count]) => (formId === null ? 0 : count)));
}

/** Each submission makes a delivery for each of them. */
const MAX_LISTENING = 10;

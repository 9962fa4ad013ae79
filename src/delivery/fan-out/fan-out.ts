import { effectsOf, isRegistrable } from '../../domain/events/index.ts';
import { demoFormId, newId, smallestIdAt } from '../../domain/ids.ts';
import { type NewDelivery, spreadEvents } from '../../store/delivery-inserts.ts';
import { listWaitingEvents, type WaitingEvent } from '../../store/events.ts';
import { listFormsById } from '../../store/forms.ts';
import { listConfirmedRecipients } from '../../store/mail.ts';
import { findVersion, type Version } from '../../store/versions.ts';
import { listListeningWebhooks, type Webhook } from '../../store/webhooks.ts';
import { createWatermark } from '../worker/watermark.ts';
import type { FanOutOptions, Surroundings } from './fan-out-context.ts';
import { mailsOf, mayBecomeMail } from './mails.ts';

/**
 * Makes what turns waiting events into deliveries, one for each receiver: the webhooks that listen, and
 * mails. Each call takes one group, and tells whether more may wait.
 *
 * Any number of processes may do so at once. Webhook bodies were fixed with the event; mails are made
 * here, from the version of the form that the event belongs to.
 */
export function createFanOut(options: FanOutOptions): () => Promise<{ spread: number; more: boolean }> {
  const { database, now, log } = options;
  const watermark = createWatermark(now);
  const versions = createVersionCache(options);

  return async () => {
    const startedAt = now();
    const since = smallestIdAt('evt', watermark.since());
    const events = await listWaitingEvents(database, { since, limit: GROUP });
    const [first] = events;
    if (first === undefined) {
      watermark.advance(startedAt);
      return { spread: 0, more: false };
    }

    const around = await surroundingsOf(options, events, versions);
    const deliveries = events.flatMap((event) => {
      try {
        return deliveriesOf(options, event, around);
      } catch (error) {
        log.error({ err: error, event: event.id }, 'An event could not be turned into mails.');
        return webhookDeliveries(options, event, around.webhooks);
      }
    });
    await spreadEvents(
      database,
      events.map((event) => event.id),
      oneAnswerEach(deliveries),
    );
    const more = events.length === GROUP;
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { spread: events.length, more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const GROUP = 200;

/** Published versions never change. */
const MAX_VERSIONS = 1000;

function createVersionCache({ database }: FanOutOptions): (id: string) => Promise<Version | null> {
  const known = new Map<string, Version>();
  return async (id) => {
    const version = known.get(id) ?? (await findVersion(database, id));
    if (version === null) return null;
    if (known.size >= MAX_VERSIONS) known.clear();
    known.set(id, version);
    return version;
  };
}

/**
 * Everything the events of a group are turned into deliveries with, read in a few queries: what only mails
 * need, just for the events that become some.
 */
async function surroundingsOf(
  { database }: FanOutOptions,
  events: WaitingEvent[],
  findVersion: (id: string) => Promise<Version | null>,
): Promise<Surroundings> {
  const formIds = [...new Set(events.map((event) => event.formId))];
  const projectIds = [...new Set(events.map((event) => event.projectId))];
  const [forms, webhooks] = await Promise.all([
    listFormsById(database, formIds),
    listListeningWebhooks(database, { formIds, projectIds }),
  ]);

  const versions = new Map<string, Version>();
  const addVersion = async (id: string) => {
    const version = versions.get(id) ?? (await findVersion(id));
    if (version !== null) versions.set(id, version);
  };
  for (const { currentVersionId } of forms) if (currentVersionId !== null) await addVersion(currentVersionId);
  const around = { forms: new Map(forms.map((form) => [form.id, form])), webhooks, versions };

  const mailing = events.filter((event) => mayBecomeMail(event, around));
  for (const answered of mailing.map(answeredVersion)) if (answered !== undefined) await addVersion(answered);
  const mailed = [...new Set(mailing.map(({ formId }) => formId))];
  return {
    ...around,
    recipients: mailed.length === 0 ? [] : await listConfirmedRecipients(database, mailed),
  };
}

function answeredVersion(event: WaitingEvent): string | undefined {
  if (effectsOf(event.type).mails !== 'submission') return undefined;
  const { data } = JSON.parse(event.body);
  return typeof data?.formVersionId === 'string' ? data.formVersionId : undefined;
}

function deliveriesOf(options: FanOutOptions, event: WaitingEvent, around: Surroundings): NewDelivery[] {
  const mails = mailsOf(options, event, around);
  return [...webhookDeliveries(options, event, around.webhooks), ...mails];
}

function webhookDeliveries(options: FanOutOptions, event: WaitingEvent, webhooks: Webhook[]): NewDelivery[] {
  const registered = effectsOf(event.type).webhooks;
  if (!isRegistrable(registered) || event.formId === demoFormId) return [];
  return webhooks
    .filter(
      ({ projectId, formId, events }) =>
        events.includes(registered) &&
        (formId === event.formId || (formId === null && projectId === event.projectId)),
    )
    .map(({ id, url }) => ({
      id: newId('dlv', options.now()),
      eventId: event.id,
      projectId: event.projectId,
      formId: event.formId,
      submissionId: event.submissionId,
      kind: event.type,
      receiver: id,
      webhook: { id, url },
      delaySeconds: options.settings.schedule[0] ?? 0,
    }));
}

/** Of several answers to one address in a group, the first. */
function oneAnswerEach(deliveries: NewDelivery[]): NewDelivery[] {
  const seen = new Set<string>();
  return deliveries.filter(({ oncePerDay, formId, receiver }) => {
    if (oncePerDay !== true) return true;
    const key = `${formId} ${receiver}`;
    return !seen.has(key) && seen.add(key);
  });
}

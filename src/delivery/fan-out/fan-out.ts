import { LRUCache } from 'lru-cache';
import { addressKey, mailboxOf } from '../../domain/addresses/email-address.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import type { MailKind } from '../../domain/delivery/mails.ts';
import { addressesOf, mailFactsIn, webhookIn } from '../../domain/events/bodies.ts';
import { effectsOf } from '../../domain/events/index.ts';
import { demoFormId, isKeyless, newId, smallestIdAt } from '../../domain/ids.ts';
import { isDataError, splitBatch } from '../../store/database/faults.ts';
import { fanOutEvents, type NewMail, parkEvent } from '../../store/deliveries/enqueue-mails.ts';
import { listWaitingEvents, type StoredEvent } from '../../store/events.ts';
import { type Form, listFormsById } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { type ConfirmedRecipient, listConfirmedRecipients } from '../../store/mail/mail-recipients.ts';
import { listOwners } from '../../store/owners/owners.ts';
import { MakingFailed, making, type QueuedMail } from '../mail/compose.ts';
import { isOwnerConfirmed, recipientsOf } from '../mail/recipients.ts';
import { autoresponseAddress } from '../mail/submission-mails.ts';
import type { DeliveryOptions } from '../options.ts';
import { createWatermark } from '../worker/watermark.ts';

/**
 * Makes what turns waiting events into emails, one for each address; their deliveries to webhooks were queued
 * with them. Each call takes one batch, and returns how many emails that were and whether more events may wait.
 *
 * Any number of processes may do so at once.
 */
export function createFanOut(options: FanOutOptions): () => Promise<{ mails: number; more: boolean }> {
  const { database, now } = options;
  const watermark = createWatermark(now);
  const readContext = createContextReader(options);

  /** Parks events whose recipients can't be told. Returns how many emails each of the others causes. */
  const makeMails = (events: StoredEvent[]) =>
    splitBatch(
      events,
      async (part) => {
        const context = await readContext(part);
        const wanted = making(() => part.flatMap((event) => mailsFor(options, event, context)));
        const mails = firstOncePerDay(wanted);
        await fanOutEvents(
          database,
          part.map(({ id }) => id),
          mails,
        );
        return [mails.length];
      },
      (event, error) => park(options, event, error),
      isLasting,
    );

  return async () => {
    const startedAt = now();
    const since = smallestIdAt('evt', watermark.since());
    const { events, more } = await listWaitingEvents(database, {
      since,
      limit: BATCH,
      maxBytes: BATCH_BYTES,
    });
    const [first] = events;
    if (first === undefined) {
      watermark.advance(startedAt);
      return { mails: 0, more };
    }
    const counts = await makeMails(events);
    watermark.advance(more ? first.createdAt.getTime() : startedAt);
    return { mails: counts.reduce((sum, count) => sum + count, 0), more };
  };
}

/** Some milliseconds of work: short enough for the embedded database, long enough to be worth a commit. */
const BATCH = 100;
/** Of bodies that are read at once; one alone may be larger. */
const BATCH_BYTES = 1024 * 1024;

/** Of the event itself, not of a database or a network that fails at the moment. */
function isLasting(error: unknown): boolean {
  return error instanceof MakingFailed || isDataError(error);
}

async function park(
  { database, log, now }: FanOutOptions,
  { id: eventId, type }: StoredEvent,
  error: unknown,
): Promise<number[]> {
  log.error(
    { err: error, event: eventId },
    'Could not make the emails of an event; its form has a failed delivery instead.',
  );
  const { mails } = effectsOf(type);
  const kind = mails === 'submission' ? 'owner' : mails;
  await parkEvent(database, { id: newId('dlv', now()), eventId, kind });
  return [];
}

/** Leaves out all but the first of the emails that a form may send to a mailbox only once a day. */
function firstOncePerDay(mails: NewMail[]): NewMail[] {
  const seen = new Set<string>();
  return mails.filter(({ oncePerDay: mailbox, formId }) => {
    if (mailbox === undefined) return true;
    const key = `${formId} ${mailbox}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** The emails that an event causes: to whom which kind goes. They are written when they are sent. */
function mailsFor(options: FanOutOptions, event: StoredEvent, context: FanOutContext): NewMail[] {
  const form = context.forms.get(event.formId);
  const wanted =
    aboutWebhook(options, event, context) ?? (form ? wantedBy(options, event, form, context) : []);
  return wanted.map(({ kind, to, formId = event.formId, isOnceADay = false, ...facts }) => ({
    id: newId('dlv', options.now()),
    eventId: event.id,
    projectId: event.projectId,
    formId,
    keyless: isKeyless(form),
    kind,
    receiver: addressKey(to),
    mail: { to, eventId: null, ...facts } satisfies QueuedMail,
    delaySeconds: options.settings.schedule[0] ?? 0,
    // Counted by the mailbox: an address can be written in many ways.
    ...(isOnceADay && { oncePerDay: mailboxOf(to) }),
  }));
}

/** To the operator, for whom no form is named, and to whom a webhook that is turned off is reported. */
function aboutWebhook(
  { settings: { operatorEmail } }: FanOutOptions,
  { id, type, body }: StoredEvent,
  { webhookOwners }: FanOutContext,
): WantedMail[] | undefined {
  const { mails: kind } = effectsOf(type);
  if (!isAboutWebhook(kind)) return undefined;
  const { webhookId, url } = webhookIn(body);
  const webhook = { id: webhookId, host: new URL(url).host };
  const owners = webhookOwners.get(id) ?? [];
  const operator = operatorEmail === undefined ? [] : [{ formId: '', address: operatorEmail }];
  const others = owners.filter(({ address }) => addressKey(address) !== addressKey(operatorEmail ?? ''));
  return [...operator, ...others].map(({ formId, address: to }) => ({ kind, to, formId, webhook }));
}

function isAboutWebhook(mails: string): mails is 'webhook_failing' | 'webhook_working' {
  return mails === 'webhook_failing' || mails === 'webhook_working';
}

function wantedBy(
  { settings }: FanOutOptions,
  event: StoredEvent,
  form: Form,
  context: FanOutContext,
): WantedMail[] {
  const { mails } = effectsOf(event.type);
  const askEach = (kind: MailKind, addresses: string[]) =>
    addresses.map((to) => ({ kind, to, countedAs: event.id, ...mailFactsIn(event.body) }));
  switch (mails) {
    case 'submission':
      return wantedBySubmission(settings, event, form, context);
    case 'confirmation':
      return askEach(mails, form.ownerEmail === null ? [] : [form.ownerEmail]);
    case 'owner_change':
      return askEach(mails, addressesOf(event.body));
    case 'owner_changed':
      return addressesOf(event.body).map((to) => ({ kind: mails, to }));
    case 'recipient_confirmation': {
      const own = context.recipients.filter(({ formId }) => formId === form.id);
      const confirmed = new Set(own.map(({ address }) => address));
      const open = addressesOf(event.body).filter((address) => !confirmed.has(addressKey(address)));
      return askEach(mails, open);
    }
    case 'webhook_failing':
    case 'webhook_working':
    case 'none':
      return [];
    default:
      return mails satisfies never;
  }
}

function wantedBySubmission(
  settings: FanOutOptions['settings'],
  { body }: StoredEvent,
  form: Form,
  context: FanOutContext,
): WantedMail[] {
  const delivery = currentDelivery(form, context);
  if (delivery?.type !== 'email') return [];
  // Until the owner of a form made without a key confirms, answers wait, and a notice says so.
  if (isKeyless(form) && !isOwnerConfirmed(form, settings)) {
    const to = form.ownerEmail;
    return to === null
      ? []
      : [
          { kind: 'owner', to },
          { kind: 'notice', to, isOnceADay: true },
        ];
  }
  const owners: WantedMail[] =
    form.id === demoFormId
      ? [{ kind: 'demo', to: settings.operatorEmail ?? settings.mailFrom }]
      : recipientsOf(form, delivery, context.recipients).map((to) => ({ kind: 'owner', to }));
  const answerer = autoresponseAddress(delivery, body);
  return answerer === undefined
    ? owners
    : [...owners, { kind: 'autoresponse', to: answerer, isOnceADay: true }];
}

/**
 * Makes what reads, in a few queries, everything that it takes to decide on the emails of a batch of events, just for
 * the events that cause some.
 */
function createContextReader({ database }: FanOutOptions): (events: StoredEvent[]) => Promise<FanOutContext> {
  /** Published versions never change, so that only their number is bounded. */
  const known = new LRUCache<string, FormDefinition>({
    max: MAX_VERSIONS,
    fetchMethod: async (versionId) => (await findVersion(database, versionId))?.definition,
  });

  return async (events) => {
    const forms = await listFormsById(database, [...new Set(events.map(({ formId }) => formId))]);
    const definitions = new Map<string, FormDefinition>();
    for (const { id, currentVersionId } of forms) {
      const definition = currentVersionId === null ? undefined : await known.fetch(currentVersionId);
      if (definition !== undefined) definitions.set(id, definition);
    }
    const context = { forms: new Map(forms.map((form) => [form.id, form])), definitions };
    const mailed = new Set(
      events.filter((event) => mayCauseMail(event, context)).map(({ formId }) => formId),
    );
    const webhookOwners = new Map<string, { formId: string; address: string }[]>();
    for (const { id, type, projectId, formId } of events) {
      if (!isAboutWebhook(effectsOf(type).mails)) continue;
      webhookOwners.set(id, await listOwners(database, { projectId, formId: formId === '' ? null : formId }));
    }
    return {
      ...context,
      webhookOwners,
      recipients: mailed.size === 0 ? [] : await listConfirmedRecipients(database, [...mailed]),
    };
  };
}

const MAX_VERSIONS = 1000;

/** Most events cause none: where answers go to webhooks, nothing is read for emails. */
function mayCauseMail({ type, formId }: StoredEvent, context: Pick<FanOutContext, 'definitions'>): boolean {
  const { mails } = effectsOf(type);
  if (mails !== 'submission') return mails !== 'none';
  return currentDelivery({ id: formId }, context)?.type === 'email';
}

/** Where the answers to a form go now, whichever version was answered. */
function currentDelivery({ id }: Pick<Form, 'id'>, { definitions }: Pick<FanOutContext, 'definitions'>) {
  return definitions.get(id)?.delivery;
}

type WantedMail = { kind: MailKind; to: string; formId?: string; isOnceADay?: boolean } & Pick<
  QueuedMail,
  'countedAs' | 'webhook' | 'browserHash' | 'by'
>;

/** What fan-out needs. */
type FanOutOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'now' | 'log'>;

/** What the emails of a batch of events depend on. */
type FanOutContext = {
  /** By id. */
  forms: Map<string, Form>;
  /** The current ones, by form. */
  definitions: Map<string, FormDefinition>;
  /** The further addresses that have confirmed. */
  recipients: ConfirmedRecipient[];
  /** Of the webhooks that events are about, by event. */
  webhookOwners: Map<string, { formId: string; address: string }[]>;
};

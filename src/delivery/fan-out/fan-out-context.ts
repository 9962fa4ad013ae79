import type { FormDefinition } from '../../domain/definition/definition.ts';
import { effectsOf } from '../../domain/events/index.ts';
import type { StoredEvent } from '../../store/events.ts';
import { type Form, listFormsById } from '../../store/forms/forms.ts';
import { findVersion, type Version } from '../../store/forms/versions.ts';
import { type ConfirmedRecipient, listConfirmedRecipients } from '../../store/mail/mail.ts';
import { numbersOfDay } from '../../store/submissions/submission-numbers.ts';
import { answeredVersion } from '../mail/submission-mails.ts';
import type { DeliveryOptions } from '../options.ts';

/**
 * Makes what reads, in a few queries, everything that the mails of a batch of events need, just for the events
 * that cause some.
 */
export function createContextReader({
  database,
}: FanOutOptions): (events: StoredEvent[]) => Promise<FanOutContext> {
  const readVersion = createVersionCache((id) => findVersion(database, id));

  return async (events) => {
    const formIds = [...new Set(events.map((event) => event.formId))];
    const forms = await listFormsById(database, formIds);

    const versions = new Map<string, Version>();
    const addVersion = async (id: string | null | undefined) => {
      if (id === null || id === undefined) return;
      const version = versions.get(id) ?? (await readVersion(id));
      if (version !== null) versions.set(id, version);
    };
    for (const { currentVersionId } of forms) await addVersion(currentVersionId);
    const context = { forms: new Map(forms.map((form) => [form.id, form])), versions };

    const mailing = events.filter((event) => mayCauseMail(event, context));
    const answered = mailing.filter(({ type }) => effectsOf(type).mails === 'submission');
    const submissions: SubmissionFacts[] = [];
    for (const event of answered) {
      const { versionId, data } = answeredVersion(event.body);
      await addVersion(versionId);
      const { submissionId: id, createdAt } = data;
      submissions.push({ formId: event.formId, id, createdAt: new Date(createdAt) });
    }
    const mailedForms = [...new Set(mailing.map(({ formId }) => formId))];
    const recipients = mailedForms.length === 0 ? [] : await listConfirmedRecipients(database, mailedForms);
    return { ...context, recipients, numbers: await numbersOfDay(database, submissions) };
  };
}

/** The definition that says where the answers to a form go now, whichever version was answered. */
export function currentDefinition(
  formId: string,
  { forms, versions }: KnownForms,
): FormDefinition | undefined {
  return versions.get(forms.get(formId)?.currentVersionId ?? '')?.definition;
}

function createVersionCache(
  find: (id: string) => Promise<Version | null>,
): (id: string) => Promise<Version | null> {
  const known = new Map<string, Version>();
  return async (id) => {
    const version = known.get(id) ?? (await find(id));
    if (version === null) return null;
    if (known.size >= MAX_VERSIONS) known.clear();
    known.set(id, version);
    return version;
  };
}

/** Published versions never change, so that only their number is bounded. */
const MAX_VERSIONS = 1000;

/** Most events cause none: where answers go to webhooks, nothing is read for mails. */
function mayCauseMail({ type, formId }: StoredEvent, context: KnownForms): boolean {
  const { mails } = effectsOf(type);
  return mails === 'submission'
    ? currentDefinition(formId, context)?.delivery.type === 'email'
    : mails !== 'none';
}

/** What fan-out needs. */
export type FanOutOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'secretKey' | 'now' | 'log'>;

/** What the mails of a batch of events need. */
export type FanOutContext = {
  /** By id, as are the versions: those that were answered and the current ones. */
  forms: Map<string, Form>;
  versions: Map<string, Version>;
  /** The further addresses that have confirmed. */
  recipients: ConfirmedRecipient[];
  /** The number of each submission on its day, by its id. */
  numbers: Map<string, number>;
};

type SubmissionFacts = { formId: string; id: string; createdAt: Date };

type KnownForms = Pick<FanOutContext, 'forms' | 'versions'>;

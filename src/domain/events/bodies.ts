import { z } from 'zod';
import { provenanceJson, type StoredOrigin } from '../answers/provenance.ts';
import type { JsonObject } from '../json/json.ts';
import type { VerifiedRespondent } from '../sessions/respondent.ts';

/**
 * Returns the function that writes what is stored of a webhook body about a submission; `sentBody` makes the body of
 * it. It is fixed when the event is written. The JSON of the answers goes between `start` and `end`: it is the largest
 * part, and the statement that stores it with the submission puts it into the body as well, so that it is serialized
 * once.
 */
export function submissionBody(name: string, status: 'accepted' | 'complete') {
  return (event: EventIdentity, submission: SubmissionFacts): AroundAnswers => {
    const { id, createdAt, provenance, ...facts } = submission;
    const data = { submissionId: id, ...facts, status, createdAt };
    const end = '}}';
    const start = `${webhookBody(name, event, data).slice(0, -end.length)},"answers":`;
    return { start, end: `${PROVENANCE}${JSON.stringify(provenance)}${end}` };
  };
}

/**
 * The body that webhooks get, of what is stored of it: the same characters each time. Where the answers come from is
 * stored once for all that came together, and sent for each field. Bodies of other events, and of before it was so,
 * are sent as they are stored.
 */
export function sentBody(stored: string): string {
  if (!stored.includes(`${PROVENANCE}[`)) return stored;
  const { data } = JSON.parse(stored);
  if (!Array.isArray(data.provenance)) return stored;
  const json = provenanceJson(data.provenance, data.answers, data.createdAt);
  // Answers, which stand before it, may hold the same characters; nothing behind it does.
  return `${stored.slice(0, stored.lastIndexOf(PROVENANCE))}${PROVENANCE}${json}}}`;
}

/** What `sentBody` makes of the body of a submission, where the submission itself is at hand. */
export function sentWithAnswers(body: AroundAnswers, submission: Accepted): string {
  const { answers, provenance, createdAt } = submission;
  const start = `${body.start}${JSON.stringify(answers)}`;
  if (provenance === null) return start + body.end;
  return `${start}${PROVENANCE}${provenanceJson(provenance, answers, createdAt.toISOString())}}}`;
}

const PROVENANCE = ',"provenance":';

/** Returns the function that writes the body of a webhook about a session that ended without a submission. */
export function sessionBody(name: string) {
  return (event: EventIdentity, session: SessionFacts): string => {
    const { id, formId, expiresAt, metadata, partialAnswers, provenance } = session;
    const { outcome, reason, contextChecksum } = session;
    return webhookBody(name, event, {
      sessionId: id,
      formId,
      outcome,
      ...(reason !== undefined && { reason }),
      expiresAt: expiresAt.toISOString(),
      metadata,
      ...(contextChecksum !== undefined && { contextChecksum }),
      ...(partialAnswers !== undefined && { partialAnswers, provenance }),
    });
  };
}

/**
 * Returns the function that writes the beginning of a callback's body: what the person said may follow, in `answers` or
 * `reason`, and then `END_OF_BODY`.
 */
export function endBody(name: string) {
  return (event: EventIdentity, end: SessionEnd): string =>
    webhookBody(name, event, end).slice(0, -END_OF_BODY.length);
}

/** Ends what `endBody` has begun. */
export const END_OF_BODY = '}}';

/** Returns the function that writes the body of a webhook about a submission that is gone, or counts no longer. */
export function idsBody(name: string) {
  return (event: EventIdentity, { id, formId, sessionId, replacedBy }: GoneSubmission): string =>
    webhookBody(name, event, { submissionId: id, formId, sessionId, replacedBy });
}

/** Returns the function that writes the body of a webhook that says its facts as they are. */
export function factsBody<Facts extends object>(name: string) {
  return (event: EventIdentity, facts: Facts): string => webhookBody(name, event, facts);
}

/** The body of an event that becomes an email to one address. `browserHash` is of the browser that asked for it. */
export function addressBody(facts: { address: string; next?: string } & MailFacts): string {
  return JSON.stringify(facts);
}

/** The body of an event that becomes emails to several addresses. */
export function addressesBody(facts: { addresses: string[] }): string {
  return JSON.stringify(facts);
}

/** The addresses in the body of an event that becomes emails. Throws if it is the body of another event. */
export function addressesOf(body: string): string[] {
  return addresses.parse(JSON.parse(body));
}

/** The webhook that an event without a body for receivers is about. Throws if it is the body of another event. */
export function webhookIn(body: string): { webhookId: string; url: string } {
  return aboutWebhook.parse(JSON.parse(body));
}

/** What is known beside the address of an event that becomes emails. Throws if it is the body of another event. */
export function mailFactsIn(body: string): MailFacts {
  return mailFacts.parse(JSON.parse(body));
}

function webhookBody(name: string, { id, at }: EventIdentity, data: object): string {
  return JSON.stringify({ id, event: name, createdAt: at, data });
}

const mailFacts = z.object({
  /** The digest of the browser that asked for the email. */
  browserHash: z.string().exactOptional(),
  /** The address of the owner who asks another to take a form over. */
  by: z.string().exactOptional(),
});

type MailFacts = z.infer<typeof mailFacts>;

const addresses = z.union([
  // `next` has taken a form over from `address`.
  z
    .object({ address: z.string(), next: z.string().exactOptional() })
    .transform(({ address, next }) => [address, ...(next === undefined ? [] : [next])]),
  z.object({ addresses: z.array(z.string()) }).transform((body) => body.addresses),
]);

const aboutWebhook = z.object({ webhookId: z.string(), url: z.string() });

/** The event's `evt_` id and the instant it is written at, in ISO 8601. */
export type EventIdentity = { id: string; at: string };

/** The JSON of a body before and after that of the answers. */
export type AroundAnswers = { start: string; end: string };

/** What is said of a submission beside its answers. */
export type SubmissionFacts = {
  id: string;
  formId: string;
  formVersionId: string;
  /** Of a translated form, the language in which it was filled in, as a BCP 47 tag. */
  language?: string | undefined;
  /** Who made the form: `public`, or a key's id. */
  formCreatedBy: string;
  sessionId: string | null;
  /** Of a session, that it ended by this, and the SHA-256 of what its person was shown, in hex. */
  outcome?: string;
  contextChecksum?: string;
  /** Who answered with a code emailed to their address. */
  respondent?: VerifiedRespondent;
  source: string;
  metadata: JsonObject;
  /** The submission that it corrects. */
  replaces?: string | undefined;
  /** ISO 8601. */
  createdAt: string;
  provenance: readonly StoredOrigin[];
};

/** Of a stored submission, what its body holds beside what was known before. */
type Accepted = { answers: JsonObject; provenance: readonly StoredOrigin[] | null; createdAt: Date };

/** All that is left of a submission, or is said of one that was corrected. */
export type GoneSubmission = { id: string; formId: string; sessionId: string | null; replacedBy?: string };

/** How a session ended, as its callback reports it. */
export type SessionEnd = {
  sessionId: string;
  formId: string;
  outcome: 'submitted' | 'declined' | 'expired' | 'cancelled';
  metadata: JsonObject;
  submissionId?: string;
};

/**
 * The session that somebody is notified about; all words of the asker as they are, which are defused when they are
 * sent.
 */
export type NotifiedFacts = {
  sessionId: string;
  formId: string;
  /** The session's page. */
  url: string;
  /** The name of the project whose key asks. */
  project: string;
  /** The name of the form. */
  question: string;
  message?: string;
  /** Of the context. */
  title?: string;
  /** 0 for the first notification, and then the number of the reminder. */
  reminder: number;
  /** ISO 8601. */
  expiresAt: string;
  metadata: JsonObject;
};

export type SessionFacts = {
  id: string;
  formId: string;
  /** How it ended. */
  outcome: string;
  /** Why the person declined. */
  reason?: string | undefined;
  /** SHA-256 of what the person was shown above the questions, in hex. */
  contextChecksum?: string | undefined;
  expiresAt: Date;
  metadata: JsonObject;
  /** Only of forms with `allowPartial`. */
  partialAnswers?: JsonObject | undefined;
  /** Where the partial answers come from, by field id, as far as it is known. */
  provenance?: object | undefined;
};

/** What a test webhook says: its answers are made up. `formId` is null if the project has no form yet. */
export type TestFacts = { webhookId: string; formId: string; answers: JsonObject };

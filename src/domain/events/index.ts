import * as pb from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { currentAnswersOf, type SessionOrigins } from '../answers/provenance.ts';
import { enumValue, type NameIn } from '../enums.ts';
import { newId } from '../ids.ts';
import type { JsonObject } from '../json/json.ts';
import { fingerprint } from '../json/json-text.ts';
import {
  addressBody,
  addressesBody,
  endBody,
  factsBody,
  idsBody,
  type NotifiedFacts,
  type SessionFacts,
  sessionBody,
  submissionBody,
  type TestFacts,
} from './bodies.ts';

/** The type of events that messages never name: they become email alone. */
const NOT_EMITTED = pb.EventType.UNSPECIFIED;

/** What each type of event leads to, by the name that is stored with it and that deliveries carry. */
export const eventTypes = {
  /** A submission came by API. */
  'submission.created': {
    webhooks: 'submission.created',
    mails: 'submission',
    body: submissionBody('submission.created', 'accepted'),
  },
  /** A human completed a submission on the hosted page. */
  'submission.completed': {
    webhooks: 'submission.created',
    mails: 'submission',
    body: submissionBody('submission.completed', 'complete'),
  },
  /** A submission came that was taken for automatic: only those who watch for such ones are told. */
  'submission.spam': { webhooks: 'none', mails: 'none', body: null },
  /** The time of a session that nobody submitted is over. */
  'session.expired': { webhooks: 'session.expired', mails: 'none', body: sessionBody('session.expired') },
  /** A session was ended by its maker. */
  'session.cancelled': {
    webhooks: 'session.cancelled',
    mails: 'none',
    body: sessionBody('session.cancelled'),
  },
  /** A session with a callback ended, however. */
  'session.ended': { webhooks: 'callback', mails: 'none', body: endBody('session.ended') },
  /** Somebody is to be notified of a session, or reminded of it. Its email is queued with it. */
  'session.notified': {
    webhooks: 'named',
    mails: 'none',
    body: factsBody<NotifiedFacts>('session.notified'),
  },
  /** A user wants to see whether a webhook arrives. */
  'webhook.test': { webhooks: 'tested', mails: 'none', body: factsBody<TestFacts>('webhook.test') },
  /** A submission was deleted, with all that holds its answers: the body has ids alone. */
  'submission.deleted': {
    webhooks: 'submission.deleted',
    mails: 'none',
    body: idsBody('submission.deleted'),
  },
  /** A person has corrected a submission: the body has ids alone. */
  'submission.replaced': {
    webhooks: 'submission.replaced',
    mails: 'none',
    body: idsBody('submission.replaced'),
  },
  /** A person does not want to answer. */
  'session.declined': { webhooks: 'session.declined', mails: 'none', body: sessionBody('session.declined') },
  /** A form was published by an address, which is now asked to confirm that it owns it. */
  'form.activated': { webhooks: 'none', mails: 'confirmation', body: addressBody },
  /** An address is asked whether it takes a form over. */
  'owner.change_requested': { webhooks: 'none', mails: 'owner_change', body: addressBody },
  /** Another address has taken a form over from this one. */
  'owner.changed': { webhooks: 'none', mails: 'owner_changed', body: addressBody },
  /** Addresses are asked whether they want a form's submissions. */
  'recipients.added': { webhooks: 'none', mails: 'recipient_confirmation', body: addressesBody },
  /** A webhook has begun to fail. Both are written where results of deliveries are stored. */
  'webhook.failing': { webhooks: 'none', mails: 'webhook_failing', body: null },
  /** It works again. */
  'webhook.working': { webhooks: 'none', mails: 'webhook_working', body: null },
} as const satisfies Record<string, EventEffects & { body: unknown }>;

/** The events that a webhook can register for, as messages name them. */
export const registrableEvents = {
  'submission.created': pb.WebhookEvent.SUBMISSION_CREATED,
  'session.expired': pb.WebhookEvent.SESSION_EXPIRED,
  'session.cancelled': pb.WebhookEvent.SESSION_CANCELLED,
  'submission.deleted': pb.WebhookEvent.SUBMISSION_DELETED,
  'session.declined': pb.WebhookEvent.SESSION_DECLINED,
  'session.notified': pb.WebhookEvent.SESSION_NOTIFIED,
  'submission.replaced': pb.WebhookEvent.SUBMISSION_REPLACED,
} as const;

/** Their names. */
export const registrableNames = Object.keys(registrableEvents).filter(isRegistrable);

/** The events that leave the service as webhooks, and so are shown to anyone who listens. */
export const emittedEvents: readonly string[] = Object.entries(eventTypes)
  .filter(
    ([name, { webhooks }]) =>
      eventTypeOf(name) !== NOT_EMITTED && webhooks !== 'callback' && webhooks !== 'named',
  )
  .map(([name]) => name);

/** The events that somebody in the service may wait for. */
export const followedEvents: readonly string[] = [...emittedEvents, 'submission.spam'];

/** What an event leads to whose name comes from the database; nothing if this version does not know it. */
export function effectsOf(name: string): EventEffects {
  return isEventType(name) ? eventTypes[name] : { webhooks: 'none', mails: 'none' };
}

/** The type by which messages name an event; unspecified if it stays within the service. */
export function eventTypeOf(name: string): pb.EventType {
  const named = isEventType(name) ? name.replace('.', '_') : undefined;
  return enumValue(pb.EventType, named as NameIn<typeof pb.EventType> | undefined);
}

/** The name of an event that a message has; empty for none, or one of a newer service. */
export function eventNameOf(type: pb.EventType): string {
  if (type === NOT_EMITTED) return '';
  return Object.keys(eventTypes).find((name) => eventTypeOf(name) === type) ?? '';
}

/** Whether a webhook can register for an event of this name. */
export function isRegistrable(name: string): name is RegistrableEvent {
  return Object.hasOwn(registrableEvents, name);
}

function isEventType(name: string): name is EventType {
  return Object.hasOwn(eventTypes, name);
}

export type EventType = keyof typeof eventTypes;

export type RegistrableEvent = keyof typeof registrableEvents;

export type EventEffects = {
  /**
   * Which webhooks receive it: those that registered for the event named here; the one that is tested; none, but the
   * callback of its session, or the webhook that its session names; none.
   */
  webhooks: RegistrableEvent | 'tested' | 'callback' | 'named' | 'none';
  /** What is emailed: the answers, as the form's delivery says; a request to confirm something; how a webhook does. */
  mails:
    | 'submission'
    | 'confirmation'
    | 'owner_change'
    | 'owner_changed'
    | 'recipient_confirmation'
    | 'webhook_failing'
    | 'webhook_working'
    | 'none';
};

/**
 * The event that tells of a session's end without a submission, to be stored in the same commit. `at` is in
 * milliseconds.
 */
export function sessionEvent(
  type: 'session.expired' | 'session.cancelled' | 'session.declined',
  session: EndedSession,
  at: number,
) {
  const createdAt = new Date(at);
  const id = newId('evt', at);
  const { projectId, formId, partialAnswers } = session;
  const origins = currentAnswersOf({ ...session, prefill: {} }).provenance;
  const facts = {
    ...session,
    outcome: type.slice('session.'.length),
    reason: session.declineReason ?? undefined,
    contextChecksum: session.context === null ? undefined : fingerprint(session.context),
    partialAnswers: partialAnswers ?? undefined,
    provenance: Object.fromEntries(origins),
  };
  const body = eventTypes[type].body({ id, at: createdAt.toISOString() }, facts);
  return { id, projectId, formId, sessionId: session.id, type, body, createdAt };
}

type EndedSession = Omit<
  SessionFacts,
  'partialAnswers' | 'provenance' | 'outcome' | 'reason' | 'contextChecksum'
> & {
  context: object | null;
  declineReason: string | null;
  projectId: string;
  partialAnswers: JsonObject | null;
  provenance: SessionOrigins | null;
  createdAt: Date;
};

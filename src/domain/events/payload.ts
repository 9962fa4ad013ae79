import type { JsonObject } from '../json.ts';

/**
 * The body of a webhook that announces a submission, fixed when the event is written: the JSON of the
 * answers goes between `start` and `end`. They are the most of it and are stored with the submission by the
 * same statement, so they are written out once.
 *
 * One that came by API is `submission.created` and `accepted`; one that a human completed on the
 * hosted page is `submission.completed` and `complete`.
 */
export function submissionPayload(event: EventHead, submission: SubmissionFacts): AroundAnswers {
  const { id, byHuman, createdAt, ...facts } = submission;
  const whole = payload(
    { ...event, event: byHuman ? 'submission.completed' : 'submission.created' },
    {
      submissionId: id,
      ...facts,
      status: byHuman ? 'complete' : 'accepted',
      createdAt: createdAt.toISOString(),
    },
  );
  const end = '}}';
  return { start: `${whole.slice(0, -end.length)},"answers":`, end };
}

/** The body of a webhook that announces the end of a session nobody submitted. */
export function sessionExpiredPayload(event: EventHead, session: SessionFacts): string {
  return payload(
    { ...event, event: 'session.expired' },
    {
      sessionId: session.id,
      formId: session.formId,
      expiresAt: session.expiresAt.toISOString(),
      metadata: session.metadata,
      ...(session.partialAnswers !== undefined && { partialAnswers: session.partialAnswers }),
    },
  );
}

/** The body of the webhook that a user sends themselves to see whether it arrives; the answers are made up. */
export function testPayload(event: EventHead, test: TestFacts): string {
  return payload({ ...event, event: 'webhook.test' }, test);
}

function payload(head: EventHead & { event: EventName }, data: object): string {
  return JSON.stringify({ id: head.id, event: head.event, createdAt: head.at.toISOString(), data });
}

/** The events a webhook can register for. `submission.created` brings `submission.completed` along. */
export const registrableEvents = ['submission.created', 'session.expired'] as const;

/** The names that deliveries carry. */
type EventName = (typeof registrableEvents)[number] | 'submission.completed' | 'webhook.test';

/** The event's `evt_` id and the instant it is written at. */
export type EventHead = { id: string; at: Date };

/** The JSON of a body before and after that of the answers. */
export type AroundAnswers = { start: string; end: string };

/** What is told of a submission beside its answers. */
export type SubmissionFacts = {
  id: string;
  formId: string;
  formVersionId: string;
  /** Who made the form: `public`, or a key's id. */
  formCreatedBy: string;
  sessionId: string | null;
  source: string;
  metadata: JsonObject;
  createdAt: Date;
  /** Whether a human completed it on the hosted page. */
  byHuman: boolean;
};

export type SessionFacts = {
  id: string;
  formId: string;
  expiresAt: Date;
  metadata: JsonObject;
  /** Only of forms with `allowPartial`. */
  partialAnswers?: JsonObject | undefined;
};

/** `formId` is null if the project has no form yet. */
export type TestFacts = { webhookId: string; formId: string | null; answers: JsonObject };

import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { SessionOutcome, SessionSchema, SessionStatus } from '../../../gen/headlessforms/v1/sessions_pb.js';
import {
  type AnswerOrigin,
  SubmissionSchema,
  SubmissionStatus,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import {
  AttemptSchema,
  DeliverySchema,
  type EventSchema,
  EventType,
  MailKind,
  SecretFormat,
  type WebhookEvent,
  WebhookFilterSchema,
  WebhookSchema,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import type { Origin } from '../../domain/answers/provenance.ts';
import type { MailKind as MailKindName } from '../../domain/delivery/mails.ts';
import { publicKeyOf, secretFormatOf } from '../../domain/delivery/signature.ts';
import { headersIn } from '../../domain/delivery/webhook-headers.ts';
import { enumValue } from '../../domain/enums.ts';
import type { SubmissionFacts, TestFacts } from '../../domain/events/bodies.ts';
import {
  eventTypeOf,
  isRegistrable,
  type RegistrableEvent,
  registrableEvents,
  registrableNames,
} from '../../domain/events/index.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { messageFrom, rowToMessage } from '../../domain/messages.ts';
import type { LoggedDelivery } from '../../store/deliveries/log.ts';
import { secretsAt, type Webhook } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import { provenanceToMessage, respondentToMessage } from '../submissions/submission-proto.ts';

/** A webhook as callers see it, without its secrets, which `secrets` opens. `now` is in milliseconds. */
export function webhookToMessage(
  webhook: Webhook,
  { secrets, now }: Pick<ServiceContext, 'secrets' | 'now'>,
): MessageInitShape<typeof WebhookSchema> {
  const { headers, filter, signingKey } = webhook;
  const { source, fieldId: field_id, value } = filter ?? {};
  const { secret } = secretsAt(webhook, new Date(now()));
  // What no key opens any more shows nothing: a webhook can be read, rotated and deleted all the same.
  const opened = <T>(sealed: string | null, read: (text: string) => T) => {
    const text = sealed === null ? undefined : secrets.openIfKnown(sealed);
    return text === undefined ? undefined : read(text);
  };
  return rowToMessage(WebhookSchema, webhook, {
    events: webhook.events.filter(isRegistrable).map((name) => registrableEvents[name]),
    traceparent: webhook.sendsTraceparent,
    secretFormat: enumValue(SecretFormat, opened(secret, secretFormatOf)),
    headerNames: opened(headers, (text) => Object.keys(headersIn(text).headers)) ?? [],
    ...(filter !== null && { filter: messageFrom(WebhookFilterSchema, { source, field_id, value }) }),
    publicKey: opened(signingKey, publicKeyOf) ?? '',
  });
}

/** A delivery with its attempts as callers see it. */
export function deliveryToMessage({
  delivery,
  attempts,
}: LoggedDelivery): MessageInitShape<typeof DeliverySchema> {
  const { channel, webhookId, receiver, kind, status, dueAt } = delivery;
  return rowToMessage(DeliverySchema, delivery, {
    webhookId: kind === 'session.ended' ? '' : (webhookId ?? ''),
    address: channel === 'mail' ? receiver : '',
    eventType: channel === 'webhook' ? eventTypeOf(kind) : EventType.UNSPECIFIED,
    mailKind: enumValue(MailKind, channel === 'mail' ? (kind as MailKindName) : undefined),
    ...(status === 'pending' && dueAt !== null && { nextAttemptTime: timestampFromDate(dueAt) }),
    attempts: attempts.map((attempt) =>
      rowToMessage(AttemptSchema, attempt, { duration: durationFromMs(attempt.durationMs) }),
    ),
  });
}

/** The stored name of an event that a webhook can receive; undefined if there is no such event. */
export function eventName(event: WebhookEvent): RegistrableEvent | undefined {
  return registrableNames.find((name) => registrableEvents[name] === event);
}

/**
 * The data in the body of an event's deliveries as a message. `body` is what `sentBody` returns; of a type that
 * messages never name there is none.
 */
export function eventPayload(type: EventType, body: string): Payload {
  switch (type) {
    case EventType.SUBMISSION_CREATED:
      return { case: 'submissionCreated', value: submissionFrom(body) };
    case EventType.SUBMISSION_COMPLETED:
      return { case: 'submissionCompleted', value: submissionFrom(body) };
    case EventType.SESSION_EXPIRED:
      return { case: 'sessionExpired', value: sessionFrom(body, 'expired') };
    case EventType.SESSION_CANCELLED:
      return { case: 'sessionCancelled', value: sessionFrom(body, 'cancelled') };
    case EventType.SESSION_DECLINED:
      return { case: 'sessionDeclined', value: sessionFrom(body, 'declined') };
    case EventType.WEBHOOK_TEST: {
      const { webhookId, formId, answers } = dataIn<TestFacts>(body);
      return { case: 'webhookTested', value: { webhookId, formId: formId ?? '', answers } };
    }
    case EventType.SUBMISSION_DELETED: {
      const { submissionId, formId, sessionId } = dataIn<DeletionData>(body);
      return { case: 'submissionDeleted', value: { submissionId, formId, sessionId: sessionId ?? '' } };
    }
    case EventType.SUBMISSION_REPLACED: {
      const { submissionId: id, ...data } = dataIn<DeletionData>(body);
      const own = { id, status: SubmissionStatus.REPLACED };
      return { case: 'submissionReplaced', value: rowToMessage(SubmissionSchema, data, own) };
    }
    case EventType.SESSION_ENDED:
    case EventType.SESSION_NOTIFIED:
    case EventType.UNSPECIFIED:
      return { case: undefined };
    default:
      return type satisfies never;
  }
}

function submissionFrom(body: string): MessageInitShape<typeof SubmissionSchema> {
  const data = dataIn<SubmissionData>(body);
  return rowToMessage(SubmissionSchema, data, {
    id: data.submissionId,
    status: SubmissionStatus.ACCEPTED,
    createTime: timestampFromMs(Date.parse(data.createdAt)),
    provenance: originsFrom(data.provenance),
    ...(data.respondent !== undefined && { respondent: respondentToMessage(data.respondent) }),
  });
}

/** Of a session whose end is an event: of older events the body does not say how it ended. */
function sessionFrom(
  body: string,
  ended: 'expired' | 'cancelled' | 'declined',
): MessageInitShape<typeof SessionSchema> {
  const data = dataIn<SessionData>(body);
  return rowToMessage(SessionSchema, data, {
    id: data.sessionId,
    status: enumValue(SessionStatus, ended),
    outcome: enumValue(SessionOutcome, ended),
    expireTime: timestampFromMs(Date.parse(data.expiresAt)),
    provenance: originsFrom(data.provenance),
  });
}

function originsFrom(provenance: Record<string, Origin> = {}): Record<string, AnswerOrigin> {
  return provenanceToMessage(new Map(Object.entries(provenance)));
}

/** The `data` of a body that this service has written. */
function dataIn<T>(body: string): T {
  const { data } = JSON.parse(body) as { data: T };
  return data;
}

type Payload = NonNullable<MessageInitShape<typeof EventSchema>['payload']>;

/** `provenance` is absent in bodies that are older than the record of origins. */
type SubmissionData = Omit<SubmissionFacts, 'id' | 'provenance'> & {
  submissionId: string;
  answers: JsonObject;
  provenance?: Record<string, Origin>;
};

/** `provenance` is of the partial answers, and only there with them. */
type SessionData = {
  sessionId: string;
  formId: string;
  reason?: string;
  expiresAt: string;
  metadata: JsonObject;
  partialAnswers?: JsonObject;
  provenance?: Record<string, Origin>;
};

type DeletionData = { submissionId: string; formId: string; sessionId: string | null };

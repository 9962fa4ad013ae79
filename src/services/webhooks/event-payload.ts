import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type SessionSchema, SessionStatus } from '../../../gen/headlessforms/v1/sessions_pb.js';
import {
  type AnswerOrigin,
  type SubmissionSchema,
  SubmissionStatus,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { type EventSchema, EventType } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import type { Origin } from '../../domain/answers/provenance.ts';
import type { TestFacts } from '../../domain/events/bodies.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { provenanceToMessage } from '../submissions/submission-proto.ts';

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
      return { case: 'sessionExpired', value: sessionFrom(body, SessionStatus.EXPIRED) };
    case EventType.SESSION_CANCELLED:
      return { case: 'sessionCancelled', value: sessionFrom(body, SessionStatus.CANCELLED) };
    case EventType.WEBHOOK_TEST: {
      const { webhookId, formId, answers } = dataIn<TestFacts>(body);
      return { case: 'webhookTested', value: { webhookId, formId: formId ?? '', answers } };
    }
    case EventType.SUBMISSION_DELETED: {
      const { submissionId, formId, sessionId } = dataIn<DeletionData>(body);
      return { case: 'submissionDeleted', value: { submissionId, formId, sessionId: sessionId ?? '' } };
    }
    case EventType.UNSPECIFIED:
      return { case: undefined };
    default:
      return type satisfies never;
  }
}

function submissionFrom(body: string): MessageInitShape<typeof SubmissionSchema> {
  const data = dataIn<SubmissionData>(body);
  return {
    id: data.submissionId,
    formId: data.formId,
    formVersionId: data.formVersionId,
    sessionId: data.sessionId ?? '',
    source: data.source,
    answers: data.answers,
    status: SubmissionStatus.ACCEPTED,
    createTime: timestampFromMs(Date.parse(data.createdAt)),
    metadata: data.metadata,
    provenance: originsFrom(data.provenance),
  };
}

function sessionFrom(body: string, status: SessionStatus): MessageInitShape<typeof SessionSchema> {
  const data = dataIn<SessionData>(body);
  return {
    id: data.sessionId,
    formId: data.formId,
    status,
    expireTime: timestampFromMs(Date.parse(data.expiresAt)),
    metadata: data.metadata,
    ...(data.partialAnswers !== undefined && { partialAnswers: data.partialAnswers }),
    provenance: originsFrom(data.provenance),
  };
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
type SubmissionData = {
  submissionId: string;
  formId: string;
  formVersionId: string;
  sessionId: string | null;
  source: string;
  answers: JsonObject;
  metadata: JsonObject;
  createdAt: string;
  provenance?: Record<string, Origin>;
};

/** `provenance` is of the partial answers, and only there with them. */
type SessionData = {
  sessionId: string;
  formId: string;
  expiresAt: string;
  metadata: JsonObject;
  partialAnswers?: JsonObject;
  provenance?: Record<string, Origin>;
};

type DeletionData = { submissionId: string; formId: string; sessionId: string | null };

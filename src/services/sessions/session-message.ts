import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type SessionSchema, SessionStatus } from '../../../gen/forms/v1/sessions_pb.js';
import type { Session } from '../../store/sessions.ts';

/** A session as its maker sees it. Partial answers are told only while the form allows them. */
export function sessionToMessage(session: Session, { hostedUrl, allowPartial }: SessionView): SessionMessage {
  return {
    id: session.id,
    formId: session.formId,
    formVersionId: session.versionId,
    status: statuses[session.status],
    url: `${hostedUrl}/f/${session.id}`,
    expireTime: timestampFromDate(session.expiresAt),
    createTime: timestampFromDate(session.createdAt),
    ...(session.openedAt !== null && { openTime: timestampFromDate(session.openedAt) }),
    prefill: session.prefill,
    metadata: session.metadata,
    submissionId: session.submissionId ?? '',
    ...(allowPartial && { partialAnswers: session.partialAnswers ?? {} }),
  };
}

const statuses: Record<Session['status'], SessionStatus> = {
  open: SessionStatus.OPEN,
  submitted: SessionStatus.SUBMITTED,
  expired: SessionStatus.EXPIRED,
};

export type SessionView = { hostedUrl: string; allowPartial: boolean };

/** A session as the RPCs tell it. */
export type SessionMessage = MessageInitShape<typeof SessionSchema>;

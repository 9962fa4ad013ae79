import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type SessionSchema, SessionStatus } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { currentAnswersOf } from '../../domain/answers/provenance.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { provenanceToMessage } from '../submissions/submission-proto.ts';

/** A session as its maker sees it. Partial answers are shown only while the form allows them. */
export function sessionToMessage(
  { settings }: Pick<ServiceContext, 'settings'>,
  form: PublishedForm,
  session: Session,
): MessageInitShape<typeof SessionSchema> {
  const { allowPartial } = form.version.definition.settings;
  return {
    id: session.id,
    formId: session.formId,
    formVersionId: session.versionId,
    status: sessionStatusOf[session.status],
    url: `${settings.hostedUrl}/f/${session.id}`,
    expireTime: timestampFromDate(session.expiresAt),
    createTime: timestampFromDate(session.createdAt),
    ...(session.openedAt !== null && { openTime: timestampFromDate(session.openedAt) }),
    prefill: session.prefill,
    metadata: session.metadata,
    submissionId: session.submissionId ?? '',
    returnUrl: session.returnUrl ?? '',
    ...(allowPartial && { partialAnswers: session.partialAnswers ?? {} }),
    provenance: provenanceToMessage(
      currentAnswersOf(allowPartial ? session : { ...session, partialAnswers: null }).provenance,
    ),
  };
}

/** The status of a session in messages. */
export const sessionStatusOf: Record<Session['status'], SessionStatus> = {
  open: SessionStatus.OPEN,
  submitted: SessionStatus.SUBMITTED,
  expired: SessionStatus.EXPIRED,
  cancelled: SessionStatus.CANCELLED,
};

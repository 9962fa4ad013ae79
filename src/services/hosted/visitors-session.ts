import type { HandlerContext } from '@connectrpc/connect';
import { newSessionId } from '../../domain/ids.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import { bytesOfSession } from '../../store/keyless-storage.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { insertSession, type NewSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { refuseIfClosed } from '../forms/form-access.ts';
import { checkSize } from '../submissions/accept-answers.ts';
import { keyOfPage } from './page-token.ts';
import type { HostedVisit } from './resolve-visit.ts';

/**
 * Opens a session for the visitor of a form's own page, who has none yet. A page that asks twice, as for two files at
 * once, gets one session. Throws `FAILED_PRECONDITION` if the form takes no more submissions.
 */
export async function openVisitorsSession(
  context: ServiceContext,
  { form, version, session: { prefill } }: HostedVisit,
  issueToken: string,
  call: HandlerContext,
): Promise<Session> {
  refuseIfClosed(form, context.now());
  checkSize(form, prefill);
  const keylessBytes = bytesOfSession({ prefill, partialAnswers: null });
  using room = context.keylessStorage.reserve(form.projectId, clientAddressOf(call));
  await room.add(keylessBytes);
  const id = newSessionId();
  const fresh: NewSession = {
    id,
    projectId: form.projectId,
    formId: form.id,
    versionId: version.id,
    prefill,
    metadata: {},
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    expiresIn: VISITOR_SECONDS,
    keylessBytes,
  };
  const page = { token: issueToken, pageIds: [form.id], now: context.now() };
  const idempotency = keyOfPage(context.verifyingKeys, page, {});
  const first = await insertSession(context.database, { ...fresh, idempotency });
  // A page may stay open for longer than its session.
  const stored = first.status === 'expired' ? await insertSession(context.database, fresh) : first;
  if (stored.id === id) {
    context.keylessStorage.record({ formId: form.id, projectId: form.projectId, bytes: keylessBytes });
    room.keep();
  }
  return stored;
}

/** How long a visitor may take over a form: 7 days. */
const VISITOR_SECONDS = 7 * 24 * 60 * 60;

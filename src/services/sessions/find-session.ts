import type { HandlerContext } from '@connectrpc/connect';
import type { UpdateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { notFound } from '../../domain/errors/failure.ts';
import { codeNeeded } from '../../domain/sessions/failures.ts';
import type { Caller } from '../../rpc/context.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findSession } from '../../store/sessions/sessions.ts';
import { sessionName } from '../audit/audit.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { type Reservation, strangerAddress } from '../limits/keyless-storage.ts';
import { requireFound } from '../request-values.ts';

/**
 * A session of the caller's project. Throws NOT_FOUND, to callers without a key also for one that a visitor has begun,
 * and CODE_NEEDED to them where the session asks its respondent for a code.
 */
export async function projectSession(
  { database, settings }: Pick<ServiceContext, 'database' | 'settings'>,
  { projectId, keyId }: Caller,
  sessionId: string,
): Promise<Session> {
  const session = await requireFound('sess', sessionId, () => findSession(database, projectId, sessionId));
  if (keyId === undefined && session.keylessBytes !== null) throw notFound('session');
  if (keyId === undefined && session.respondent !== null) throw codeNeeded(settings, sessionId);
  return session;
}

/** Records what a call has done with a session. */
export function noteSession({ audit }: ServiceContext, call: HandlerContext, { id, formId }: Session): void {
  audit.note(call, { resource: sessionName(id), formId });
}

/**
 * Reserves room for what a session is to hold that comes without a key, as it may where keys are not required;
 * undefined for a call with one.
 */
export async function reserveValues(
  { keylessStorage }: ServiceContext,
  { projectId }: PublishedForm,
  { prefill, metadata, answers }: SessionValues,
  call: HandlerContext,
): Promise<Reservation | undefined> {
  const stranger = strangerAddress(call, projectId);
  if (stranger === undefined) return undefined;
  const room = keylessStorage.reserve(projectId, stranger);
  await room.add(Buffer.byteLength(JSON.stringify([prefill, metadata, answers])));
  return room;
}

type SessionValues = Partial<Pick<UpdateSessionRequest, 'prefill' | 'metadata' | 'answers'>>;

import { heldBy, type SessionOrigins } from '../answers/provenance.ts';
import { newId } from '../ids.ts';
import type { JsonObject } from '../json/json.ts';
import type { SessionFacts } from './bodies.ts';
import { eventTypes } from './index.ts';

/**
 * The event that tells of a session's end without a submission, to be stored in the same commit. `at` is in
 * milliseconds.
 */
export function sessionEvent(
  type: 'session.expired' | 'session.cancelled',
  session: EndedSession,
  at: number,
): SessionEvent {
  const createdAt = new Date(at);
  const id = newId('evt', at);
  const { projectId, formId, partialAnswers } = session;
  const origins = heldBy({ ...session, prefill: {} }).provenance;
  const facts = {
    ...session,
    partialAnswers: partialAnswers ?? undefined,
    provenance: Object.fromEntries(origins),
  };
  const body = eventTypes[type].body({ id, at: createdAt.toISOString() }, facts);
  return { id, projectId, formId, sessionId: session.id, type, body, createdAt };
}

type EndedSession = Omit<SessionFacts, 'partialAnswers' | 'provenance'> & {
  projectId: string;
  partialAnswers: JsonObject | null;
  provenance: SessionOrigins | null;
  createdAt: Date;
};

type SessionEvent = {
  id: string;
  projectId: string;
  formId: string;
  sessionId: string;
  type: string;
  body: string;
  createdAt: Date;
};

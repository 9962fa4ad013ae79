import { newId } from '../ids.ts';
import type { SessionFacts } from './bodies.ts';
import { eventTypes } from './index.ts';

/** The event that tells of a session's end without a submission, to be stored in the same commit. `at` is in milliseconds. */
export function sessionEvent(
  type: 'session.expired' | 'session.cancelled',
  session: EndedSession,
  at: number,
): SessionEvent {
  const createdAt = new Date(at);
  const id = newId('evt', at);
  const { projectId, formId, partialAnswers } = session;
  const facts = { ...session, partialAnswers: partialAnswers ?? undefined };
  const body = eventTypes[type].body({ id, at: createdAt }, facts);
  return { id, projectId, formId, sessionId: session.id, type, body, createdAt };
}

type EndedSession = Omit<SessionFacts, 'partialAnswers'> & {
  projectId: string;
  partialAnswers: SessionFacts['partialAnswers'] | null;
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

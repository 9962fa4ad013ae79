import { newId } from '../ids.ts';
import { END_OF_BODY, sentBody } from './bodies.ts';
import { eventTypes } from './index.ts';

/** The events that a sample can be made of, by the names that receivers get. */
export const sampleNames: readonly string[] = Object.entries(eventTypes)
  .filter(([, { webhooks }]) => webhooks !== 'none')
  .map(([name]) => name);

/** A made-up event as webhooks get it. `at` is in milliseconds. Undefined if no event of this name is sent. */
export function sampleEvent(name: string, at: number): { id: string; body: string } | undefined {
  const formId = newId('form', at);
  const id = newId('evt', at);
  const instant = new Date(at).toISOString();
  const head = { id, at: instant };
  const metadata = { sample: true };
  const session = { sessionId: `sess_${'0'.repeat(32)}`, formId, metadata };
  const submission = {
    id: newId('sub', at),
    formId,
    formVersionId: newId('ver', at),
    formCreatedBy: newId('key', at),
    sessionId: null,
    source: 'api',
    metadata,
    createdAt: instant,
    provenance: [{ by: 'api' as const }],
  };
  const ended = { ...session, id: session.sessionId, expiresAt: new Date(at) };
  const bodies: Record<string, () => string> = {
    'submission.created': () => around(eventTypes['submission.created'].body(head, submission)),
    'submission.completed': () =>
      around(
        eventTypes['submission.completed'].body(head, {
          ...submission,
          sessionId: session.sessionId,
          source: 'hosted',
          provenance: [{ by: 'human' }],
        }),
      ),
    'submission.deleted': () => eventTypes['submission.deleted'].body(head, submission),
    'submission.replaced': () =>
      eventTypes['submission.replaced'].body(head, { ...submission, replacedBy: newId('sub', at) }),
    'session.expired': () => eventTypes['session.expired'].body(head, { ...ended, outcome: 'expired' }),
    'session.cancelled': () => eventTypes['session.cancelled'].body(head, { ...ended, outcome: 'cancelled' }),
    'session.declined': () =>
      eventTypes['session.declined'].body(head, { ...ended, outcome: 'declined', reason: 'Not now' }),
    'session.notified': () =>
      eventTypes['session.notified'].body(head, {
        ...session,
        url: `https://forms.example.com/f/${session.sessionId}`,
        project: 'default',
        question: 'Deploy 4.2?',
        reminder: 0,
        expiresAt: instant,
      }),
    'session.ended': () =>
      `${eventTypes['session.ended'].body(head, { ...session, outcome: 'submitted', submissionId: submission.id })},"answers":${JSON.stringify(answers)}${END_OF_BODY}`,
    'webhook.test': () =>
      eventTypes['webhook.test'].body(head, { webhookId: newId('wh', at), formId, answers }),
  };
  const body = Object.hasOwn(bodies, name) ? bodies[name]?.() : undefined;
  return body === undefined ? undefined : { id, body: sentBody(body) };

  function around({ start, end }: { start: string; end: string }): string {
    return `${start}${JSON.stringify(answers)}${end}`;
  }
}

const answers = { name: 'Ada Lovelace', email: 'ada@example.com', message: 'Hello' };

import { createHmac } from 'node:crypto';
import { downtimeIn, type History, type HookSeen, hadFault, hookAt, type SubmissionSeen } from './history.ts';
import { removalOf } from './removals.ts';
import { ATTEMPTS, DAY_MS, LAST_ATTEMPT_MS, MINUTE_MS, type Rule, UNDER_WAY_MS } from './rule.ts';

/** Retries, replays and all receivers see one event under one id, and nothing else under it. */
export const oneEventId: Rule = {
  name: 'one event id',
  find({ hits }) {
    const ids = new Map<string, string>();
    const bodies = new Map<string, string>();
    return hits.flatMap(({ headers, body, at, receiver }) => {
      const id = headers['webhook-id'] ?? '';
      const { event, data } = parse(body);
      const about = `${event} ${data.submissionId ?? data.sessionId ?? id}`;
      const isTest = event === 'webhook.test';
      const other = ids.get(about) ?? id;
      const sameBody = bodies.get(id) ?? body;
      ids.set(about, other);
      bodies.set(id, sameBody);
      return [
        ...(other !== id && !isTest
          ? [
              {
                reason: 'another id for the same event',
                detail: `${about} at ${receiver}: ${other} and ${id}`,
                at,
              },
            ]
          : []),
        ...(sameBody !== body ? [{ reason: 'another body under the same id', detail: id, at }] : []),
      ];
    });
  },
};

/** The header has a signature by the secret that is in force, at the time of the attempt. */
export const signaturesAreValid: Rule = {
  name: 'signatures are valid',
  find(history) {
    return history.hits.flatMap(({ url, headers, body, at, receiver }) => {
      // Callbacks have a rule of their own.
      if (parse(body).event === 'session.ended') return [];
      const hook = hookAt(history.hooks, url);
      if (hook === undefined) return [{ reason: 'nobody registered the receiver', detail: url, at }];
      const [, seconds = '', hex] =
        /^t=(\d+), v1=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '') ?? [];
      const signed = (secret: string) =>
        createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex') === hex;
      if (signedWith(hook, at).some(signed)) {
        const isClockOff = hadFault(history, { kinds: ['clock-off'], from: 0, until: at });
        const offMs = Math.abs(at - Number(seconds) * 1000);
        return offMs > 5 * MINUTE_MS && !isClockOff
          ? [{ reason: 'signed at another time', detail: receiver, at }]
          : [];
      }
      if (hook.rotatedUnseen.some((from) => from <= at)) return [];
      const by = hook.secrets.find(({ secret }) => signed(secret));
      const reason =
        by === undefined
          ? 'signed with another secret'
          : by.from > at
            ? 'signed with a secret before its time'
            : 'signed with a secret after its time';
      return [{ reason, detail: `${receiver}: ${headers['webhook-id']}`, at }];
    });
  },
};

/** The secrets that may sign at a time: one is over when the next is sure, and what was under way has arrived. */
function signedWith({ secrets }: HookSeen, at: number): string[] {
  return secrets.flatMap(({ secret, from }, index) => {
    const next = secrets.slice(index + 1).find(({ sure }) => sure !== undefined);
    const isOver = next?.sure !== undefined && next.sure + UNDER_WAY_MS < at;
    return from <= at && !isOver ? [secret] : [];
  });
}

/** Each submission reaches each webhook that listened when it was sent, unless that refused as often as documented. */
export const deliveredAtLeastOnce: Rule = {
  name: 'webhooks at least once',
  find(history) {
    return [...history.hooks.values()].flatMap((hook) =>
      [...history.submissions.values()].flatMap((submission) => {
        const { ackedAt, mark, form } = submission;
        const listens = hook.registered.sure !== undefined && hook.registered.sure < submission.firstSentAt;
        const isOwn = hook.formId === undefined || hook.formId === submission.formId;
        if (ackedAt === undefined || form === undefined || !listens || !isOwn) return [];
        if (!hook.events.includes('submission.created') || (form.isKeyless && hook.formId === undefined))
          return [];
        const own = history.hits.filter(({ url, body }) => url === hook.url && body.includes(mark));
        if (own.some(({ answered }) => isTaken(answered))) return [];
        const until = ackedAt + LAST_ATTEMPT_MS.most + downtimeIn(history, ackedAt, ackedAt + 4 * DAY_MS);
        if (isExcused(history, { hook, submission, until, tries: own.length })) return [];
        return [
          {
            reason: 'it never arrived',
            detail: `${mark} (${[...submission.ids.keys()].join()}) at ${hook.url}`,
            at: ackedAt,
          },
        ];
      }),
    );
  },
};

function isExcused(history: History, { hook, submission, until, tries }: Excuse): boolean {
  const { firstSentAt, ackedAt = 0 } = submission;
  const { from: removedFrom = Number.POSITIVE_INFINITY } = removalOf(history, submission);
  if (removedFrom <= until || tries >= ATTEMPTS) return true;
  if (hook.off.some(({ from }) => from <= until) || hook.gone.some((at) => at <= until)) return true;
  const about = ['*', new URL(hook.url).hostname, new URL(hook.url).hostname.split('.')[0] ?? ''];
  const last = { from: ackedAt + LAST_ATTEMPT_MS.least, until };
  if (hadFault(history, { kinds: receiverFaults, about, ...last })) return true;
  const failing = history.faults.some(
    (each) =>
      receiverFaults.includes(each.fault) && about.includes(each.about) && (each.ms ?? 0) >= FAILING_MS,
  );
  return failing || until > history.endedAt || firstSentAt > history.endedAt;
}

const receiverFaults: readonly string[] = [
  'refused',
  'reset',
  'slow',
  'silent',
  '3xx',
  '4xx',
  '5xx',
  'unknown-name',
  'no-name-server',
];

/** So long a receiver may fail before its webhook is turned off; less what its first failure takes. */
const FAILING_MS = 4.5 * DAY_MS;

/** A receiver that wants no more, or is turned off or deleted, is not called again. */
export const nothingAfterEnd: Rule = {
  name: 'nothing after the end of a webhook',
  find(history) {
    return history.hits.flatMap(({ url, at, body, receiver }) => {
      const hook = hookAt(history.hooks, url);
      if (hook === undefined || parse(body).event === 'webhook.test') return [];
      const isOn = (since: number) =>
        hook.on.some(({ from, sure }) => (sure ?? from) >= since - UNDER_WAY_MS && from <= at);
      // A process that dies before it has stored the answer leaves it to the next one.
      const gone = hook.gone.filter(
        (each) => each + UNDER_WAY_MS < at && !isOn(each) && !diedAt(history, each),
      );
      if (gone.length > 0) return [{ reason: 'called after it answered 410', detail: receiver, at }];
      const off = hook.off.filter(
        ({ sure }) => sure !== undefined && sure + UNDER_WAY_MS < at && !isOn(sure),
      );
      return off.length > 0 ? [{ reason: 'called after it was turned off', detail: receiver, at }] : [];
    });
  },
};

function diedAt({ crashes }: History, at: number): boolean {
  return crashes.some((crash) => crash >= at && crash <= at + MINUTE_MS);
}

/** Also what was processed, as a redirect to GET says. */
function isTaken(answered: number | 'lost' | 'silent'): boolean {
  if (typeof answered !== 'number') return answered === 'lost';
  return (answered >= 200 && answered < 300) || answered === 302 || answered === 303;
}

function parse(body: string): Body {
  const { event = '', data = {} } = JSON.parse(body);
  return { event, data };
}

type Body = { event: string; data: { submissionId?: string; sessionId?: string } };
type Excuse = { hook: HookSeen; submission: SubmissionSeen; until: number; tries: number };

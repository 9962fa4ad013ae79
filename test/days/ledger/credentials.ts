import { type CallSeen, type Change, type History, objectIn, pathOf } from './history.ts';
import { HOUR_MS, type Rule, SECOND_MS, UNDER_WAY_MS } from './rule.ts';

/** Revoked keys, sessions that ended and links that were used or voided open nothing. */
export const endedOpensNothing: Rule = {
  name: 'what has ended opens nothing',
  find(history) {
    const endings = [...keysThatEnd(history), ...sessionsThatEnd(history), ...linksThatEnd(history)];
    return history.calls.flatMap((call) => {
      const { sentAt, reply, request } = call;
      if (reply === undefined || reply.status >= 400) return [];
      const shown = credentialOf(call);
      const ended = endings.find(({ credential, sure }) => credential === shown && sure < sentAt);
      if (ended === undefined) return [];
      return [{ reason: ended.reason, detail: `${request.method} ${request.path} by ${shown}`, at: sentAt }];
    });
  },
};

/** The key, session or link that a call shows. */
function credentialOf({ request }: CallSeen): string | undefined {
  const path = pathOf(request);
  if (path.endsWith('/SignIn')) return String(objectIn(request.body).token);
  return path.startsWith('/mail/') && request.method === 'POST' ? path : bearerOf(request.headers);
}

function bearerOf({ authorization = '' }: Record<string, string>): string {
  return authorization.replace(/^Bearer /, '');
}

/** Keys end when they are revoked, and those that they made with them where that is asked for. */
function keysThatEnd({ calls }: History): Ending[] {
  const made = calls.flatMap(({ request, reply, sentAt }) =>
    request.method === 'POST' && pathOf(request) === '/v1/keys' && reply?.status === 201
      ? [{ id: reply.json.key.id, secret: reply.json.secret, maker: bearerOf(request.headers), sentAt }]
      : [],
  );
  return calls.flatMap(({ request, reply, doneAt = 0 }) => {
    const [, id] = /^\/v1\/keys\/(key_\w+)$/.exec(pathOf(request)) ?? [];
    const revoked = made.find((key) => key.id === id);
    if (request.method !== 'DELETE' || reply?.status !== 200 || revoked === undefined) return [];
    const children = request.path.endsWith('children=revoke')
      ? made.filter(({ maker, sentAt }) => maker === revoked.secret && sentAt < doneAt)
      : [];
    const sure = doneAt + FRESH_MS;
    return [
      { credential: revoked.secret, sure, reason: 'a key that was revoked' },
      ...children.map(({ secret }) => ({
        credential: secret,
        sure,
        reason: 'a key whose maker was revoked',
      })),
    ];
  });
}

/** Sessions of owners end after twelve hours, with a hand-over, and when the secret key is changed. */
function sessionsThatEnd({ calls, forms, rotations }: History): Ending[] {
  return calls.flatMap(({ request, reply, sentAt, doneAt = 0 }): Ending[] => {
    const credential = pathOf(request).endsWith('/SignIn') ? reply?.json?.sessionToken : undefined;
    if (typeof credential !== 'string') return [];
    const address = request.actor.replace(/^owner /, '');
    const taken = [...forms.values()].flatMap(({ owners }) =>
      owners.filter(({ from, isConfirmed }, index) => {
        const former = owners.slice(0, index).findLast((owner) => owner.isConfirmed);
        return (
          isConfirmed && former?.address === address && owners[index]?.address !== address && from > doneAt
        );
      }),
    );
    return [
      { credential, sure: doneAt + 12 * HOUR_MS, reason: 'a session after twelve hours' },
      ...endsBy(taken, credential, 'a session of a former owner'),
      ...endsBy(laterThan(rotations, sentAt), credential, 'a session from before another secret key'),
    ];
  });
}

/** Links work once, and those from before the secret key was changed not at all. */
function linksThatEnd({ calls, mails, rotations }: History): Ending[] {
  const used = calls.flatMap((call): Ending[] => {
    const credential = credentialOf(call);
    const isLink = pathOf(call.request).endsWith('/SignIn') || credential?.startsWith('/mail/c') === true;
    if (credential === undefined || !isLink || call.reply?.status !== 200) return [];
    return [{ credential, sure: call.doneAt ?? 0, reason: 'a link that was used' }];
  });
  const voided = mails.flatMap(({ text, at }) =>
    [...text.matchAll(/(?:\/owner\/sign-in\/|(?=\/mail\/(?:confirm|change)-))([\w./-]+)/g)].flatMap(
      ([, credential = '']) =>
        endsBy(laterThan(rotations, at), credential, 'a link from before another secret key'),
    ),
  );
  return [...used, ...voided];
}

function laterThan(rotations: readonly number[], at: number): Change[] {
  return rotations.filter((each) => each > at + UNDER_WAY_MS).map((from) => ({ from, sure: from }));
}

function endsBy(changes: readonly Change[], credential: string, reason: string): Ending[] {
  return changes.flatMap(({ sure }) =>
    sure === undefined ? [] : { credential, sure: sure + FRESH_MS, reason },
  );
}

/** What a call acts on may be a second old. */
const FRESH_MS = SECOND_MS;

type Ending = { credential: string; sure: number; reason: string };

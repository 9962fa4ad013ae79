import { createHmac } from 'node:crypto';
import { type CallSeen, downtimeIn, type History, hadFault, objectIn, pathOf } from './history.ts';
import { DAY_MS, LAST_ATTEMPT_MS, MINUTE_MS, type Rule, SECOND_MS, UNDER_WAY_MS } from './rule.ts';

/** Who is asked is reminded at the times that were given, while the session is open, and not once it has ended. */
export const remindedUntilTheEnd: Rule = {
  name: 'reminded until the end',
  find(history) {
    return asksOf(history).flatMap((ask) => {
      const mails = history.mails.filter(({ isTaken, to }) => isTaken && to.includes(ask.email));
      const late = mails.filter(({ at }) => at > ask.endedAt + UNDER_WAY_MS);
      const due = [0, ...ask.remindAfterMs].filter((afterMs) => isPromised(history, ask, afterMs));
      const missing = due.filter(
        (afterMs) =>
          !mails.some(({ at }) => at >= ask.sentAt + afterMs && at <= ask.madeAt + afterMs + SOON_MS),
      );
      return [
        ...late.map(({ at }) => ({ reason: 'after the end', detail: `${ask.id} to ${ask.email}`, at })),
        ...missing.map((afterMs) => ({
          reason: 'it never came',
          detail: `${ask.id} to ${ask.email} after ${afterMs / SECOND_MS} s`,
          at: ask.madeAt + afterMs,
        })),
      ];
    });
  },
};

/** Whether a mail has to come so long after a session was made: nothing stood in its way. */
function isPromised(history: History, ask: Ask, afterMs: number): boolean {
  const [from, until] = [ask.sentAt + afterMs - SOON_MS, ask.madeAt + afterMs + SOON_MS];
  if (ask.triedToEndAt <= until || until > history.endedAt) return false;
  const isDisturbed = history.faults.some(
    ({ fault, at, ms = 0 }) =>
      (fault.startsWith('mail-') || fault === 'clock-off' || fault === 'no-name-server') &&
      at <= until &&
      at + ms >= from,
  );
  const hasCrashed = history.crashes.some((at) => at >= from && at <= until);
  return !isDisturbed && !hasCrashed && downtimeIn(history, from, until) === 0;
}

/** A mail without a fault comes within this: its poller's second, and the leases of others before it. */
const SOON_MS = 20 * MINUTE_MS;

/** A session's callback is signed with its secret, and tells one end alone, which is the one that it had. */
export const calledBackOnce: Rule = {
  name: 'one callback for each ask',
  find(history) {
    return asksOf(history).flatMap((ask) => {
      const hits = history.hits.filter(({ url }) => url === ask.callbackUrl);
      const about = (reason: string, at: number) => ({
        reason,
        detail: `${ask.id} at ${ask.callbackUrl}`,
        at,
      });
      const told = hits.map(({ body }) => JSON.parse(body));
      const outcomes = new Set(told.map(({ data }) => data.outcome));
      const ids = new Set(hits.map(({ headers }) => headers['webhook-id']));
      const unsigned = hits.filter(({ headers, body }) => {
        const [, seconds, hex] = /^t=(\d+), v1=(\w+)$/.exec(headers['x-service-signature'] ?? '') ?? [];
        return createHmac('sha256', ask.secret).update(`${seconds}.${body}`).digest('hex') !== hex;
      });
      const at = hits[0]?.at ?? ask.endedAt;
      return [
        ...unsigned.map((hit) => about('not signed with its secret', hit.at)),
        ...(ids.size > 1 ? [about('under two ids', at)] : []),
        ...(outcomes.size > 1 ? [about('two outcomes', at)] : []),
        ...([...outcomes].some((outcome) => !ask.outcomes.has(outcome))
          ? [about('another outcome', at)]
          : []),
        ...(hits.some((hit) => hit.at < ask.triedToEndAt) ? [about('before the end', at)] : []),
        ...(hits.length === 0 && isOwed(history, ask) ? [about('it never came', at)] : []),
      ];
    });
  },
};

/** Unless the receiver refused as often as documented. */
function isOwed(history: History, { endedAt, callbackUrl }: Ask): boolean {
  const until = endedAt + LAST_ATTEMPT_MS.most + downtimeIn(history, endedAt, endedAt + 4 * DAY_MS);
  const last = { from: endedAt + LAST_ATTEMPT_MS.least, until };
  const host = new URL(callbackUrl).hostname;
  const about = ['*', host, host.split('.')[0] ?? ''];
  const kinds = ['refused', 'reset', 'slow', 'silent', '3xx', '4xx', '5xx', 'unknown-name', 'no-name-server'];
  return until <= history.endedAt && !hadFault(history, { kinds, about, ...last });
}

/** The sessions that were made with a question of their own, and what their ends can be. */
function asksOf({ calls }: History): Ask[] {
  const byId = new Map<string, Ask>();
  for (const { request, sentAt, doneAt, reply } of calls) {
    const isAsk = request.method === 'POST' && pathOf(request) === '/v1/sessions';
    if (!isAsk || reply?.status !== 201 || doneAt === undefined || byId.has(reply.json.session.id)) continue;
    const { notify, callback, expires_in: seconds } = objectIn(request.body) as AskBody;
    const { id, created_at: createdAt } = reply.json.session;
    const madeAt = doneAt;
    byId.set(id, {
      id,
      email: notify.email,
      remindAfterMs: notify.remind_after.map((after) => after * SECOND_MS),
      callbackUrl: callback.url,
      secret: callback.secret,
      // A call before, whose reply was lost, may have made it; clocks can be off.
      sentAt: Math.min(sentAt, Date.parse(createdAt)),
      madeAt,
      ...endOf(calls, id, {
        expiresFrom: Math.min(sentAt, Date.parse(createdAt)) + seconds * SECOND_MS,
        expiredAt: madeAt + seconds * SECOND_MS,
      }),
    });
  }
  return [...byId.values()];
}

function endOf(
  calls: readonly CallSeen[],
  id: string,
  { expiresFrom, expiredAt }: { expiresFrom: number; expiredAt: number },
): Pick<Ask, 'triedToEndAt' | 'endedAt' | 'outcomes'> {
  const ends = calls.filter(({ request }) => pathOf(request).startsWith(`/v1/sessions/${id}/`));
  const sure = ends.find(({ reply }) => reply !== undefined && reply.status < 300);
  const nameOf = ({ request }: CallSeen) => outcomes[pathOf(request).split('/').at(-1) ?? ''] ?? '';
  // Of several tries the first, whose reply was lost, may be what ended it.
  const possible = new Set(ends.map(nameOf));
  if (sure === undefined || (sure.doneAt ?? 0) >= expiresFrom) possible.add('expired');
  return {
    triedToEndAt: Math.min(expiresFrom, ...ends.map(({ sentAt }) => sentAt)),
    endedAt: Math.min(expiredAt, sure?.doneAt ?? expiredAt),
    outcomes: possible,
  };
}

const outcomes: Record<string, string> = { submit: 'submitted', decline: 'declined', cancel: 'cancelled' };

type AskBody = {
  notify: { email: string; remind_after: number[] };
  callback: { url: string; secret: string };
  expires_in: number;
};

type Ask = {
  id: string;
  email: string;
  remindAfterMs: number[];
  callbackUrl: string;
  secret: string;
  /** When it was made, at the earliest and for sure. */
  sentAt: number;
  madeAt: number;
  /** When it may have ended, and when it had for sure. */
  triedToEndAt: number;
  endedAt: number;
  outcomes: Set<string>;
};

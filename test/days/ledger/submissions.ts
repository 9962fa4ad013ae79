import { downtimeIn, type History, MARK, pathOf, type SubmissionSeen } from './history.ts';
import { removalOf } from './removals.ts';
import { type Rule, SECOND_MS } from './rule.ts';

/** A repetition with the same idempotency key, or of the same session, stores nothing more, whatever got lost. */
export const oneSubmissionPerKey: Rule = {
  name: 'one submission per idempotency key',
  find(history, { listed }) {
    const idsByMark = new Map<string, Set<string>>();
    const see = (text: string, id: string) => {
      const [mark] = text.match(MARK) ?? [];
      if (mark !== undefined) idsByMark.set(mark, (idsByMark.get(mark) ?? new Set()).add(id));
    };
    for (const { mark, ids } of history.submissions.values()) for (const id of ids.keys()) see(mark, id);
    for (const { body } of history.hits) {
      const [id] = /\bsub_[0-9a-z]+/.exec(body) ?? [];
      if (id !== undefined) see(body, id);
    }
    for (const { id, text } of listed.values()) see(text, id);
    return [...history.submissions.values()].flatMap((submission) => {
      const ids = [...(idsByMark.get(submission.mark) ?? [])];
      // What was removed has no key any more: a repetition is new.
      if (ids.length < 2 || isRepeatedAfterRemoval(history, submission)) return [];
      return [{ reason: 'it made two submissions', detail: `${submission.mark}: ${ids.join(', ')}` }];
    });
  },
};

function isRepeatedAfterRemoval(history: History, submission: SubmissionSeen): boolean {
  const { from } = removalOf(history, submission);
  return (
    from !== undefined && submission.calls.some(({ doneAt = Number.POSITIVE_INFINITY }) => doneAt >= from)
  );
}

/** What was acknowledged is there until somebody removes it, or its retention time has passed. */
export const acknowledgedIsKept: Rule = {
  name: 'acknowledged is kept',
  find(history, { statuses, listed, now }) {
    return [...history.submissions.values()].flatMap((submission) => {
      const { from = Number.POSITIVE_INFINITY } = removalOf(history, submission);
      const isRetained = (submission.form?.versions ?? []).some(
        ({ definition }) => definition.retentionDays !== undefined,
      );
      const reason = isRetained ? 'gone before its retention time' : 'it is gone';
      const early = firstSeenGone(history, submission).filter((at) => at < from);
      const lost = [...submission.ids.keys()].filter(
        (id) => from > now && (statuses.get(id) !== 200 || !listed.has(id)),
      );
      if (early.length === 0 && lost.length === 0) return [];
      return [
        { reason, detail: `${[...submission.ids.keys()].join()} of ${submission.mark}`, at: early[0] ?? now },
      ];
    });
  },
};

/** When somebody was told that it is gone: by a read, or by the event of its deletion. */
function firstSeenGone(history: History, { ids }: SubmissionSeen): number[] {
  const isOwn = (text: string) => [...ids.keys()].some((id) => text.includes(id));
  const reads = history.calls.flatMap(({ request, reply, doneAt }) => {
    const isRead = request.method === 'GET' && pathOf(request).startsWith('/v1/submissions/sub_');
    return isRead && reply?.status === 404 && isOwn(request.path) ? [doneAt ?? 0] : [];
  });
  const events = history.hits.flatMap(({ body, at }) =>
    body.includes('"submission.deleted"') && isOwn(body) ? [at] : [],
  );
  return [...reads, ...events].sort((a, b) => a - b);
}

/** Its retention time over, or erased, a submission is not read again. */
export const removedIsNotRead: Rule = {
  name: 'removed is not read again',
  find(history, { statuses, now }) {
    return [...history.submissions.values()].flatMap((submission) => {
      const { sure, how } = removalOf(history, submission);
      if (sure === undefined) return [];
      const read = history.calls.find(
        ({ request, reply, sentAt }) =>
          sentAt > sure &&
          request.method === 'GET' &&
          reply?.status === 200 &&
          reply.text.includes(submission.mark),
      );
      const isLeft =
        sure < now && !submission.isOpen && [...submission.ids.keys()].some((id) => statuses.get(id) === 200);
      if (read === undefined && !isLeft) return [];
      const reason = how === 'expired' ? 'kept beyond its retention time' : `though it was ${how}`;
      return [
        {
          reason,
          detail: `${submission.mark} by ${read?.request.path ?? 'its id'}`,
          at: read?.sentAt ?? now,
        },
      ];
    });
  },
};

/** A form that is closed or archived takes nothing, a second after it was at the latest. */
export const closedTakesNothing: Rule = {
  name: 'closed takes nothing',
  find(history) {
    return [...history.submissions.values()].flatMap(({ mark, form, calls }) => {
      if (form === undefined) return [];
      return calls.flatMap(({ sentAt, reply }) => {
        const isAccepted = reply !== undefined && reply.status < 300;
        const ends = [...form.archived, ...form.deleted, ...closedSpans(form.closed)].filter(
          ({ sure, until = Number.POSITIVE_INFINITY }: Ended) =>
            sure !== undefined && sure + FRESH_MS < sentAt && sentAt < until,
        );
        // Repeating what was accepted before is answered as then.
        const isRepeated = calls.some((other) => other.sentAt < sentAt && other.reply?.status !== 410);
        if (!isAccepted || ends.length === 0 || isRepeated) return [];
        return [{ reason: 'it took a submission', detail: `${form.id}: ${mark}`, at: sentAt }];
      });
    });
  },
};

const FRESH_MS = 2 * SECOND_MS;

function closedSpans(closed: { from: number; sure: number | undefined; isClosed: boolean }[]): Ended[] {
  return closed.flatMap((each, index) =>
    each.isClosed
      ? [{ ...each, until: closed.slice(index + 1).find(({ isClosed }) => !isClosed)?.from }]
      : [],
  );
}

type Ended = { from: number; sure: number | undefined; until?: number | undefined };

/** A good submission to a form that is open is not refused. */
export const openTakesAll: Rule = {
  name: 'open takes all',
  find(history) {
    return [...history.submissions.values()].flatMap((submission) => {
      const { form, mark, calls, firstSentAt } = submission;
      const [activated] = form?.activated ?? [];
      const isLimited = form?.versions.some(({ definition }) => definition.maxSubmissions !== undefined);
      const isEnded =
        form === undefined || form.closed.length + form.archived.length + form.deleted.length > 0;
      if (isEnded || isLimited === true || activated?.sure === undefined || activated.sure > firstSentAt)
        return [];
      const { from } = removalOf(history, submission);
      const refused = calls.find(
        ({ request, reply }) =>
          !/sess_/.test(request.path) &&
          reply !== undefined &&
          reply.status >= 400 &&
          reply.status < 500 &&
          ![409, 413, 422, 429].includes(reply.status),
      );
      if (refused === undefined || from !== undefined) return [];
      return [
        {
          reason: `refused with ${refused.reply?.status}`,
          detail: `${form.id}: ${mark}`,
          at: refused.sentAt,
        },
      ];
    });
  },
};

/** Limits are exact: so many are kept at a time, and no more. What is removed frees its place. */
export const limitsAreExact: Rule = {
  name: 'limits are exact',
  find(history, { listed }) {
    return [...history.forms.values()].flatMap((form) => {
      const limits = new Set(form.versions.map(({ definition }) => definition.maxSubmissions));
      const [max] = limits;
      if (limits.size !== 1 || max === undefined) return [];
      const own = [...history.submissions.values()].filter(({ formId }) => formId === form.id);
      const atTheEnd = [...listed.values()].filter(({ formId }) => formId === form.id).length;
      const most = Math.max(atTheEnd, ...own.map((each) => keptBeside(history, each, own)));
      const many =
        most > max ? [{ reason: 'more than maxSubmissions', detail: `${form.id}: ${most} of ${max}` }] : [];
      return [...many, ...refusedTooEarly(form.id, own, max)];
    });
  },
};

/** How many submissions were kept when one was accepted, with it. */
function keptBeside(history: History, { ackedAt }: SubmissionSeen, own: SubmissionSeen[]): number {
  if (ackedAt === undefined) return 0;
  return own.filter((other) => {
    if (other.ackedAt === undefined || other.ackedAt > ackedAt) return false;
    const { from = Number.POSITIVE_INFINITY } = removalOf(history, other);
    return from > ackedAt;
  }).length;
}

function refusedTooEarly(formId: string, own: SubmissionSeen[], max: number) {
  return own.flatMap((submission) =>
    submission.calls.flatMap(({ reply, doneAt = 0 }) => {
      if (reply?.json?.error?.reason !== 'closed') return [];
      const possible = own.filter(
        (other) => other !== submission && other.firstSentAt < doneAt && (other.ids.size > 0 || other.isOpen),
      );
      const form = submission.form;
      const isClosed = form === undefined || form.closed.length + form.archived.length > 0;
      if (possible.length >= max || isClosed) return [];
      return [
        {
          reason: 'fewer than maxSubmissions',
          detail: `${formId}: ${possible.length} of ${max}`,
          at: doneAt,
        },
      ];
    }),
  );
}

/** What fails says that it can be tried again: nothing else is wrong with a good request. */
export const failuresAreTransient: Rule = {
  name: 'failures are transient',
  find({ calls, ...history }) {
    return calls.flatMap(({ request, reply, sentAt }) => {
      if (reply === undefined || reply.status < 500) return [];
      if (reply.status === 503 && reply.json?.error?.retryable !== false) return [];
      const isDown = downtimeIn(history, sentAt, sentAt + SECOND_MS) > 0;
      if (isDown) return [];
      const reason = `answered ${reply.status}`;
      return [
        {
          reason,
          detail: `${request.operation}: ${request.method} ${request.path} ${reply.text.slice(0, 200)}`,
          at: sentAt,
        },
      ];
    });
  },
};

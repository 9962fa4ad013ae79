import {
  type Change,
  downtimeIn,
  type History,
  objectIn,
  type SubmissionSeen,
  textOf,
  type UploadSeen,
} from './history.ts';
import { DAY_MS, MINUTE_MS, SWEPT_MS } from './rule.ts';

/** From when on a submission may be gone, and by when and how it has to be; undefined where it may not, or need not. */
export function removalOf(history: History, submission: SubmissionSeen): Removal {
  const removals: Record<string, Change[]> = {
    deleted: submission.deleted,
    'deleted with its form': formRemovals(history, submission),
    'erased by a value': erasuresOf(history, submission),
    expired: expiriesOf(history, submission),
  };
  const changes = Object.values(removals).flat();
  // A repetition that comes later is new, since the idempotency key went with it.
  const isRepeated = submission.calls.some(({ doneAt = Number.POSITIVE_INFINITY }) =>
    changes.some(({ from }) => doneAt >= from),
  );
  const sure = Object.entries(isRepeated ? {} : removals)
    .flatMap(([how, each]) =>
      each.flatMap((change) => (change.sure === undefined ? [] : { how, at: change.sure })),
    )
    .sort((a, b) => a.at - b.at)[0];
  return {
    from: changes.length === 0 ? undefined : Math.min(...changes.map(({ from }) => from)),
    sure: sure?.at,
    how: sure?.how ?? '',
  };
}

/** What is left of a deleted form goes in the background. */
function formRemovals(history: History, { form }: SubmissionSeen): Change[] {
  return (form?.deleted ?? []).map(({ from, sure }) => ({
    from,
    sure: sure === undefined ? undefined : sure + SWEPT_MS + downtimeIn(history, sure, sure + DAY_MS),
  }));
}

/** Erasures by a value that the documentation promises to find, and those by one that may be found. */
function erasuresOf(history: History, submission: SubmissionSeen): Change[] {
  return history.erasures.flatMap(({ value, from, sure }) => {
    const places = placesOf(history, submission, value);
    if (places.length === 0 || submission.firstSentAt > (sure ?? Number.POSITIVE_INFINITY)) return [];
    const isCertain = places.includes('text') && isStoredBefore(submission, from);
    return [{ from, sure: isCertain ? sure : undefined }];
  });
}

/** Whether a submission was stored before, and by no later call again. */
export function isStoredBefore({ ackedAt, isOpen, lastDoneAt }: SubmissionSeen, at: number): boolean {
  if (ackedAt === undefined || ackedAt >= at) return false;
  return !isOpen || (lastDoneAt !== undefined && lastDoneAt + MINUTE_MS < at);
}

/** Where a submission holds a value. */
export function placesOf(history: History, submission: SubmissionSeen, value: string): Place[] {
  const { body, key, calls } = submission;
  const wanted = value.trim().toLowerCase();
  const places = new Set<Place>();
  const look = (part: unknown): void => {
    if (typeof part === 'string' && part.toLowerCase() === wanted) places.add('text');
    else if (typeof part === 'string' && part.trim().toLowerCase() === wanted) places.add('untrimmed text');
    else if (typeof part === 'number' && String(part) === wanted) places.add('number');
    else if (typeof part === 'object' && part !== null) Object.values(part).forEach(look);
  };
  look(objectIn(body.answers));
  const source = typeof body.source === 'string' ? body.source.trim().toLowerCase() : undefined;
  if (source === wanted) places.add('source');
  if (key?.toLowerCase() === wanted) places.add('idempotency key');
  for (const { request } of calls) {
    const sent = typeof request.body === 'string' ? new URLSearchParams(textOf(request.body)) : undefined;
    for (const given of sent?.values() ?? []) look(given);
  }
  if (uploadsOf(history, submission).some(({ name }) => name.toLowerCase() === wanted))
    places.add('file name');
  return [...places];
}

/** The files that a submission's answers name. */
export function uploadsOf({ uploads }: Pick<History, 'uploads'>, { body }: SubmissionSeen): UploadSeen[] {
  const answers = JSON.stringify(objectIn(body.answers));
  return [...uploads.values()].filter(({ id }) => answers.includes(id));
}

/** When the retention time of its form's version in force at that time may have passed, and when it has. */
function expiriesOf(history: History, submission: SubmissionSeen): Change[] {
  const { form, firstSentAt, ackedAt } = submission;
  const versions = form?.versions ?? [];
  return versions.flatMap(({ from, sure, definition: { retentionDays } }, index) => {
    if (retentionDays === undefined) return [];
    const next = versions[index + 1];
    const keptMs = retentionDays * DAY_MS;
    const earliest = Math.max(from, firstSentAt + keptMs);
    if (earliest > (next?.sure ?? Number.POSITIVE_INFINITY)) return [];
    const after = Math.max(sure ?? Number.POSITIVE_INFINITY, (ackedAt ?? Number.POSITIVE_INFINITY) + keptMs);
    const latest = after + SWEPT_MS + downtimeIn(history, after, after + DAY_MS);
    const isCertain = Number.isFinite(latest) && latest < (next?.from ?? Number.POSITIVE_INFINITY);
    return [{ from: earliest, sure: isCertain ? latest : undefined }];
  });
}

/** Where somebody can be named in a submission. */
export type Place = 'text' | 'untrimmed text' | 'number' | 'source' | 'idempotency key' | 'file name';

type Removal = { from: number | undefined; sure: number | undefined; how: string };

import type { EndFacts } from './end-facts.ts';
import { MARK } from './history.ts';
import { isStoredBefore, type Place, placesOf, removalOf, uploadsOf } from './removals.ts';
import { HOUR_MS, type Rule, UNDER_WAY_MS } from './rule.ts';

/** Of what was erased or has expired nothing is anywhere: no row, no mail or webhook that comes later. */
export const nothingOfRemoved: Rule = {
  name: 'nothing of what was removed',
  find(history, { texts, now }) {
    const tables = new Map<string, Set<string>>();
    for (const { table, text } of texts) {
      for (const mark of text.match(MARK) ?? []) tables.set(mark, (tables.get(mark) ?? new Set()).add(table));
    }
    return [...history.submissions.values()].flatMap(({ mark, ...submission }) => {
      const { sure } = removalOf(history, { mark, ...submission });
      // A call without a reply may store it again, once the key is gone with it.
      if (sure === undefined || submission.isOpen) return [];
      const rows = now > sure ? [...(tables.get(mark) ?? [])] : [];
      const late = sure + UNDER_WAY_MS;
      const hit = history.hits.find(({ at, body }) => at > late && body.includes(mark));
      const mail = history.mails.find(({ at, text, isTaken }) => isTaken && at > late && text.includes(mark));
      return [
        ...rows.map((table) => ({ reason: `a row in ${table}`, detail: mark })),
        ...(hit
          ? [{ reason: 'a webhook came later', detail: `${mark} at ${hit.receiver}`, at: hit.at }]
          : []),
        ...(mail
          ? [{ reason: 'a mail came later', detail: `${mark} to ${mail.to.join()}`, at: mail.at }]
          : []),
      ];
    });
  },
};

/** An erasure by a value leaves no submission that holds it, wherever and however written. */
export const erasesEverywhere: Rule = {
  name: 'erases a value everywhere',
  find(history, { statuses }) {
    return history.erasures.flatMap(({ value, from, sure }) => {
      if (sure === undefined) return [];
      return [...history.submissions.values()].flatMap((submission) => {
        if (!isStoredBefore(submission, from)) return [];
        const isLeft = [...submission.ids.keys()].some((id) => statuses.get(id) === 200);
        const [place] = placesOf(history, submission, value);
        if (!isLeft || place === undefined) return [];
        return [{ reason: `left as ${reasonOf(place)}`, detail: `${value}: ${submission.mark}`, at: sure }];
      });
    });
  },
};

function reasonOf(place: Place): string {
  return place === 'text' ? 'an answer' : place;
}

/** A file goes with its submission, and an hour after it came without one; none stays that nobody knows of. */
export const noFileIsOrphaned: Rule = {
  name: 'no file is orphaned',
  find(history, { files, uploadRows, now }) {
    const removed = new Map(
      [...history.submissions.values()].flatMap((submission) => {
        const { sure = Number.POSITIVE_INFINITY, how } = removalOf(history, submission);
        const isGone = sure < now && !submission.isOpen;
        return isGone ? uploadsOf(history, submission).map(({ id }) => [id, how] as const) : [];
      }),
    );
    return [...files.keys()].flatMap((id) => {
      const how = removed.get(id);
      if (how !== undefined) return [{ reason: `of a submission that was ${how}`, detail: id }];
      if (!uploadRows.has(id)) return [{ reason: 'without a row', detail: id }];
      const { doneAt = now } = history.uploads.get(id) ?? {};
      const isUnclaimed = uploadRows.get(id) === undefined && doneAt + 3 * HOUR_MS < now;
      return isUnclaimed ? [{ reason: 'without a submission', detail: id }] : [];
    });
  },
};

/** A file is there as long as its submission is. */
export const filesAreKept: Rule = {
  name: 'files are kept',
  find(history, { files, statuses }: EndFacts) {
    return [...history.submissions.values()].flatMap((submission) => {
      const isThere = [...submission.ids.keys()].some((id) => statuses.get(id) === 200);
      const lost = isThere ? uploadsOf(history, submission).filter(({ id }) => !files.has(id)) : [];
      return lost.map(({ id }) => ({ reason: 'it is gone', detail: `${id} of ${submission.mark}` }));
    });
  },
};

import { removalOf } from './removals.ts';
import { DAY_MS, type Rule } from './rule.ts';

/** What the counters of a form say is how many rows it has. */
export const countersEqualRows: Rule = {
  name: 'counters equal rows',
  find: (_, { counts }) =>
    counts.flatMap(({ formId, counted, stored }) =>
      counted === stored
        ? []
        : [{ reason: 'they differ', detail: `${formId}: ${counted} counted, ${stored} stored` }],
    ),
};

/** When nothing happens any more, nothing waits but mails for owners who have not confirmed. */
export const queuesAreEmpty: Rule = {
  name: 'queues are empty when quiet',
  find: (_, { queue, waitingEvents }) => [
    ...queue
      .filter(({ error }) => !/has not confirmed|was asked to confirm/.test(error))
      .map(({ id, channel, kind, error }) => ({
        reason: `a ${channel} waits`,
        detail: `${id} ${kind}: ${error}`,
      })),
    ...(waitingEvents > 0 ? [{ reason: 'events wait for their mails', detail: `${waitingEvents}` }] : []),
  ],
};

/** Of what died, tables keep a fifth at most until the next sweeps; what was removed a day ago was written anew. */
export const deadIsVacuumed: Rule = {
  name: 'what is dead is vacuumed',
  find(history, { dead, texts, now }) {
    const isRewritten = texts.some(({ text }) => text.includes('"rewritten_at"'));
    const removed = [...history.submissions.values()].find(
      (submission) => (removalOf(history, submission).sure ?? now) < now - 2 * DAY_MS,
    );
    return [
      ...dead
        .filter(({ dead, live }) => dead > DEAD_SINCE && dead > (dead + live) / 4)
        .map(({ table, ...of }) => ({ reason: `not ${table}`, detail: JSON.stringify(of) })),
      ...(removed !== undefined && !isRewritten
        ? [{ reason: 'nothing was written anew', detail: `${removed.mark} was removed` }]
        : []),
    ];
  },
};

/** What dies between the last sweeps and the end. */
const DEAD_SINCE = 200;

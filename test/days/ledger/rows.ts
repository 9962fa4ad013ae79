import type { Rule } from './rule.ts';

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

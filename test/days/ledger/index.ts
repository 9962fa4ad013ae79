import type { Finding, Ledger } from '../world/types.ts';
import { calledBackOnce, remindedUntilTheEnd } from './asks.ts';
import { endedOpensNothing } from './credentials.ts';
import { type EndFacts, readEnd } from './end-facts.ts';
import { erasesEverywhere, filesAreKept, noFileIsOrphaned, nothingOfRemoved } from './erasure.ts';
import { type History, readHistory } from './history.ts';
import {
  mailsAtLeastOnce,
  mailsAtMostOnce,
  nothingAfterHandOver,
  nothingAfterStop,
  ownersAreAsked,
} from './mails.ts';
import { countersEqualRows, deadIsVacuumed, queuesAreEmpty } from './rows.ts';
import type { Rule } from './rule.ts';
import {
  acknowledgedIsKept,
  closedTakesNothing,
  failuresAreTransient,
  limitsAreExact,
  oneSubmissionPerKey,
  openTakesAll,
  removedIsNotRead,
} from './submissions.ts';
import { deliveredAtLeastOnce, nothingAfterEnd, oneEventId, signaturesAreValid } from './webhooks.ts';

/** Every promise of the service that was not kept, by what the outside saw. */
export const findLosses: Ledger = async (observed, end) => {
  const history = readHistory(observed);
  return judge(history, await readEnd(end, history));
};

/** The rules, each over the whole of the days. */
export function judge(history: History, end: EndFacts): Finding[] {
  return rules.flatMap((rule) => rule.find(history, end).map((each) => ({ rule: rule.name, ...each })));
}

export const rules: readonly Rule[] = [
  oneSubmissionPerKey,
  acknowledgedIsKept,
  removedIsNotRead,
  openTakesAll,
  closedTakesNothing,
  limitsAreExact,
  failuresAreTransient,
  oneEventId,
  signaturesAreValid,
  deliveredAtLeastOnce,
  nothingAfterEnd,
  remindedUntilTheEnd,
  calledBackOnce,
  mailsAtMostOnce,
  mailsAtLeastOnce,
  ownersAreAsked,
  nothingAfterStop,
  nothingAfterHandOver,
  nothingOfRemoved,
  erasesEverywhere,
  noFileIsOrphaned,
  filesAreKept,
  countersEqualRows,
  queuesAreEmpty,
  deadIsVacuumed,
  endedOpensNothing,
];

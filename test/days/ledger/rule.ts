import { type Finding, LONGEST_UNSWEPT_MS } from '../world/types.ts';
import type { EndFacts } from './end-facts.ts';
import type { History } from './history.ts';

/** A promise of the service. `find` returns each time that it was not kept; its reasons are fixed words. */
export type Rule = {
  name: string;
  find(history: History, end: EndFacts): Omit<Finding, 'rule'>[];
};

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/**
 * What was under way when something ended may still arrive: a claim waits and is attempted for less than its lease of a
 * minute, twice that where a process died and another took it over.
 */
export const UNDER_WAY_MS = 2 * MINUTE_MS;

/** How long after its retention time something is gone: when the world sweeps next, a batch at a time. */
export const SWEPT_MS = LONGEST_UNSWEPT_MS + MINUTE_MS;

/** The last of the documented attempts, at the earliest and (with its jitter) at the latest, from the first one on. */
export const LAST_ATTEMPT_MS = { least: 31 * HOUR_MS, most: 38 * HOUR_MS };

/** How often a delivery is attempted, as documented. */
export const ATTEMPTS = 8;

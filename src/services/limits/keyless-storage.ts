import type { HandlerContext } from '@connectrpc/connect';
import { LRUCache } from 'lru-cache';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { limited } from '../../domain/errors/failure.ts';
import { HOUR_MS } from '../../domain/limits/limits.ts';
import { createWindowCounter } from '../../domain/limits/window-counter.ts';
import { callerIfAny, clientAddressOf } from '../../rpc/context.ts';
import type { Database } from '../../store/database/database.ts';
import { sumKeylessBytes } from '../../store/keyless-storage.ts';

/**
 * Bounds what is stored for callers without a key: `hourlyBytes` of each client address, by this process, and
 * `projectBytes` in all forms of a project, by what the database has counted with each row. What comes with a key of
 * the project counts in neither.
 *
 * Each total is read again after a few seconds: it may be passed by what is in flight, here and in other processes.
 */
export function createKeylessStorage(options: KeylessStorageOptions): KeylessStorage {
  const { database, now, hourlyBytes, projectBytes } = options;
  const hourly = createWindowCounter({ now, windowMs: HOUR_MS });
  const totals = new LRUCache<string, Total>({ max: MAX_TOTALS });

  async function totalOf(projectId: string): Promise<Total> {
    const known = totals.get(projectId);
    const age = known === undefined ? Number.NaN : now() - known.readAt;
    if (known !== undefined && age >= 0 && age < TOTAL_AGE_MS) return known;
    const readAt = now();
    const total = { bytes: await sumKeylessBytes(database, projectId), readAt };
    totals.set(projectId, total);
    return total;
  }

  function countHourly(address: string, bytes: number): void {
    if (hourlyBytes === undefined) return;
    const network = networkOf(address);
    const { hits, endsInMs } = hourly.count(network, bytes);
    if (hits < hourlyBytes || (bytes > 0 && hits === hourlyBytes)) return;
    hourly.takeBack(network, bytes);
    const message = `Too much without an API key: at most ${inMib(hourlyBytes)} MiB an hour`;
    throw limited('keyless_bytes', message, endsInMs / 1000);
  }

  async function admit(projectId: string, address: string | undefined, bytes: number): Promise<void> {
    if (address !== undefined) countHourly(address, bytes);
    try {
      const total = await totalOf(projectId);
      if (total.bytes + Math.max(1, bytes) > projectBytes) throw fullProject(projectBytes);
      total.bytes += bytes;
    } catch (error) {
      if (address !== undefined) hourly.takeBack(networkOf(address), bytes);
      throw error;
    }
  }

  return {
    reserve(projectId, address) {
      let held = 0;
      return {
        async add(bytes) {
          await admit(projectId, address, bytes);
          held += bytes;
        },
        keep() {
          held = 0;
        },
        [Symbol.dispose]() {
          if (address !== undefined) hourly.takeBack(networkOf(address), held);
          const total = totals.get(projectId);
          if (total !== undefined) total.bytes = Math.max(0, total.bytes - held);
        },
      };
    },
  };
}

/** The client's address, if a call came without a key of the project: then it is a stranger to it. */
export function strangerAddress(call: Pick<HandlerContext, 'values'>, projectId: string): string | undefined {
  const caller = callerIfAny(call);
  return caller?.keyId !== undefined && caller.projectId === projectId ? undefined : clientAddressOf(call);
}

function fullProject(projectBytes: number) {
  const message = `The project holds as much without an API key as it may: ${inMib(projectBytes)} MiB`;
  return limited('keyless_bytes_of_project', message, HOUR_MS / 1000);
}

function inMib(bytes: number): number {
  return Math.round(bytes / 1024 ** 2);
}

/** What other processes add is seen by then. */
const TOTAL_AGE_MS = 10_000;

/** Strangers reach the projects of all forms whose ids they know. */
const MAX_TOTALS = 10_000;

type Total = { bytes: number; readAt: number };

export type KeylessStorage = {
  /**
   * Takes bytes as they come off what a project and an address have left, and gives them back at the end of its scope
   * unless they are kept. To add some throws RATE_LIMITED when they are too many, and 0 asks whether there is anything
   * left. Without an address only the project's are counted.
   */
  reserve(projectId: string, address: string | undefined): Reservation;
};

export type Reservation = Disposable & { add(bytes: number): Promise<void>; keep(): void };

type KeylessStorageOptions = {
  database: Database;
  now: () => number;
  /** Undefined: any number. */
  hourlyBytes: number | undefined;
  projectBytes: number;
};

import { statfs } from 'node:fs/promises';
import type { DescMethod } from '@bufbuild/protobuf';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { storedBy } from '../../domain/methods.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Metrics } from '../../telemetry/metrics.ts';

/**
 * Watches how much of the disk with `folder` is free, once a second. Less than `floorBytes` is too little; if that
 * is undefined, less than 1 GiB or 5 % of the disk, whichever is less. A folder that can't be measured counts
 * as one with enough.
 */
export async function watchDiskSpace(options: DiskSpaceOptions): Promise<DiskSpaceWatch> {
  const { folder, floorBytes, log } = options;
  let isLow = false;
  let freeBytes: number | undefined;

  async function measure(): Promise<void> {
    const facts = await measureDisk(folder, floorBytes).catch(() => undefined);
    freeBytes = facts?.freeBytes;
    const wasLow = isLow;
    isLow = facts !== undefined && facts.freeBytes < facts.floorBytes;
    if (isLow === wasLow) return;
    if (isLow)
      log.error(
        { folder, ...facts },
        'The disk is almost full: new data is refused until there is more space.',
      );
    else log.info({ folder, ...facts }, 'The disk has enough space again; new data is accepted.');
  }

  await measure();
  const timer = setInterval(() => void measure(), MEASURE_EVERY_MS).unref();
  return {
    isLow: () => isLow,
    freeBytes: () => freeBytes,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** What is free on the disk of a folder, and how much of it is too little: as `watchDiskSpace` says. */
export async function measureDisk(folder: string, floorBytes?: number): Promise<DiskFacts> {
  const { bavail, bsize, blocks } = await statfs(folder);
  return {
    freeBytes: bavail * bsize,
    floorBytes: floorBytes ?? Math.min(DEFAULT_FLOOR, blocks * bsize * DEFAULT_SHARE),
  };
}

const DEFAULT_FLOOR = 1024 ** 3;
const DEFAULT_SHARE = 0.05;

/** A disk that takes 200 MB a second has no less than 800 MB left when it is noticed. */
const MEASURE_EVERY_MS = 1_000;

/**
 * Refuses calls that store something while the disk is low; what reads or removes goes on. On a server's database,
 * whose disk can't be seen from here, only files are refused.
 */
export function refuseWhileLow(
  disk: DiskSpace,
  engine: 'pglite' | 'postgres',
  metrics?: Pick<Metrics, 'onLimit'>,
): (method: DescMethod) => void {
  return (method) => {
    if (!disk.isLow() || !storesHere(method, engine)) return;
    metrics?.onLimit('disk');
    const facts = { retryAfter: RETRY_AFTER_SECONDS };
    throw failed(Reason.UNAVAILABLE, `${LOW_DISK}: nothing new is stored for now`, facts);
  };
}

/** Why nothing new is stored. */
const LOW_DISK = 'The disk of the service is almost full';

function storesHere(method: DescMethod, engine: 'pglite' | 'postgres'): boolean {
  const stored = storedBy(method);
  return stored === 'files' || (stored === 'rows' && engine === 'pglite');
}

/** Somebody has to make room. */
const RETRY_AFTER_SECONDS = 60;

/** Less than `floorBytes` is too little. */
export type DiskFacts = { freeBytes: number; floorBytes: number };

export type DiskSpace = {
  /** Whether so little is left that nothing new should be stored. */
  isLow: () => boolean;
};

export type DiskSpaceWatch = DiskSpace &
  Disposable & {
    /** Undefined if the folder can't be measured. */
    freeBytes: () => number | undefined;
  };

type DiskSpaceOptions = { folder: string; floorBytes?: number | undefined; log: Log };

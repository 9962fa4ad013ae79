import { setTimeout as sleep } from 'node:timers/promises';
import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import { networkOf } from '../domain/addresses/ip-address.ts';
import { notFound } from '../domain/errors/failure.ts';
import { clientAddressOf } from '../rpc/context.ts';
import type { ServiceContext } from './context.ts';
import { createFreshCache } from './fresh-cache.ts';
import { ALL, limitCallsAtOnce } from './limits/calls-at-once.ts';

/**
 * The health protocol of gRPC: the service serves while its database answers, it can store what comes, and it is not
 * about to stop.
 *
 * Asked about one of `services` by name, it answers for all of them: all need the same database. The name `disk`
 * asks whether there is enough free space, also where that does not decide the rest, and `log` whether the lines of the
 * log are written.
 */
export function healthService(
  { database, disk, logOutput, now, draining, stopping }: HealthOptions,
  services: readonly DescService[],
): ServiceImpl<typeof Health> {
  const names = new Set(['', 'disk', 'log', ...services.map(({ typeName }) => typeName)]);
  const isReady = () => database.isReady();
  const lately = createFreshCache({ load: isReady, now, capacity: 1 });
  const watches = limitCallsAtOnce('watches', (client: string) => [
    { key: client, most: MAX_WATCHES_PER_CLIENT, who: 'Your network has' },
    { key: ALL, most: MAX_WATCHES, who: 'This service has' },
  ]);

  async function statusOf(service: string, ready: () => boolean | Promise<boolean>): Promise<Status> {
    if (service === 'disk') return disk.isLow() ? Status.NOT_SERVING : Status.SERVING;
    if (service === 'log') return logOutput?.isDropping === true ? Status.NOT_SERVING : Status.SERVING;
    if (draining.aborted) return Status.NOT_SERVING;
    const canStore = database.engine === 'postgres' || !disk.isLow();
    return canStore && (await ready()) ? Status.SERVING : Status.NOT_SERVING;
  }

  return {
    async check({ service }) {
      if (!names.has(service)) throw notFound('service');
      return { status: await statusOf(service, isReady) };
    },

    async *watch({ service }, call) {
      using _ = watches.enter(networkOf(clientAddressOf(call)));
      const ended = AbortSignal.any([call.signal, stopping]);
      let said: Status | undefined;
      while (!ended.aborted) {
        const status = names.has(service)
          ? await statusOf(service, () => lately.get(''))
          : Status.SERVICE_UNKNOWN;
        if (status !== said) yield { status };
        said = status;
        await sleep(CHECK_EVERY_MS, undefined, { signal: ended }).catch(() => undefined);
      }
      if (!call.signal.aborted && said === Status.SERVING) yield { status: Status.NOT_SERVING };
    },
  };
}

const CHECK_EVERY_MS = 1_000;

/** Anybody may watch: a client of gRPC has one for each service that it calls. */
const MAX_WATCHES = 1_000;
const MAX_WATCHES_PER_CLIENT = 100;

type HealthOptions = Pick<
  ServiceContext,
  'database' | 'disk' | 'logOutput' | 'now' | 'draining' | 'stopping'
>;

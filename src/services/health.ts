import type { ServiceImpl } from '@connectrpc/connect';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import type { ServiceOptions } from './context.ts';

/**
 * The health protocol of gRPC: the service serves while its database answers and it can store what comes.
 *
 * Asked about one service by name, it answers for all of them: all need the same database. The name `disk` asks
 * whether there is enough free space, also where that does not decide the rest.
 */
export function healthService({ database, disk }: HealthOptions): ServiceImpl<typeof Health> {
  return {
    async check({ service }) {
      if (service === 'disk') return { status: disk.isLow() ? Status.NOT_SERVING : Status.SERVING };
      const canStore = database.engine === 'postgres' || !disk.isLow();
      return { status: canStore && (await database.isReady()) ? Status.SERVING : Status.NOT_SERVING };
    },
  };
}

type HealthOptions = Pick<ServiceOptions, 'database' | 'disk'>;

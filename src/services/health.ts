import type { ServiceImpl } from '@connectrpc/connect';
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.js';
import type { Database } from '../store/database/database.ts';

/**
 * The health protocol of gRPC: the service serves while its database answers.
 *
 * Asked about one service by name, it answers for all of them: all need the same database.
 */
export function healthService({ database }: { database: Database }): ServiceImpl<typeof Health> {
  return {
    async check() {
      return { status: (await database.isReady()) ? Status.SERVING : Status.NOT_SERVING };
    },
  };
}

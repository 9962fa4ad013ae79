import type { ServiceImpl } from '@connectrpc/connect';
import type { AdminService } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { rewriteErased, vacuumTables } from '../../store/database/vacuum.ts';
import type { Log } from '../../telemetry/log.ts';
import { type AdminContext, refusal } from './context.ts';

/** Vacuums an embedded database, while everything waits. */
export function adminVacuum({ database }: AdminContext, log: Log) {
  return {
    async vacuum({ full, ifErased }) {
      if (database.engine !== 'pglite') {
        throw refusal('PostgreSQL vacuums its tables by itself: see autovacuum, and docs/privacy.md.');
      }
      if (!full) await vacuumTables(database, { isQuiet: true, log });
      return { tables: full ? await rewriteErased(database, { log, force: !ifErased }) : [] };
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

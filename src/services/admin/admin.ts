import { userInfo } from 'node:os';
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
  type ServiceImpl,
} from '@connectrpc/connect';
import { AdminService } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import { rewriteErased, vacuumTables } from '../../store/database/vacuum.ts';
import type { Log } from '../../telemetry/log.ts';
import { type AdminContext, refusal } from './context.ts';
import { adminKeys } from './keys.ts';
import { adminProjects } from './projects.ts';

/** The admin of the process that has the database open, such as that of a command. It takes no snapshots. */
export function createAdmin(context: AdminContext, log: Log = console): Admin {
  const transport = createRouterTransport(
    ({ service }) => service(AdminService, adminService(context, log)),
    {
      router: { interceptors: [refuse(log)] },
      transport: { interceptors: [explain] },
    },
  );
  return createClient(AdminService, transport);
}

/** What whoever holds the machine may do without a key, on an open database. */
export function adminService(context: AdminContext, log: Log) {
  const { database } = context;
  return {
    ...adminKeys(context),
    ...adminProjects(context),

    /** Vacuums an embedded database, while everything waits. */
    async vacuum({ full, ifErased }) {
      if (database.engine !== 'pglite') {
        throw refusal('PostgreSQL vacuums its tables by itself: see autovacuum, and docs/privacy.md.');
      }
      if (!full) await vacuumTables(database, { isQuiet: true, log });
      return { tables: full ? await rewriteErased(database, { log, force: !ifErased }) : [] };
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

/** For the service's side: tells callers what is wrong with a request, and the log alone what is wrong with the service. */
export function refuse(log: Log): Interceptor {
  return withErrors((error, operation) => {
    if (error instanceof ConnectError) return error;
    if (error instanceof DatabaseUnavailable) return refusal(error.message);
    log.error({ err: error, operation }, 'An admin command failed.');
    return new ConnectError('The service could not do that; its log says why.', Code.Unknown);
  });
}

/** For the caller's side: says what fails in words for whoever typed the command. */
export const explain: Interceptor = withErrors((error, operation) => {
  const { code } = ConnectError.from(error);
  // Services that are older than this protocol answer with something else, which is an internal error.
  const isUnknown = code === Code.Unimplemented || code === Code.Internal;
  return isUnknown ? refusal(unknownOperation(operation)) : ConnectError.from(error);
});

/** What a command is told that another version of the service does not understand. */
export function unknownOperation(operation: string): string {
  return `The service that runs knows no ${operation}: it is of another version.`;
}

/** Replaces what a call throws, at once or within a stream. A stream ends when its caller is gone. */
function withErrors(describe: (error: unknown, operation: string) => Error): Interceptor {
  return (next) => async (request) => {
    const rethrow = (error: unknown): never => {
      throw describe(error, request.method.localName);
    };
    const response = await next(request).catch(rethrow);
    if (!response.stream) return response;
    return { ...response, message: guarded(response.message, request.signal, rethrow) };
  };
}

async function* guarded<T>(steps: AsyncIterable<T>, signal: AbortSignal, rethrow: (error: unknown) => never) {
  try {
    for await (const step of steps) {
      signal.throwIfAborted();
      yield step;
    }
  } catch (error) {
    rethrow(error);
  }
}

/** Who runs this process, by name if the system knows one. */
export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}

/** The admin's operations, on a database or through the socket of the process that has it open. */
export type Admin = Client<typeof AdminService>;

import { userInfo } from 'node:os';
import { durationMs } from '@bufbuild/protobuf/wkt';
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
  type ServiceImpl,
} from '@connectrpc/connect';
import {
  AdminService,
  RevokeKeyRequest_Children as Children,
  FailingWebhookSchema,
} from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { INSTALLATION } from '../../domain/audit.ts';
import { pageSizes } from '../../domain/limits/limits.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { DEFAULT_PROJECT } from '../../domain/scopes.ts';
import { DatabaseUnavailable } from '../../store/database/faults.ts';
import { rewriteErased, vacuumTables } from '../../store/database/vacuum.ts';
import { findKeyOfAny, insertKey, type Key, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { projectNames } from '../../store/projects/projects.ts';
import { listFailingWebhooks } from '../../store/webhooks/failing-webhooks.ts';
import type { Log } from '../../telemetry/log.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { keyToMessage, newKey, newKeyProblems, revokeKeys } from '../keys/keys.ts';
import { signOutEverywhere } from '../owners/owner-sessions.ts';
import {
  type AdminContext,
  adminEntry,
  existingProject,
  pagesOf,
  refusal,
  refuseProblems,
} from './context.ts';
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

/** What a person with shell access may do without a key, on an open database. */
export function adminService(context: AdminContext, log: Log) {
  const { database, auditWriter, now, onChange } = context;
  return {
    ...adminProjects(context),

    async createKey({ name, scopes, project: projectName, expiresIn }) {
      const wanted = { name, scopes, project: projectName, expiresIn };
      refuseProblems(newKeyProblems(wanted, { project: DEFAULT_PROJECT, scopes: ['*'] }, now()));
      const project = await projectNamed(database, projectName, now());
      const lifeMs = expiresIn && durationMs(expiresIn);
      const { key, secret } = newKey({ project, name, scopes, expiresIn: lifeMs }, now());
      await database.transaction(async (tx) => {
        await insertKey(tx, key);
        const about = { projectId: project.id, resource: key.id, detail: scopes.join(',') };
        await auditWriter.store(tx, adminEntry(context, { action: 'key.created', ...about }));
      });
      onChange();
      return { key: keyToMessage(key, projectName), secret };
    },

    async *listKeys({ project: name }) {
      const project = name === '' ? undefined : await existingProject(database, name);
      const pages = pagesOf((cursor) => {
        const page = { limit: pageSizes.max, cursor };
        return project === undefined ? listKeysOfAll(database, page) : listKeys(database, project.id, page);
      });
      for await (const keys of pages) {
        yield { keys: await withProjects(keys) };
      }
    },

    async revokeKey({ keyId, children }) {
      if ((await findKeyOfAny(database, keyId)) === null) throw refusal(`There is no key ${keyId}.`);
      const revoked = await database.transaction(async (tx) => {
        const advice = 'give --revoke-children or --keep-children';
        const keys = await revokeKeys(tx, keyId, fates[children], advice);
        for (const { id: resource, projectId } of keys) {
          await auditWriter.store(tx, adminEntry(context, { action: 'key.revoked', projectId, resource }));
        }
        return keys;
      });
      onChange();
      return { keys: await withProjects(revoked) };
    },

    async signOutOwner({ address }) {
      const owner = addressKey(address);
      const sessions = await database.transaction(async (tx) => {
        const ended = await signOutEverywhere(tx, owner);
        const about = { action: 'owner.signed_out', projectId: INSTALLATION, detail: 'everywhere' } as const;
        await auditWriter.store(tx, adminEntry(context, about));
        return ended;
      });
      return { sessions };
    },

    async *listFailingWebhooks() {
      for await (const webhooks of pagesOf((cursor) =>
        listFailingWebhooks(database, { limit: pageSizes.max, cursor }),
      )) {
        const names = await projectNames(database, [...new Set(webhooks.map(({ projectId }) => projectId))]);
        yield {
          webhooks: webhooks.map(({ projectId, ...webhook }) =>
            rowToMessage(FailingWebhookSchema, webhook, { project: names.get(projectId) ?? projectId }),
          ),
        };
      }
    },

    /** Vacuums an embedded database, while everything waits. */
    async vacuum({ full, ifErased }) {
      if (database.engine !== 'pglite') {
        throw refusal('PostgreSQL vacuums its tables by itself: see autovacuum, and docs/privacy.md.');
      }
      if (!full) await vacuumTables(database, { isQuiet: true, log });
      return { tables: full ? await rewriteErased(database, { log, force: !ifErased }) : [] };
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;

  async function withProjects(keys: Key[]) {
    const names = await projectNames(database, [...new Set(keys.map(({ projectId }) => projectId))]);
    return keys.map((key) => keyToMessage(key, names.get(key.projectId) ?? key.projectId));
  }
}

const fates = {
  [Children.UNSPECIFIED]: 'refuse',
  [Children.REVOKE]: 'revoke',
  [Children.KEEP]: 'keep',
} as const;

/**
 * For the service's side: tells callers what is wrong with a request, and the log alone what is wrong with the
 * service.
 */
export function refuse(log: Log): Interceptor {
  return withErrors((error, operation) => {
    if (error instanceof ConnectError) return error;
    if (error instanceof DatabaseUnavailable) return refusal(error.message);
    log.error({ err: error, operation }, 'An admin command failed.');
    return new ConnectError('The service could not do that; its log says why.', Code.Unknown);
  });
}

/** For the caller's side: says what fails in words for the person who typed the command. */
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

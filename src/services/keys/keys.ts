import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type {
  CreateKeyRequest,
  CreateKeyResponseSchema,
  KeySchema,
  KeysService,
} from '../../../gen/forms/v1/keys_pb.js';
import { isId, newId } from '../../domain/ids.ts';
import { pageSizes } from '../../domain/limits.ts';
import { scopes as allScopes, isScope, withinScopes } from '../../domain/scopes.ts';
import { hashSecret, newApiKey } from '../../domain/secrets.ts';
import { textProblem } from '../../domain/text.ts';
import { oneOf } from '../../domain/violation-messages.ts';
import type { Violation } from '../../domain/violations.ts';
import { type Caller, callerOf, DEFAULT_PROJECT } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import type { Database } from '../../store/database/database.ts';
import { deleteKey, findKey, insertFirstKey, insertKey, type Key, listKeys } from '../../store/keys.ts';
import type { ServiceContext } from '../context.ts';
import { makeOnce } from '../make-once.ts';
import { pageRequestOf, secondsProblems } from '../request-values.ts';
import { projectNamed } from './key-reader.ts';

/** Makes, lists and revokes API keys. */
export function keysService(context: ServiceContext): ServiceImpl<typeof KeysService> {
  const { database, keys } = context;
  return {
    createKey: (request, call) => createKey(context, request, call),

    async listKeys(request, call) {
      const { projectId, project } = callerOf(call);
      const page = await listKeys(database, projectId, pageRequestOf(request, 'key', pageSizes.max));
      return {
        keys: page.items.map((key) => keyToMessage(key, project)),
        nextPageToken: page.nextCursor ?? '',
      };
    },

    async deleteKey({ keyId }, call) {
      const { projectId } = callerOf(call);
      const found = isId('key', keyId) && (await deleteKey(database, projectId, keyId));
      if (!found) throw notFound('key');
      keys.forget();
      return {};
    },
  };
}

/**
 * Makes sure that an installation has a key: if there is none at all, one with every scope in the
 * default project. Of instances that start at once, one makes it.
 *
 * Returns the key's text if it was made here, to be shown this once; undefined if there is a key
 * already, or if `bootstrapKey` was registered, which its owner knows.
 */
export async function ensureFirstKey(
  { database, now }: { database: Database; now: () => number },
  bootstrapKey?: string,
): Promise<string | undefined> {
  const secret = bootstrapKey ?? newApiKey();
  const project = await projectNamed(database, DEFAULT_PROJECT, now());
  const made = await database.transaction((tx) =>
    insertFirstKey(tx, {
      id: newId('key', now()),
      projectId: project.id,
      name: 'first key',
      secretHash: hashSecret(secret),
      last4: secret.slice(-4),
      scopes: ['*'],
      createdAt: new Date(now()),
      expiresAt: null,
      lastUsedAt: null,
    }),
  );
  return made && bootstrapKey === undefined ? secret : undefined;
}

async function createKey(
  context: ServiceContext,
  request: CreateKeyRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof CreateKeyResponseSchema>> {
  const { database, now } = context;
  const { name, scopes } = request;
  const caller = callerOf(call);
  const project = request.project === '' ? caller.project : request.project;
  const violations = [
    ...nameProblems(name),
    ...scopeProblems(scopes, caller),
    ...projectProblems(project, caller),
    ...secondsProblems(request.expiresIn, 'expires_in', { min: 1, max: MAX_LIFE_SECONDS }),
  ];
  if (violations.length > 0) throw invalid(violations);

  const time = now();
  const secret = newApiKey();
  const key: Key = {
    id: newId('key', time),
    projectId:
      project === caller.project ? caller.projectId : (await projectNamed(database, project, time)).id,
    name,
    secretHash: hashSecret(secret),
    last4: secret.slice(-4),
    scopes,
    createdAt: new Date(time),
    expiresAt: request.expiresIn ? new Date(time + durationMs(request.expiresIn)) : null,
    lastUsedAt: null,
  };
  return makeOnce(context, call, {
    key: request.idempotencyKey,
    content: { name, scopes, project, expires_in: request.expiresIn ? durationMs(request.expiresIn) : null },
    async again(first) {
      const made = await findKey(database, key.projectId, first.id);
      if (made === null) throw notFound('key');
      return { key: keyToMessage(made, project), secret: first.secret };
    },
    async make(record) {
      await database.transaction(async (tx) => {
        await record(tx, { id: key.id, secret });
        await insertKey(tx, key);
      });
      return { key: keyToMessage(key, project), secret };
    },
  });
}

function nameProblems(name: string): Violation[] {
  const path = 'name';
  if (name === '') return [{ path, code: 'invalid_type', message: 'Required' }];
  const problem = textProblem(name);
  if (problem !== undefined) return [{ path, code: 'custom', message: problem }];
  if (name.length <= MAX_NAME_LENGTH) return [];
  return [{ path, code: 'too_big', message: `Expected at most ${MAX_NAME_LENGTH} characters` }];
}

function scopeProblems(scopes: string[], caller: Caller): Violation[] {
  if (scopes.length === 0) {
    return [{ path: 'scopes', code: 'too_small', message: 'Expected at least one scope' }];
  }
  if (scopes.length > allScopes.length) {
    return [{ path: 'scopes', code: 'too_big', message: `Expected at most ${allScopes.length} scopes` }];
  }
  return scopes.flatMap((scope, index): Violation[] => {
    const path = `scopes[${index}]`;
    if (!isScope(scope)) return [{ path, code: 'invalid_enum_value', message: oneOf(allScopes, scope) }];
    if (scopes.indexOf(scope) < index) return [{ path, code: 'custom', message: 'The scope is named twice' }];
    if (withinScopes([scope], caller.scopes)) return [];
    return [{ path, code: 'custom', message: `Your own key lacks the scope ${scope}` }];
  });
}

function projectProblems(project: string, caller: Caller): Violation[] {
  const path = 'project';
  if (project === caller.project) return [];
  if (!projectName.test(project)) {
    const message = "Expected 1 to 64 letters, digits, '.', '_' or '-'";
    return [{ path, code: 'invalid_string', message }];
  }
  if (caller.project === DEFAULT_PROJECT && caller.scopes.includes('*')) return [];
  const message = `Only a * key of the project ${DEFAULT_PROJECT} may name another project`;
  return [{ path, code: 'custom', message }];
}

function keyToMessage(key: Key, project: string): MessageInitShape<typeof KeySchema> {
  const { id, name, scopes, last4, createdAt, expiresAt, lastUsedAt } = key;
  return {
    id,
    name,
    scopes,
    project,
    last4,
    createTime: timestampFromDate(createdAt),
    ...(expiresAt !== null && { expireTime: timestampFromDate(expiresAt) }),
    ...(lastUsedAt !== null && { lastUseTime: timestampFromDate(lastUsedAt) }),
  };
}

const MAX_NAME_LENGTH = 200;

/** As PUBLIC_PROJECT. */
const projectName = /^[A-Za-z0-9._-]{1,64}$/;

/** A hundred years. Longer is most likely a mistake: a key without an end has no `expires_in`. */
const MAX_LIFE_SECONDS = 100 * 365 * 24 * 60 * 60;

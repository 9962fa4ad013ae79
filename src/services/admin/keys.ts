import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { z } from 'zod';
import { pageSizes } from '../../domain/limits/limits.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import { deleteKey, findKeyOfAny, insertKey, type Key, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { projectNames } from '../../store/projects/projects.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { newKey, newKeyProblems } from '../keys/keys.ts';
import { type AdminContext, AdminError, adminEntry, existingProject, refuseProblems } from './context.ts';
import type { keyPage, keyRequest, listRequest, madeKey, shownKey } from './messages.ts';

/** Makes, lists and revokes the keys of all projects. */
export function createAdminKeys(context: AdminContext): AdminKeys {
  const { database, auditWriter, now, onChange } = context;
  return {
    async createKey({ name, scopes, project: projectName, expiresIn }) {
      const seconds = expiresIn === null ? undefined : create(DurationSchema, { seconds: BigInt(expiresIn) });
      const wanted = { name, scopes, project: projectName, expiresIn: seconds };
      refuseProblems(newKeyProblems(wanted, { project: DEFAULT_PROJECT, scopes: ['*'] }));
      const project = await projectNamed(database, projectName, now());
      const lifeMs = expiresIn === null ? undefined : expiresIn * 1000;
      const { key, secret } = newKey({ project, name, scopes, expiresIn: lifeMs }, now());
      await database.transaction(async (tx) => {
        await insertKey(tx, key);
        const about = { projectId: project.id, resource: key.id, detail: scopes.join(',') };
        await auditWriter.store(tx, adminEntry(context, { action: 'key.created', ...about }));
      });
      onChange();
      return { key: shown(key, projectName), secret };
    },

    async listKeys({ project: name, cursor }) {
      const request = { limit: pageSizes.max, cursor };
      if (name === undefined) {
        const { items, nextCursor } = await listKeysOfAll(database, request);
        const names = await projectNames(database, [...new Set(items.map(({ projectId }) => projectId))]);
        return {
          items: items.map((key) => shown(key, names.get(key.projectId) ?? key.projectId)),
          nextCursor,
        };
      }
      const project = await existingProject(database, name);
      const { items, nextCursor } = await listKeys(database, project.id, request);
      return { items: items.map((key) => shown(key, name)), nextCursor };
    },

    async revokeKey({ id }) {
      const key = await findKeyOfAny(database, id);
      if (key === null) throw new AdminError(`There is no key ${id}.`);
      const { projectId } = key;
      await database.transaction(async (tx) => {
        if (!(await deleteKey(tx, projectId, id))) throw new AdminError(`There is no key ${id}.`);
        await auditWriter.store(tx, adminEntry(context, { action: 'key.revoked', projectId, resource: id }));
      });
      onChange();
      const names = await projectNames(database, [projectId]);
      return shown(key, names.get(projectId) ?? projectId);
    },
  };
}

function shown(key: Key, project: string): z.output<typeof shownKey> {
  const { id, name, scopes, last4, createdAt, expiresAt, lastUsedAt } = key;
  return {
    id,
    name,
    project,
    scopes,
    last4,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}

export type AdminKeys = {
  /** Makes a key with these scopes, and its project if there is none of that name. */
  createKey(request: z.output<typeof keyRequest>): Promise<z.output<typeof madeKey>>;
  /** Lists the keys of a project, or of all, newest first, page by page. */
  listKeys(request: z.output<typeof listRequest>): Promise<z.output<typeof keyPage>>;
  /** Revokes a key of any project. */
  revokeKey(request: { id: string }): Promise<z.output<typeof shownKey>>;
};

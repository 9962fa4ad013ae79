import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { z } from 'zod';
import { pageSizes } from '../../domain/limits.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import type { Database } from '../../store/database/database.ts';
import { deleteKey, findKeyOfAny, insertKey, type Key, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { findProjectNamed, listProjects, projectNames } from '../../store/projects.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { newKey, newKeyProblems } from '../keys/keys.ts';
import type { keyPage, keyRequest, listRequest, madeKey, projectPage, shownKey } from './messages.ts';

/**
 * What whoever holds the machine may do without a key, on an open database: make, list and revoke keys of all
 * projects. `onChange` is called after a change of the keys.
 *
 * Methods throw an `AdminError` that says what is wrong with a request.
 */
export function createAdmin({ database, now, onChange }: AdminOptions): Admin {
  return {
    async createKey({ name, scopes, project: projectName, expiresIn }) {
      const seconds = expiresIn === null ? undefined : create(DurationSchema, { seconds: BigInt(expiresIn) });
      const wanted = { name, scopes, project: projectName, expiresIn: seconds };
      const problems = newKeyProblems(wanted, { project: DEFAULT_PROJECT, scopes: ['*'] });
      if (problems.length > 0) {
        throw new AdminError(problems.map(({ path, message }) => `${path}: ${message}`).join('\n'));
      }
      const project = await projectNamed(database, projectName, now());
      const lifeMs = expiresIn === null ? undefined : expiresIn * 1000;
      const { key, secret } = newKey({ project, name, scopes, expiresIn: lifeMs }, now());
      await insertKey(database, key);
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
      const project = await findProjectNamed(database, name);
      if (project === null) throw new AdminError(`There is no project named ${name}.`);
      const { items, nextCursor } = await listKeys(database, project.id, request);
      return { items: items.map((key) => shown(key, name)), nextCursor };
    },

    async revokeKey({ id }) {
      const key = await findKeyOfAny(database, id);
      if (key === null || !(await deleteKey(database, key.projectId, id))) {
        throw new AdminError(`There is no key ${id}.`);
      }
      onChange();
      const names = await projectNames(database, [key.projectId]);
      return shown(key, names.get(key.projectId) ?? key.projectId);
    },

    async listProjects({ cursor }) {
      const { items, nextCursor } = await listProjects(database, { limit: pageSizes.max, cursor });
      return {
        items: items.map(({ createdAt, ...project }) => ({ ...project, createdAt: createdAt.toISOString() })),
        nextCursor,
      };
    },
  };
}

/** What is wrong with a request, for whoever typed it; one line for each problem. */
export class AdminError extends Error {
  override name = 'AdminError';
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

/** The admin's operations, on a database or through the socket of the process that has it open. */
export type Admin = {
  /** Makes a key with these scopes, and its project if there is none of that name. */
  createKey(request: z.output<typeof keyRequest>): Promise<z.output<typeof madeKey>>;
  /** Lists the keys of a project, or of all, newest first, page by page. */
  listKeys(request: z.output<typeof listRequest>): Promise<z.output<typeof keyPage>>;
  /** Revokes a key of any project. */
  revokeKey(request: { id: string }): Promise<z.output<typeof shownKey>>;
  /** Lists the projects, oldest first, page by page. */
  listProjects(request: { cursor?: string | undefined }): Promise<z.output<typeof projectPage>>;
};

export type AdminOptions = { database: Database; now: () => number; onChange: () => void };

import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { AdminService } from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { pageSizes } from '../../domain/limits/limits.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import { deleteKey, findKeyOfAny, insertKey, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { projectNames } from '../../store/projects/projects.ts';
import { projectNamed } from '../keys/key-reader.ts';
import { keyToMessage, newKey, newKeyProblems } from '../keys/keys.ts';
import {
  type AdminContext,
  adminEntry,
  existingProject,
  pagesOf,
  refusal,
  refuseProblems,
} from './context.ts';

/** Makes, lists and revokes the keys of all projects. */
export function adminKeys(context: AdminContext) {
  const { database, auditWriter, now, onChange } = context;
  return {
    async createKey({ name, scopes, project: projectName, expiresIn }) {
      const wanted = { name, scopes, project: projectName, expiresIn };
      refuseProblems(newKeyProblems(wanted, { project: DEFAULT_PROJECT, scopes: ['*'] }));
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
        const names = await projectNames(database, [...new Set(keys.map(({ projectId }) => projectId))]);
        yield { keys: keys.map((key) => keyToMessage(key, names.get(key.projectId) ?? key.projectId)) };
      }
    },

    async revokeKey({ keyId }) {
      const key = await findKeyOfAny(database, keyId);
      if (key === null) throw refusal(`There is no key ${keyId}.`);
      const { projectId } = key;
      await database.transaction(async (tx) => {
        if (!(await deleteKey(tx, projectId, keyId))) throw refusal(`There is no key ${keyId}.`);
        await auditWriter.store(
          tx,
          adminEntry(context, { action: 'key.revoked', projectId, resource: keyId }),
        );
      });
      onChange();
      const names = await projectNames(database, [projectId]);
      return { key: keyToMessage(key, names.get(projectId) ?? projectId) };
    },
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

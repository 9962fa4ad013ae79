import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import {
  type AdminService,
  RevokeKeyRequest_Children as Children,
} from '../../../gen/headlessforms/internal/v1/admin_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { INSTALLATION } from '../../domain/audit.ts';
import { pageSizes } from '../../domain/limits/limits.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import { findKeyOfAny, insertKey, listKeys, listKeysOfAll } from '../../store/keys.ts';
import { projectNames } from '../../store/projects/projects.ts';
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

/** Makes, lists and revokes the keys of all projects, and ends the sessions of owners. */
export function adminKeys(context: AdminContext) {
  const { database, auditWriter, now, onChange } = context;
  return {
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
        const names = await projectNames(database, [...new Set(keys.map(({ projectId }) => projectId))]);
        yield { keys: keys.map((key) => keyToMessage(key, names.get(key.projectId) ?? key.projectId)) };
      }
    },

    async revokeKey({ keyId, children }) {
      if ((await findKeyOfAny(database, keyId)) === null) throw refusal(`There is no key ${keyId}.`);
      const revoked = await database.transaction(async (tx) => {
        const advice = 'say --revoke-children or --keep-children';
        const keys = await revokeKeys(tx, keyId, fates[children], advice);
        for (const { id: resource, projectId } of keys) {
          await auditWriter.store(tx, adminEntry(context, { action: 'key.revoked', projectId, resource }));
        }
        return keys;
      });
      onChange();
      const names = await projectNames(database, [...new Set(revoked.map(({ projectId }) => projectId))]);
      return { keys: revoked.map((key) => keyToMessage(key, names.get(key.projectId) ?? key.projectId)) };
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
  } satisfies Partial<ServiceImpl<typeof AdminService>>;
}

const fates = {
  [Children.UNSPECIFIED]: 'refuse',
  [Children.REVOKE]: 'revoke',
  [Children.KEEP]: 'keep',
} as const;

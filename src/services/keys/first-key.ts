import { newId } from '../../domain/ids.ts';
import { hashSecret, newApiKey } from '../../domain/secrets.ts';
import { DEFAULT_PROJECT } from '../../rpc/context.ts';
import type { Database } from '../../store/database/database.ts';
import { insertFirstKey } from '../../store/keys.ts';
import { projectNamed } from './key-reader.ts';

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

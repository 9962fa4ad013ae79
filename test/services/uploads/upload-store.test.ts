import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { localUploadStore } from '../../../src/services/uploads/upload-store.ts';
import { contentOf, temporaryFiles } from '../../support/files.ts';

async function givenFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'uploads-'));
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}

it('gives back what was put, and nothing after it is removed', async () => {
  await using given = await givenFolder();
  using files = temporaryFiles();
  const store = localUploadStore(join(given.folder, 'made', 'later'));
  const id = newId('upl', Date.now());

  await store.put(id, files.of('content'));
  const kept = await contentOf(await store.get(id));
  await store.remove(id);
  await store.remove(id);

  expect(kept.toString()).toBe('content');
  expect(await store.get(id)).toBeUndefined();
});

it('refuses names that are not ids', async () => {
  await using given = await givenFolder();
  using files = temporaryFiles();
  const store = localUploadStore(join(given.folder, 'inner'));

  await expect(store.put('../../escaped', files.of('x'))).rejects.toThrow('Not the id');

  expect(await readdir(given.folder)).toEqual([]);
});

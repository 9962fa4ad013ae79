import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { newId } from '../../../src/domain/ids.ts';
import { localUploadStore } from '../../../src/services/uploads/upload-store.ts';
import { oneEngine } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { contentOf } from '../../support/files.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [{ id: 'cv', type: 'file', maxBytes: 100_000 }];
const ofForm = (formId: string) => ({ case: 'formId' as const, value: formId });
const part = new Uint8Array(60_000).fill(65);

describe.each(oneEngine('pglite'))('A file that comes in parts on %s', (engine) => {
  it('is kept whole, and its name and field may come last', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    async function* parts() {
      yield { target: ofForm(formId), content: part.subarray(0, 30_000) };
      yield { content: part.subarray(30_000) };
      yield { fieldId: 'cv', filename: 'a.txt' };
    }

    await using network = await services.openNetwork();
    for (const transport of [services.as(), network.transport]) {
      const { upload } = await createClient(UploadsService, transport).uploadFile(parts());
      expect(upload).toMatchObject({ filename: 'a.txt', contentType: 'text/plain', size: 60_000 });
    }

    expect(spooled(services)).toEqual([]);
  });

  it('is not read where its form takes none, nor beyond what its field takes', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const keyless = await services.givenFormOf(undefined, {}, {});
    let read = 0;
    async function* parts(target: string) {
      yield { target: ofForm(target), fieldId: 'cv' };
      for (;;) {
        read += 1;
        yield { content: part };
      }
    }
    const refused = async (target: string, reason: Reason) => {
      read = 0;
      const { violations } = await expectFailure(services.uploads.uploadFile(parts(target)), reason);
      return { violations, read };
    };

    expect(await refused(newId('form', 0), Reason.NOT_FOUND)).toEqual({ violations: [], read: 0 });
    expect(await refused(keyless, Reason.INVALID)).toEqual({ violations: ['content: custom'], read: 0 });
    expect(await refused(formId, Reason.INVALID)).toEqual({ violations: ['content: too_big'], read: 2 });

    expect(spooled(services)).toEqual([]);
  });

  it('leaves nothing when it is cut off', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    async function* parts() {
      yield { target: ofForm(formId), fieldId: 'cv', content: part };
      throw new Error('cut off');
    }

    await expect(services.uploads.uploadFile(parts())).rejects.toThrow();

    expect(spooled(services)).toEqual([]);
    expect(await services.database.select('select id from uploads')).toEqual([]);
  });

  it('is removed an hour later if its row could not be stored', async () => {
    await using services = await startServices(engine);
    const { database, folder } = services;
    const formId = await services.givenFormOf(fields);
    const uploads = localUploadStore(folder);
    await database.execute('alter table uploads rename to uploads_away');

    const failing = services.uploads.createUpload({ target: ofForm(formId), fieldId: 'cv', content: part });
    await expect(failing).rejects.toThrow();
    await database.execute('alter table uploads_away rename to uploads');
    const planned = await database.select(
      "select subject from removals where due_at between now() + interval '50 minutes' and now() + interval '1 hour'",
    );
    const left = planned.map(({ subject }) => String(subject));
    const stored = await Promise.all(left.map((id) => uploads.get(id).then(contentOf)));
    await removeInAnHour(services);

    expect(stored).toEqual([expect.objectContaining({ length: part.length })]);
    expect(spooled(services)).toEqual([]);
    expect(await Promise.all(left.map((id) => uploads.get(id)))).toEqual([undefined]);
    expect(await database.select('select from removals')).toEqual([]);
  });

  it('is refused if its removal has begun before its row is stored, and stays otherwise', async () => {
    await using services = await startServices(engine);
    const { database, folder } = services;
    const formId = await services.givenFormOf(fields);
    const file = { target: ofForm(formId), fieldId: 'cv', content: part };
    const kept = await services.uploads.createUpload(file);
    // As another process does an hour later.
    await database.execute(`alter table removals alter column attempts set default 1`);

    try {
      await expectFailure(services.uploads.createUpload(file), Reason.UNAVAILABLE);
    } finally {
      // Other tests use this database again.
      await database.execute(`alter table removals alter column attempts set default 0`);
    }
    await removeInAnHour(services);

    expect(await database.select('select id from uploads')).toEqual([{ id: kept.upload?.id }]);
    expect(await contentOf(await localUploadStore(folder).get(kept.upload?.id ?? ''))).toHaveLength(
      part.length,
    );
    expect(await database.select('select from removals')).toEqual([]);
  });

  it('is removed at the next start if the process died while it arrived', async () => {
    await using services = await startServices(engine);
    const spoolFolder = join(services.folder, 'spool');
    mkdirSync(spoolFolder, { recursive: true });
    const [left, arriving] = [newId('upl', 0), newId('upl', 1)];
    for (const id of [left, arriving]) writeFileSync(join(spoolFolder, id), part);
    const longAgo = services.clock.ms / 1000 - 7_200;
    utimesSync(join(spoolFolder, left), longAgo, longAgo);

    await services.prepare();

    // Another process may be about to receive the second.
    expect(spooled(services)).toEqual(engine === 'pglite' ? [] : [arriving]);
  });
});

/** Does what the delivery loop does once planned removals are due. */
async function removeInAnHour(services: TestServices): Promise<void> {
  await services.database.execute("update removals set due_at = now() - interval '1 second'");
  await services.removeFiles();
}

function spooled({ folder }: TestServices): string[] {
  return readdirSync(folder).includes('spool') ? readdirSync(join(folder, 'spool')) : [];
}

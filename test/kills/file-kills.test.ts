import { existsSync, readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localUploadStore } from '../../src/services/uploads/upload-store.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import { removeDueFiles } from '../../src/store/removal/removals.ts';
import { createServerDatabase, engines, givenEmbeddedDatabase } from '../support/database.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';

const KILLS = 3;
const WRITERS = 6;

describe.each(engines)('on %s', (engine) => {
  it('keeps every file that has a row, and no other, whenever it is killed', {
    timeout: 400_000,
  }, async () => {
    using folder = temporaryFolder();
    await using server = engine === 'postgres' ? await createServerDatabase() : undefined;
    const dataDir = join(folder.path, 'data');
    if (server === undefined) await givenEmbeddedDatabase(join(dataDir, 'database'));
    const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
    const env = {
      PORT: String(port),
      GRPC_PORT: String(grpcPort),
      HOST: '127.0.0.1',
      DATA_DIR: dataDir,
      SECRET_KEY: 'ab'.repeat(32),
      BOOTSTRAP_API_KEY: KEY,
      RATE_LIMIT: 'off',
      ...(server !== undefined && { DATABASE_URL: server.databaseUrl }),
    };
    const call = caller(`http://127.0.0.1:${port}`);
    const kept: string[] = [];
    let removed = 0;

    for (let kill = 1; kill <= KILLS; kill += 1) {
      await using service = spawnService(env);
      await service.started();
      const before = removed;
      const writers = Array.from({ length: WRITERS }, (_, n) =>
        addAndRemoveUntilDead(call, `${kill}-${n}`, {
          onKept: (id) => kept.push(id),
          onRemoved: () => (removed += 1),
        }),
      );
      await until(
        () => removed - before > 10 * kill,
        90_000,
        () => `${removed - before} removals`,
      );
      await service.stop('SIGKILL');
      await Promise.all(writers);
    }
    // Files that were arriving are taken for another process's until an hour has passed.
    const longAgo = Date.now() / 1000 - 7_200;
    for (const name of filesIn(join(dataDir, 'uploads', 'spool')))
      utimesSync(join(dataDir, 'uploads', 'spool', name), longAgo, longAgo);
    await using service = spawnService(env);
    await service.started();
    for (const id of kept) expect((await call('GET', `/v1/uploads/${id}`)).status).toBe(200);
    await service.stop('SIGTERM');

    const database = await openDatabase(
      server === undefined
        ? { dataDir: join(dataDir, 'database'), log: console }
        : { databaseUrl: server.databaseUrl, log: console },
    );
    try {
      const store = localUploadStore(join(dataDir, 'uploads'));
      // What a process had begun when it died is due some seconds later.
      await database.execute("update removals set due_at = now() - interval '1 second'");
      while ((await removeDueFiles(database, (id) => store.remove(id), 100)).more);
      const rows = await database.select('select id from uploads');
      expect(filesIn(join(dataDir, 'uploads')).toSorted()).toEqual(
        rows.map(({ id }) => String(id)).toSorted(),
      );
      expect(rows.length).toBeGreaterThanOrEqual(kept.length);
    } finally {
      await database.close();
    }
    expect(kept.length).toBeGreaterThan(KILLS * 2);
  });
});

/** Adds submissions with files, and removes most of them again by each of the ways, until the service is gone. */
async function addAndRemoveUntilDead(
  call: Call,
  name: string,
  { onKept, onRemoved }: Progress,
): Promise<void> {
  try {
    for (let turn = 0; ; turn += 1) {
      const { json: made } = await call('POST', '/api/forms/create', definition);
      const form = made.form.id;
      await call('POST', made.form.activate_url, { email: 'owner@example.com' });
      const email = `${name}-${turn}@example.com`;
      const files: { submission: string; upload: string }[] = [];
      for (let n = 0; n < 4; n += 1) {
        const { json } = await call('POST', `/api/forms/${form}/uploads?field=cv&filename=cv.txt`, 'A file.');
        const upload = json.upload.upload_id;
        const answers = { email, cv: { upload_id: upload } };
        const submitted = await call('POST', `/api/forms/${form}/submissions`, { answers });
        files.push({ submission: submitted.json.submission_id, upload });
      }
      const [first] = files;
      if (turn % 4 === 0) {
        for (const { upload } of files) onKept(upload);
        continue;
      }
      if (turn % 4 === 1) await call('DELETE', `/v1/submissions/${first?.submission}`);
      if (turn % 4 === 2) await call('POST', '/v1/erasures', { value: email, form_id: form });
      if (turn % 4 === 3) {
        await call('POST', `/v1/forms/${form}/archive`);
        await call('DELETE', `/v1/forms/${form}`);
      }
      onRemoved();
    }
  } catch {
    // The service was killed under this call.
  }
}

function caller(url: string): Call {
  return async (method, path, body) => {
    const isFile = typeof body === 'string';
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${KEY}`,
        'content-type': isFile ? 'application/octet-stream' : 'application/json',
      },
      ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: (text.startsWith('{') ? JSON.parse(text) : {}) as Reply };
  };
}

/** The names of the files under a folder. */
function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

const KEY = 'a-key-for-the-tests-of-crashes-only';

const definition = {
  name: 'Application',
  slug: 'application',
  fields: [
    { id: 'email', type: 'email' },
    { id: 'cv', type: 'file' },
  ],
  delivery: { type: 'email' },
};

type Progress = { onKept: (uploadId: string) => void; onRemoved: () => void };

type Call = (method: string, path: string, body?: unknown) => Promise<{ status: number; json: Reply }>;

/** The parts of replies that this test reads. */
type Reply = {
  submission_id: string;
  form: { id: string; activate_url: string };
  upload: { upload_id: string };
};

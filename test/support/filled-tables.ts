import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEY } from '../upgrades/fixture.ts';
import { makeRows } from '../upgrades/rows.ts';
import { startMailServer } from './mail-server.ts';
import { type Process, startProcess } from './processes.ts';
import { startReceiver } from './receiver.ts';
import { temporaryFolder } from './spawn.ts';

/**
 * Starts a process of the service on a server, and has it fill every table by documented routes and read what it has:
 * see `makeRows`. Throws if an answer is not as documented.
 */
export async function fillTables(
  opened: AsyncDisposableStack,
  databaseUrl: string,
  more: Record<string, string> = {},
): Promise<Process> {
  const { path: dataDir } = opened.use(temporaryFolder());
  const statuses: Record<string, number> = { '/ok': 204, '/later': 503, '/gone': 410 };
  const receiver = opened.use(
    await startReceiver(({ path }, response) => void response.writeHead(statuses[path] ?? 404).end()),
  );
  let isRefusing = false;
  const mails = opened.use(await startMailServer(() => (isRefusing ? 450 : undefined)));
  const env = {
    SMTP_URL: mails.url,
    WEBHOOK_ALLOW_PRIVATE: 'true',
    WEBHOOK_RETRY_SCHEDULE: '0,60',
    ...more,
  };
  const process = await startProcess(opened, { dataDir, databaseUrl, key: KEY, env });
  await makeRows({
    url: process.url,
    receiver,
    mails,
    refuseMails: () => (isRefusing = true),
    refuseFiles: () => {
      const uploads = join(dataDir, 'uploads');
      for (const name of readdirSync(uploads)) {
        renameSync(join(uploads, name), join(dataDir, name));
        writeFileSync(join(uploads, name), 'No folder, so that the store fails.');
      }
    },
  });
  return process;
}

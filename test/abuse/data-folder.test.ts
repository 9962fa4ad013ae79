import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { givenForm, sharedService } from './attacked-service.ts';

it('lets one process alone write, though the first does not move and the second has another host name', async () => {
  const service = await sharedService('pglite');
  const { child } = service.process;
  child.kill('SIGSTOP');

  const [port, grpcPort] = [await freePort(), await freePort()];
  const env = { DATA_DIR: service.dataDir, PORT: `${port}`, GRPC_PORT: `${grpcPort}`, HOSTNAME: 'another' };
  await using second = spawnService(env);
  const ended = await second.ended;
  child.kill('SIGCONT');

  expect(ended.code).toBe(1);
  expect(ended.errors).toContain(`The data folder ${service.dataDir}/database is in use`);
  expect((await fetch(`${service.url}/health`)).status).toBe(200);
});

it('shows its data folder and its mails to nobody else', async () => {
  using folder = temporaryFolder();
  const dataDir = join(folder.path, 'data');
  const [port, grpcPort] = [await freePort(), await freePort()];
  await using service = spawnService({ DATA_DIR: dataDir, PORT: `${port}`, GRPC_PORT: `${grpcPort}` });
  const { firstKey } = await service.started();
  await givenForm({ url: `http://127.0.0.1:${port}`, key: `${firstKey}` });

  const mails = join(dataDir, 'mail');
  const mail = await until(
    () => existsSync(mails) && readdirSync(mails).find((name) => name.endsWith('.eml')),
  );
  const modes = [dataDir, mails, join(mails, mail)].map((path) => statSync(path).mode & 0o777);

  expect(modes).toEqual([0o700, 0o700, 0o600]);
});

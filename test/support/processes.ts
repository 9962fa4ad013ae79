import { freePort, type SpawnedService, spawnService } from './spawn.ts';

/** Starts a process of the service on free ports, one of several that share a database, with `key` as the first. */
export async function startProcess(
  owned: AsyncDisposableStack,
  { dataDir, databaseUrl, key, env = {} }: ProcessOptions,
): Promise<Process> {
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  const service = owned.use(
    spawnService({
      PORT: String(port),
      GRPC_PORT: String(grpcPort),
      HOST: '127.0.0.1',
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      SECRET_KEY: 'ab'.repeat(32),
      BOOTSTRAP_API_KEY: key,
      ...env,
    }),
  );
  await service.started();
  return { service, url: `http://127.0.0.1:${port}`, grpcUrl: `http://127.0.0.1:${grpcPort}` };
}

export type Process = { service: SpawnedService; url: string; grpcUrl: string };

type ProcessOptions = { dataDir: string; databaseUrl: string; key: string; env?: Record<string, string> };

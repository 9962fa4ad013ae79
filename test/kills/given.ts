import { join } from 'node:path';
import { freePort } from '../support/spawn.ts';

/** The settings of a service that keeps its data in a folder, or else on a server. */
export async function settings(folder: string, databaseUrl: string | undefined) {
  const [port, grpcPort] = await Promise.all([freePort(), freePort()]);
  return {
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    HOST: '127.0.0.1',
    DATA_DIR: join(folder, 'data'),
    SECRET_KEY: 'ab'.repeat(32),
    BOOTSTRAP_API_KEY: KEY,
    RATE_LIMIT: 'off',
    MAX_WEBHOOKS: '100000',
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  };
}

export const KEY = 'a-key-for-the-tests-of-crashes-only';

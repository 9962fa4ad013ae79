import { join } from 'node:path';
import { runAdminCommand } from '../../src/cli/admin/main.ts';
import { RefusedError, UsageError } from '../../src/cli/terminal.ts';
import { createServerDatabase, type EngineName, givenEmbeddedDatabase } from './database.ts';
import { freePort, temporaryFolder } from './spawn.ts';

/** The settings of an installation whose database is empty, and a call to it with a key. */
export async function givenInstallation(engine: EngineName) {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const dataDir = join(folder.path, 'data');
  const port = await freePort();
  const env: Record<string, string> = {
    DATA_DIR: dataDir,
    PORT: String(port),
    GRPC_PORT: String(await freePort()),
  };
  if (engine === 'postgres') {
    env.DATABASE_URL = opened.use(await createServerDatabase()).databaseUrl;
    env.SECRET_KEY = '1'.repeat(64);
  } else {
    await givenEmbeddedDatabase(join(dataDir, 'database'));
  }
  const owned = opened.move();
  return {
    env,
    statusWith: async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await fetch(`http://127.0.0.1:${port}/v1/forms`, { headers })).status;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Runs an admin command in this process: a new one takes a second each. */
export async function admin(args: string[], env: Record<string, string>) {
  let output = '';
  let errors = '';
  const print = (line: string) => (output += `${line}\n`);
  const note = (line: string) => (errors += `${line}\n`);
  try {
    await runAdminCommand(args, { env, now: Date.now, print, note });
    return { code: 0, output, errors };
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof RefusedError)) throw error;
    return { code: error instanceof UsageError ? 2 : 1, output, errors: `${errors}${error.message}\n` };
  }
}

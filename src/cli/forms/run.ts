import { basename, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { RefusedError, reasonInWords, type Terminal, UsageError } from '../terminal.ts';
import { apply, plan } from './apply.ts';
import { exportForms } from './export.ts';
import { writeTypes } from './types.ts';

/** Runs a command on forms and a folder. Returns its exit code. Throws a `RefusedError` where the service refuses. */
export async function runFormsCommand(
  name: FormsCommandName,
  { folder, server, key, managedBy = basename(resolve(folder)), lang = '', ...flags }: FormsCommand,
  { env, print, note }: Omit<Terminal, 'now'>,
): Promise<number> {
  const { prune = false, yes = false, json = false, allowBreaking = false } = flags;
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${key}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: server,
    httpVersion: '1.1',
    interceptors: [authorize],
  });
  const client = createClient(FormsService, transport);
  const options = { client, folder, managedBy, prune, json, env, print };
  try {
    if (name === 'plan') return await plan(options);
    if (name === 'apply')
      return await apply({ ...options, allowBreaking, confirm: yes ? async () => true : ask });
    if (name === 'types') await writeTypes({ ...flags, client, lang, out: folder, print });
    else await exportForms({ ...options, server, note });
    return 0;
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    throw new RefusedError(`${server}: ${reasonInWords(error)}`);
  }
}

/** Asks on standard error: standard output is for scripts to read. */
async function ask(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('There is no terminal to ask in: give --yes');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question('Apply these changes? [y/N] ')).trim());
  } finally {
    terminal.close();
  }
}

export type FormsCommandName = 'plan' | 'apply' | 'export' | 'types';

/**
 * `managedBy`: who keeps the forms; absent: the name of the folder. `form` or the form of `file`: whose types are written;
 * absent: of all.
 */
type FormsCommand = {
  folder: string;
  server: string;
  key: string;
  managedBy?: string | undefined;
  prune?: boolean | undefined;
  yes?: boolean | undefined;
  json?: boolean | undefined;
  allowBreaking?: boolean | undefined;
  form?: string | undefined;
  file?: string | undefined;
  lang?: string | undefined;
};

import { parseArgs } from 'node:util';
import { createConnectTransport } from '@connectrpc/connect-node';
import { newWebhookSecret } from '../domain/secrets/new-secrets.ts';
import { RefusedError, UsageError } from './errors.ts';
import { listen } from './listen.ts';
import { bridgeMcp } from './mcp.ts';

const usage = `Usage: npm run cli -- listen --forward URL [options]
       npm run cli -- mcp [--server URL] [--key KEY]
       npm run cli -- admin keys create [--name TEXT] [--scopes LIST] [--project NAME] [--expires-in SECONDS]
       npm run cli -- admin keys list [--project NAME]
       npm run cli -- admin keys revoke ID
       npm run cli -- admin projects
       npm run cli -- admin backup FILE
       npm run cli -- admin restore FILE
       npm run cli -- admin migrate
       npm run cli -- admin doctor
       npm run cli -- admin export PROJECT FOLDER
       npm run cli -- admin erase PROJECT [--value TEXT] --yes
       npm run cli -- admin audit verify

listen posts the service's events, as they happen, to an address on this machine: signed as a webhook's,
so that a receiver can be developed without a public endpoint.

  --forward URL   where to post each event, such as http://localhost:3000/hook
  --form ID       only events of this form
  --server URL    the service (default: http://localhost:8080)
  --key KEY       an API key with the scope webhooks:write (default: the variable KEY)
  --secret TEXT   what to sign with (default: a new secret, printed at the start)

mcp serves MCP by standard input and output, for agents that start a program in place of calling /mcp. The
key's scopes decide which tools there are. npm prints lines of its own first unless told: npm run --silent.

admin needs no key, but the service's settings and user: it opens the database at DATABASE_URL or in DATA_DIR, or
asks the service that has the latter open. A new key alone goes to standard output.

  --name TEXT          what the key is called in lists (default: admin)
  --scopes LIST        what it may do, comma-separated (default: *, everything)
  --project NAME       its project (default: default); it is made if there is none
  --expires-in SECONDS when it ends (default: never)

admin backup writes the embedded database, the uploads and the secret key into a tar.gz archive, also while the service
runs. admin restore unpacks it into an empty DATA_DIR and reads all of it. For a database on a server both say which of
its own tools to run, and admin restore checks what was restored. admin migrate brings the tables up to date.
admin doctor checks settings, disk, database, clock, mail, ports and addresses, and says what to do; it ends with 1 if
something fails. admin export writes all of a project into an empty folder, as lines of JSON and files. admin erase
deletes everything of a project but its name, and revokes its keys; with --value, it deletes the submissions and
sessions in which that is found, such as an e-mail address. admin audit verify checks that nobody has changed the audit
log, and prints where it ends.
`;

const stop = new AbortController();
try {
  const [command, ...rest] = process.argv.slice(2);
  if (command === 'admin' && !rest.includes('--help') && !rest.includes('-h')) {
    const { runAdminCommand } = await import('./admin/main.ts');
    await runAdminCommand(rest, { env: process.env, now: Date.now, print, note });
  } else {
    await commandOf(process.argv.slice(2), process.env)();
  }
} catch (error) {
  if (!(error instanceof UsageError || error instanceof RefusedError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** What is no result: standard output is for scripts to read. */
function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** What was typed, to be run. */
function commandOf(args: string[], env: NodeJS.ProcessEnv): () => Promise<void> {
  const { values, positionals } = parse(args);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) {
    return async () => void process.stdout.write(usage);
  }
  if ((command !== 'listen' && command !== 'mcp') || rest.length > 0)
    throw new UsageError(`Unknown command: ${positionals.join(' ')}`);
  const { form = '', key = env.KEY ?? '', secret, forward } = values;
  if (command === 'listen' && forward === undefined)
    throw new UsageError('--forward is missing: where are events to go?');
  if (key === '') throw new UsageError('No API key: give --key, or set the variable KEY');
  const server = httpUrl('--server', values.server ?? 'http://localhost:8080');
  if (command === 'mcp')
    return () => bridgeMcp({ server, key, input: process.stdin, output: process.stdout });
  if (secret === '') throw new UsageError('--secret: Expected a text');
  const options = {
    forward: httpUrl('--forward', forward ?? ''),
    transport: createConnectTransport({ baseUrl: server, httpVersion: '1.1' }),
    form,
    key,
    secret: secret ?? newWebhookSecret(),
    signal: stop.signal,
    now: Date.now,
    print,
  };
  return async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
    await listen(options);
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        forward: { type: 'string' },
        form: { type: 'string' },
        server: { type: 'string' },
        key: { type: 'string' },
        secret: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function httpUrl(option: string, text: string): string {
  const { protocol } = URL.canParse(text) ? new URL(text) : { protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return text;
  throw new UsageError(`${option}: Expected a URL that begins with http:// or https://, not ${text}`);
}

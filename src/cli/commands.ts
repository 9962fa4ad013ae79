import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { format } from 'node:util';
import { createConnectTransport } from '@connectrpc/connect-node';
import { ADDRESS_ATTEMPT_MS } from '../domain/limits/limits.ts';
import { newWebhookSecret } from '../domain/secrets/new-secrets.ts';
import { printable } from '../telemetry/printable.ts';
import { forwardEvents, replay, trigger } from './deliveries.ts';
import { bridgeMcp } from './mcp.ts';
import { type Commands, RefusedError, readCommand, UsageError } from './terminal.ts';

/** Each command with what it takes. */
const synopses = [
  'listen --forward URL [options]',
  'trigger EVENT --forward URL [--secret TEXT]',
  'replay ID… [--missed-since TIME] [--server URL] [--key KEY]',
  'mcp [--server URL] [--key KEY]',
  'forms plan DIR [--prune] [--json] [--managed-by NAME]',
  'forms apply DIR [--yes] [--prune] [--allow-breaking] [--json] [--managed-by NAME]',
  'forms export DIR [--managed-by NAME]',
  'forms types FORM --lang LANG --out DIR',
  'forms types --all --lang LANG --out DIR',
  'forms types --file FILE --lang LANG --out DIR',
  'forms test DIR',
  'admin keys create [--name TEXT] [--scopes LIST] [--project NAME] [--expires-in SECONDS]',
  'admin keys list [--project NAME]',
  'admin keys revoke [--revoke-children | --keep-children] ID',
  'admin owners sign-out ADDRESS',
  'admin vacuum [--full]',
  'admin projects',
  'admin webhooks failing',
  'admin backup [--without-secrets] FILE',
  'admin rotate-secrets --yes',
  'admin restore [--check] [--allow-missing-files] FILE',
  'admin migrate',
  'admin doctor',
  'admin export PROJECT FOLDER',
  'admin erase PROJECT [--value TEXT [--include-mentions]] --yes',
];

/** What commands do, by the words that they begin with. */
const explanations: [words: string, text: string][] = [
  [
    'listen',
    `listen posts the service's events to an address on this machine as they happen. They are signed like a webhook's, so
you can develop a receiver without a public endpoint.

  --forward URL   where to post each event, such as http://localhost:3000/hook
  --form ID       only events of this form
  --server URL    the service (default: http://localhost:8080)
  --key KEY       an API key with the scope webhooks:write (default: the variable KEY)
  --secret TEXT   the signing secret (default: a new one, printed at the start)`,
  ],
  [
    'trigger',
    `trigger posts one sample event, such as submission.created, in the same way. The service doesn't have to run. The exit
code is 1 unless the receiver answers 2xx.`,
  ],
  [
    'replay',
    `replay sends deliveries again. It needs a key with the scope webhooks:write. ID is one of these:

  dlv_…           one delivery
  wh_…            all failed deliveries of a webhook
  form_…          the failed emails about a form's submissions

With --missed-since it sends webhooks the events since then that they have no delivery of, as those of the time in which
they were off. TIME is a day, or like 2026-11-21T08:00:00Z.`,
  ],
  [
    'mcp',
    `mcp serves MCP over standard input and output, for agents that start a program instead of calling /mcp. The key's
scopes decide which tools there are. Use npm run --silent, so that npm prints no lines of its own.`,
  ],
  [
    'forms',
    `forms keeps forms as files in a folder: NAME.form.json or NAME.form.yaml.

  plan            prints what would change. The exit code is 0 for nothing, 2 for changes, 3 for breaking changes.
                  Needs forms:read
  apply           makes the changes. Also needs forms:publish, and forms:write to archive forms
  export          writes the service's forms to the folder. Needs forms:read and webhooks:read
  types           writes types for the answers to one form, by its id or key, or to all published forms. With --file,
                  writes those that publishing the file would give, so that builds fail before. Needs forms:read
  test            checks the answers in NAME.test.json or NAME.test.yaml against the form beside it, without the
                  service. The exit code is 1 if a result is not as expected

  --server URL       the service (default: http://localhost:8080)
  --key KEY          an API key (default: the variable KEY)
  --managed-by NAME  who manages the forms (default: the folder's name)
  --prune            archive forms that NAME manages and that have no file
  --yes              apply without asking
  --allow-breaking   also apply changes that a form's compatibility setting refuses
  --json             print the result as JSON
  --lang LANG        proto (with a buf.yaml, so that the folder is a Buf module), ts or json-schema
  --out DIR          where to write the types`,
  ],
  [
    'admin',
    `admin needs no key, but the same settings and user as the service. It opens the database at DATABASE_URL or in
DATA_DIR. If a running service has that folder open, it asks the service.`,
  ],
  [
    'admin keys',
    `admin keys creates, lists and revokes API keys. Only the new key is written to stdout.

  --name TEXT          the key's name in lists (default: admin)
  --scopes LIST        its scopes, comma-separated (default: *, everything)
  --project NAME       its project, created on first use (default: default)
  --expires-in SECONDS when it expires (default: never)
  --revoke-children    also revoke the keys that it created
  --keep-children      leave them as they are`,
  ],
  [
    'admin owners',
    `admin owners sign-out ends all sessions of an owner, and voids sign-in links that were emailed and not used.`,
  ],
  [
    'admin vacuum',
    `admin vacuum removes what was deleted from the embedded database's files; with --full, it rewrites every table.`,
  ],
  ['admin projects', 'admin projects lists all projects.'],
  ['admin webhooks', 'admin webhooks failing lists webhooks whose deliveries fail.'],
  [
    'admin backup',
    `admin backup writes the database, the uploads and the secret key to a tar.gz archive. The service can keep running. A
database on a server needs pg_dump. With --without-secrets, the archive doesn't contain the key.`,
  ],
  [
    'admin rotate-secrets',
    `admin rotate-secrets makes a new SECRET_KEY while the service is stopped, and voids the links and sessions that the
previous key signed.`,
  ],
  [
    'admin restore',
    `admin restore reads an archive to its end and unpacks it into an empty DATA_DIR, or into an empty database on a server.
Without a file, it checks a database on a server. The exit code is 1 if files are missing.

  --check                only read the archive
  --allow-missing-files  accept an archive that lacks files`,
  ],
  ['admin migrate', 'admin migrate brings the tables up to date.'],
  [
    'admin doctor',
    `admin doctor checks settings, disk, database, clock, email, ports and addresses, and says what to do. The exit code is
1 if a check fails.`,
  ],
  ['admin export', `admin export writes a whole project to an empty folder, as lines of JSON and files.`],
  [
    'admin erase',
    `admin erase deletes everything in a project but its name, and revokes its keys. With --value, it deletes only
submissions and sessions in which that text is a whole answer, such as an email address; with --include-mentions also
submissions with an answer that has it among other words.`,
  ],
];

/** The help for the command that `words` begin with, or for all commands that begin so. */
function help(words: readonly string[]): string {
  const command = words.join(' ');
  const isWithin = (inner: string, outer: string) => outer === '' || `${inner} `.startsWith(`${outer} `);
  const shown = synopses.filter((synopsis) => isWithin(synopsis, command));
  if (shown.length === 0) return help(words.slice(0, -1));
  const texts = explanations.filter(([about]) => isWithin(about, command) || isWithin(command, about));
  const usage = shown.map((synopsis) => `npm run cli -- ${synopsis}`).join('\n       ');
  return [`Usage: ${usage}`, ...texts.map(([, text]) => text)].join('\n\n');
}

const options = {
  forward: { type: 'string' },
  form: { type: 'string' },
  server: { type: 'string', default: 'http://localhost:8080' },
  key: { type: 'string', default: process.env.KEY ?? '' },
  secret: { type: 'string' },
  'missed-since': { type: 'string' },
  'managed-by': { type: 'string' },
  prune: { type: 'boolean' },
  yes: { type: 'boolean' },
  'allow-breaking': { type: 'boolean' },
  json: { type: 'boolean' },
  lang: { type: 'string' },
  out: { type: 'string' },
  all: { type: 'boolean' },
  file: { type: 'string' },
} as const;

const commands: Commands<typeof options> = {
  listen: {
    takes: ['forward', 'form', 'server', 'key', 'secret'],
    async run({ forward, form = '', secret = newWebhookSecret(), ...service }) {
      if (forward === undefined) throw new UsageError('--forward is missing: where are events to go?');
      if (secret === '') throw new UsageError('--secret: Expected a text');
      const stop = new AbortController();
      const target = { ...transportTo(service), forward: httpUrl('--forward', forward), form, secret };
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
      await forwardEvents({ ...target, signal: stop.signal, now: Date.now, print });
    },
  },
  trigger: {
    takes: ['forward', 'secret', 'server', 'key'],
    needs: 1,
    missing: 'Missing EVENT, such as submission.created',
    async run({ forward, secret = newWebhookSecret() }, event = '') {
      if (forward === undefined) throw new UsageError('--forward is missing: where is the event to go?');
      if (secret === '') throw new UsageError('--secret: Expected a text');
      await trigger(event, { forward: httpUrl('--forward', forward), secret, now: Date.now, print });
    },
  },
  replay: {
    takes: ['missed-since', 'server', 'key'],
    needs: 1,
    most: Number.POSITIVE_INFINITY,
    missing: 'Missing ID: give dlv_…, wh_… or form_…',
    run: ({ 'missed-since': missedSince, ...service }, ...ids) =>
      replay({ ...transportTo(service), ids, missedSince, print }),
  },
  mcp: {
    takes: ['server', 'key'],
    run: (service) => bridgeMcp({ ...reached(service), input: process.stdin, output: process.stdout }),
  },
  'forms plan': formsCommand('plan', ['prune', 'json']),
  'forms apply': formsCommand('apply', ['prune', 'json', 'yes', 'allow-breaking']),
  'forms export': formsCommand('export', []),
  'forms types': {
    takes: ['server', 'key', 'lang', 'out', 'all', 'file'],
    most: 1,
    run({ lang, out, all, file, ...given }, form) {
      if (out === undefined) throw new UsageError('--out is missing: the folder for the types');
      if ([form, file, all].filter((each) => each !== undefined).length !== 1)
        throw new UsageError('Give either FORM, an id or a key, or --file, or --all');
      return runForms('types', { ...reached(given), folder: out, lang, form, file });
    },
  },
  'forms test': {
    // They have defaults.
    takes: ['server', 'key'],
    needs: 1,
    missing: 'Missing DIR: the folder with the files of the forms',
    async run(_, folder = '') {
      const { testForms } = await import('./forms/test.ts');
      process.exitCode = await testForms(folder, print);
    },
  },
};

setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_ATTEMPT_MS);
// What parts of the service log, and what nothing catches, goes the same way.
const complain = (...facts: unknown[]) =>
  format(...facts)
    .split('\n')
    .forEach(note);
Object.assign(console, { debug: complain, info: complain, warn: complain, error: complain });
process.on('uncaughtException', (error) => {
  complain(error);
  process.exit(1);
});

try {
  const [command, ...rest] = process.argv.slice(2);
  if (command === undefined || process.argv.includes('--help') || process.argv.includes('-h')) {
    const words = process.argv.slice(2);
    const end = words.findIndex((word) => word.startsWith('-'));
    help(words.slice(0, end === -1 ? words.length : end))
      .split('\n')
      .forEach(print);
  } else if (command === 'admin') {
    const { runAdminCommand } = await import('./admin/main.ts');
    await runAdminCommand(rest, { env: process.env, now: Date.now, print, note });
  } else {
    await readCommand(process.argv.slice(2), { commands, options })();
  }
} catch (error) {
  if (!(error instanceof UsageError || error instanceof RefusedError)) throw error;
  error.lines.forEach(note);
  // Of the commands for forms, 2 means that there are changes.
  process.exitCode = error instanceof UsageError && process.argv[2] !== 'forms' ? 2 : 1;
}

function formsCommand(
  name: 'plan' | 'apply' | 'export',
  flags: (keyof typeof options)[],
): Commands<typeof options>[string] {
  return {
    takes: ['server', 'key', 'managed-by', ...flags],
    needs: 1,
    missing: 'Missing DIR: the folder with the files of the forms',
    async run({ 'managed-by': managedBy, 'allow-breaking': allowBreaking, ...given }, folder = '') {
      await runForms(name, { ...given, ...reached(given), folder, managedBy, allowBreaking });
    },
  };
}

async function runForms(name: FormsArguments[0], command: FormsArguments[1]): Promise<void> {
  const { runFormsCommand } = await import('./forms/run.ts');
  process.exitCode = await runFormsCommand(name, command, { env: process.env, print, note });
}

function print(line: string): void {
  write(process.stdout, line);
}

/** What is no result: standard output is for scripts to read. */
function note(line: string): void {
  write(process.stderr, line);
}

/** Everything goes this way, since names and messages come from strangers; the bridge of MCP alone passes JSON on. */
function write(stream: NodeJS.WritableStream, line: string): void {
  stream.write(`${printable(line)}\n`);
}

function transportTo(service: Service) {
  const { server: baseUrl, key } = reached(service);
  return { transport: createConnectTransport({ baseUrl, httpVersion: '1.1' }), key };
}

/** Where the service is, and the key that it wants. */
function reached({ server, key }: Service): Service {
  if (key === '') throw new UsageError('No API key: give --key, or set the variable KEY');
  return { server: httpUrl('--server', server), key };
}

function httpUrl(option: string, text: string): string {
  const { protocol } = URL.canParse(text) ? new URL(text) : { protocol: '' };
  if (protocol === 'http:' || protocol === 'https:') return text;
  throw new UsageError(`${option}: Expected a URL that begins with http:// or https://, not ${text}`);
}

type FormsArguments = Parameters<typeof import('./forms/run.ts').runFormsCommand>;

type Service = { server: string; key: string };

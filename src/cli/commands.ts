import { createConnectTransport } from '@connectrpc/connect-node';
import { newWebhookSecret } from '../domain/secrets/new-secrets.ts';
import { listen, replay, trigger } from './deliveries.ts';
import { bridgeMcp } from './mcp.ts';
import { type Commands, RefusedError, readCommand, UsageError } from './terminal.ts';

/** Each command with what it takes. */
const synopses = [
  'listen --forward URL [options]',
  'trigger EVENT --forward URL [--secret TEXT]',
  'replay ID… [--server URL] [--key KEY]',
  'mcp [--server URL] [--key KEY]',
  'forms plan DIR [--prune] [--json] [--managed-by NAME]',
  'forms apply DIR [--yes] [--prune] [--allow-breaking] [--json] [--managed-by NAME]',
  'forms export DIR [--managed-by NAME]',
  'forms types FORM --lang LANG --out DIR',
  'forms types --all --lang LANG --out DIR',
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
  'admin erase PROJECT [--value TEXT] --yes',
];

/** What commands do, by the words that they begin with. */
const explanations: [words: string, text: string][] = [
  [
    'listen',
    `listen posts the service's events, as they happen, to an address on this machine: signed as a webhook's,
so that a receiver can be developed without a public endpoint.

  --forward URL   where to post each event, such as http://localhost:3000/hook
  --form ID       only events of this form
  --server URL    the service (default: http://localhost:8080)
  --key KEY       an API key with the scope webhooks:write (default: the variable KEY)
  --secret TEXT   what to sign with (default: a new secret, printed at the start)`,
  ],
  [
    'trigger',
    `trigger posts one made-up event, such as submission.created, in the same way; no service needs to run. It ends with 1
unless the receiver answers 2xx.`,
  ],
  [
    'replay',
    `replay sends deliveries again: the ones named by dlv_…, all failed ones of a webhook (wh_…), or the failed emails
of a form's submissions (form_…). The key needs the scope webhooks:write.`,
  ],
  [
    'mcp',
    `mcp serves MCP by standard input and output, for agents that start a program in place of calling /mcp. The
key's scopes decide which tools there are. npm prints lines of its own first; npm run --silent prints none.`,
  ],
  [
    'forms',
    `forms keeps forms as files of a folder, NAME.form.json or NAME.form.yaml: plan prints what would change and ends with
0 for nothing, 2 for changes and 3 for changes that break something; apply does it; export writes what the service
has; types writes the types of the answers to a form, by its id or key, or to all published forms. All take --server
and --key. plan and types need forms:read, apply also forms:publish (forms:write to archive), and export also
webhooks:read.

  --managed-by NAME  who keeps the forms (default: the folder's name)
  --prune            archive forms that NAME keeps and that have no file
  --yes              apply without a question
  --allow-breaking   apply also what a form's compatibility refuses
  --json             print the result as JSON
  --lang LANG        proto (with a buf.yaml, so that the folder is a module of buf), ts or json-schema
  --out DIR          where the types go`,
  ],
  [
    'admin',
    `admin needs no key, but the service's settings and user: it opens the database at DATABASE_URL or in DATA_DIR, or
asks the service that has the folder open.`,
  ],
  [
    'admin keys',
    `admin keys makes, lists and revokes API keys. Only the new key is written to stdout.

  --name TEXT          what the key is called in lists (default: admin)
  --scopes LIST        what it may do, comma-separated (default: *, everything)
  --project NAME       its project (default: default); it is made if there is none
  --expires-in SECONDS when it ends (default: never)`,
  ],
  [
    'admin backup',
    `admin backup writes the database, the uploads and the secret key into a tar.gz archive, also while the service runs;
for a database on a server it needs pg_dump; with --without-secrets the archive lacks the key.`,
  ],
  [
    'admin rotate-secrets',
    `admin rotate-secrets makes a new SECRET_KEY while the service is stopped, and takes back what the former one gave.`,
  ],
  [
    'admin restore',
    `admin restore reads all of an archive and unpacks it into an empty DATA_DIR, and into the empty database of a server;
with --check it only reads. It ends with 1 if files are missing, unless --allow-missing-files. Without a file it
checks what a server has.`,
  ],
  ['admin migrate', 'admin migrate brings the tables up to date.'],
  [
    'admin doctor',
    `admin doctor checks settings, disk, database, clock, email, ports and addresses, and says what to do; it ends with 1 if
something fails.`,
  ],
  ['admin export', `admin export writes all of a project into an empty folder, as lines of JSON and files.`],
  [
    'admin erase',
    `admin erase deletes everything of a project but its name, and revokes its keys; with --value, it deletes the
submissions and sessions in which that is found, such as an email address.`,
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
  return [`Usage: ${usage}`, ...texts.map(([, text]) => text)].join('\n\n').concat('\n');
}

const options = {
  forward: { type: 'string' },
  form: { type: 'string' },
  server: { type: 'string', default: 'http://localhost:8080' },
  key: { type: 'string', default: process.env.KEY ?? '' },
  secret: { type: 'string' },
  'managed-by': { type: 'string' },
  prune: { type: 'boolean' },
  yes: { type: 'boolean' },
  'allow-breaking': { type: 'boolean' },
  json: { type: 'boolean' },
  lang: { type: 'string' },
  out: { type: 'string' },
  all: { type: 'boolean' },
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
      await listen({ ...target, signal: stop.signal, now: Date.now, print });
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
    takes: ['server', 'key'],
    needs: 1,
    most: Number.POSITIVE_INFINITY,
    missing: 'Missing ID: give dlv_…, wh_… or form_…',
    run: (service, ...ids) => replay({ ...transportTo(service), ids, print }),
  },
  mcp: {
    takes: ['server', 'key'],
    run: (service) => bridgeMcp({ ...reached(service), input: process.stdin, output: process.stdout }),
  },
  'forms plan': formsCommand('plan', ['prune', 'json']),
  'forms apply': formsCommand('apply', ['prune', 'json', 'yes', 'allow-breaking']),
  'forms export': formsCommand('export', []),
  'forms types': {
    takes: ['server', 'key', 'lang', 'out', 'all'],
    most: 1,
    run({ lang, out, all = false, ...given }, form) {
      if (out === undefined) throw new UsageError('--out is missing: the folder for the types');
      if ((form === undefined) !== all) throw new UsageError('Give either FORM, an id or a key, or --all');
      return runForms('types', { ...reached(given), folder: out, lang, form });
    },
  },
};

try {
  const [command, ...rest] = process.argv.slice(2);
  if (command === undefined || process.argv.includes('--help') || process.argv.includes('-h')) {
    const words = process.argv.slice(2);
    const end = words.findIndex((word) => word.startsWith('-'));
    process.stdout.write(help(words.slice(0, end === -1 ? words.length : end)));
  } else if (command === 'admin') {
    const { runAdminCommand } = await import('./admin/main.ts');
    await runAdminCommand(rest, { env: process.env, now: Date.now, print, note });
  } else {
    await readCommand(process.argv.slice(2), { commands, options })();
  }
} catch (error) {
  if (!(error instanceof UsageError || error instanceof RefusedError)) throw error;
  process.stderr.write(`${error.message}\n`);
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
  process.stdout.write(`${line}\n`);
}

/** What is no result: standard output is for scripts to read. */
function note(line: string): void {
  process.stderr.write(`${line}\n`);
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

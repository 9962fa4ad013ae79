import { parseArgs } from 'node:util';
import { createConnectTransport } from '@connectrpc/connect-node';
import { newWebhookSecret } from '../domain/secrets.ts';
import { type ListenOptions, listen, RefusedError } from './listen.ts';

const usage = `Usage: npm run cli -- listen --forward URL [options]

Posts the service's events, as they happen, to an address on this machine: signed as a webhook's,
so that a receiver can be developed without a public endpoint.

  --forward URL   where to post each event, such as http://localhost:3000/hook
  --form ID       only events of this form
  --server URL    the service (default: http://localhost:8080)
  --key KEY       an API key with the scope webhooks:write (default: the variable KEY)
  --secret TEXT   what to sign with (default: a new secret, printed at the start)
`;

/** What was typed makes no sense. */
class UsageError extends Error {
  override name = 'UsageError';
  constructor(message: string) {
    super(`${message}\nTry: npm run cli -- --help`);
  }
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
try {
  const options = readOptions(process.argv.slice(2), process.env);
  if (options === undefined) process.stdout.write(usage);
  else await listen(options);
} catch (error) {
  if (!(error instanceof UsageError || error instanceof RefusedError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

/** Undefined if help is asked for. */
function readOptions(args: string[], env: NodeJS.ProcessEnv): ListenOptions | undefined {
  const { values, positionals } = parse(args);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) return undefined;
  if (command !== 'listen' || rest.length > 0)
    throw new UsageError(`Unknown command: ${positionals.join(' ')}`);
  const { form = '', key = env.KEY ?? '', secret } = values;
  if (values.forward === undefined) throw new UsageError('--forward is missing: where are events to go?');
  if (key === '') throw new UsageError('No API key: give --key, or set the variable KEY');
  if (secret === '') throw new UsageError('--secret: Expected a text');
  return {
    forward: httpUrl('--forward', values.forward),
    transport: createConnectTransport({
      baseUrl: httpUrl('--server', values.server ?? 'http://localhost:8080'),
      httpVersion: '1.1',
    }),
    form,
    key,
    secret: secret ?? newWebhookSecret(),
    signal: stop.signal,
    now: Date.now,
    print: (line) => process.stdout.write(`${line}\n`),
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

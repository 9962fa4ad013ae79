import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { create, type DescMessage, type DescService, type Message } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { Code, ConnectError } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { beforeAll, describe, expect, it } from 'vitest';
import { AdminService } from '../../gen/headlessforms/internal/v1/admin_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { printable } from '../../src/telemetry/printable.ts';
import { program } from '../support/programs.ts';
import { temporaryFolder } from '../support/spawn.ts';

/** It would color, retitle, clear, turn around and end the line, and begin one of its own. */
const hostile =
  'Ada\u001b[31m\u001b]0;title\u0007\u009b2J\b\r\nFORGED\u2028\u2029\u202e\u2066\u200f\u061c\ufeff\u{e0041}\0';

/** What each command is typed with, by its line in the help. `F` is the folder of the test, `S` the service. */
const typed: Record<string, string> = {
  'listen --forward URL [options]': 'listen --forward S/hook --server S --key k',
  'trigger EVENT --forward URL [--secret TEXT]': 'trigger X --forward S/hook',
  'replay ID… [--missed-since TIME] [--server URL] [--key KEY]': 'replay dlv_X wh_1 --server S --key k',
  'mcp [--server URL] [--key KEY]': 'mcp --server S --key k',
  'forms plan DIR [--prune] [--json] [--managed-by NAME]': 'forms plan F/forms --prune --server S --key k',
  'forms apply DIR [--yes] [--prune] [--allow-breaking] [--json] [--managed-by NAME]':
    'forms apply F/forms --yes --prune --allow-breaking --server S --key k',
  'forms export DIR [--managed-by NAME]': 'forms export F/export --server S --key k',
  'forms types FORM --lang LANG --out DIR': 'forms types X --lang ts --out F/out --server S --key k',
  'forms types --all --lang LANG --out DIR': 'forms types --all --lang ts --out F/out --server S --key k',
  'forms types --file FILE --lang LANG --out DIR':
    'forms types --file F/forms/good.form.json --lang ts --out F/out --server S --key k',
  'forms test DIR': 'forms test F/tested',
  'admin keys create [--name TEXT] [--scopes LIST] [--project NAME] [--expires-in SECONDS]':
    'admin keys create --name X --project X --scopes X',
  'admin keys list [--project NAME]': 'admin keys list --project X',
  'admin keys revoke [--revoke-children | --keep-children] ID': 'admin keys revoke key_X',
  'admin owners sign-out ADDRESS': 'admin owners sign-out X',
  'admin vacuum [--full]': 'admin vacuum',
  'admin projects': 'admin projects',
  'admin webhooks failing': 'admin webhooks failing',
  'admin backup [--without-secrets] FILE': 'admin backup F/backup.tar.gz',
  'admin rotate-secrets --yes': 'admin rotate-secrets --yes',
  'admin restore [--check] [--allow-missing-files] FILE': 'admin restore --check F/X',
  'admin migrate': 'admin migrate',
  'admin doctor': 'admin doctor',
  'admin export PROJECT FOLDER': 'admin export X F/project',
  'admin erase PROJECT [--value TEXT [--include-mentions]] --yes': 'admin erase X --yes',
};

it('every command that the help names is tried with hostile texts', async () => {
  const help = await run(['--help'], {});

  const named = [...help.matchAll(/^(?:Usage:| {6}) npm run cli -- (.*)$/gm)].map(([, synopsis]) => synopsis);
  expect(Object.keys(typed)).toEqual(named);
});

describe.each(['replies', 'errors'] as const)('a service with hostile texts in its %s', (kind) => {
  const outputs = new Map<string, string>();

  beforeAll(async () => {
    using folder = temporaryFolder();
    await using service = await serve(kind, [FormsService, WebhooksService]);
    const dataDir = join(folder.path, 'data');
    mkdirSync(dataDir);
    await using _ = await serve(kind, [AdminService], join(dataDir, 'admin.sock'));
    mkdirSync(join(folder.path, 'forms'));
    const form = { name: hostile, fields: [{ id: 'a', type: hostile }] };
    writeFileSync(join(folder.path, 'forms', 'good.form.json'), JSON.stringify(goodForm));
    mkdirSync(join(folder.path, 'tested'));
    writeFileSync(join(folder.path, 'tested', 'good.form.json'), JSON.stringify(goodForm));
    const cases = [{ name: hostile, answers: { [hostile]: hostile }, accepted: true }];
    writeFileSync(join(folder.path, 'tested', 'good.test.json'), JSON.stringify(cases));
    if (kind === 'errors') {
      writeFileSync(
        join(folder.path, 'forms', `${hostile.replaceAll(/[/\0]/g, '')}.form.json`),
        JSON.stringify(form),
      );
    }
    const waiting = Object.entries(typed);
    const runNext = async (): Promise<void> => {
      const [synopsis, words] = waiting.pop() ?? [];
      if (synopsis === undefined || words === undefined) return;
      // No argument can have a NUL.
      const text = hostile.replace('\0', '');
      const args = words
        .split(' ')
        .map((word) => word.replace(/^F/, folder.path).replace(/^S/, service.url).replace('X', text));
      outputs.set(synopsis, await run(args, { DATA_DIR: dataDir, PORT: '1', GRPC_PORT: '1' }));
      await runNext();
    };
    await Promise.all(Array.from({ length: 4 }, runNext));
  });

  // The bridge of MCP passes JSON on, as it is.
  it.each(Object.keys(typed).filter((synopsis) => !synopsis.startsWith('mcp ')))(
    'shows no text of a stranger as anything but text: %s',
    (synopsis) => {
      const output = outputs.get(synopsis) ?? '';

      const lines = output.split('\n');
      expect(lines.filter((line) => line !== printable(line))).toEqual([]);
      expect(lines.filter((line) => line.startsWith('FORGED'))).toEqual([]);
    },
  );

  it('is shown as it is by most commands', () => {
    const shown = [...outputs]
      .filter(([, output]) => output.includes('Ada\\u001b[31m'))
      .map(([name]) => typed[name]);

    expect(shown.length).toBeGreaterThan(10);
  });
});

const goodForm = { key: 'good', owner: 'o@example.com', name: 'Good', fields: [{ id: 'a', type: 'text' }] };

/** What a command writes to both of its outputs, in the order of the streams. */
async function run(args: string[], env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [...program('cli'), ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  let output = '';
  const read = (text: string) => {
    output += text;
    // It listens until it is told to stop.
    if (args[0] === 'listen' && / ms$|no answer/m.test(output)) child.kill('SIGTERM');
  };
  child.stdout.setEncoding('utf8').on('data', read);
  child.stderr.setEncoding('utf8').on('data', read);
  await once(child, 'close');
  return output;
}

/** A service that gives hostile texts wherever its replies hold any, or fails with them. */
async function serve(kind: 'replies' | 'errors', services: DescService[], path?: string) {
  const answer = (output: DescMessage) => {
    if (kind === 'errors') throw new ConnectError(hostile, Code.InvalidArgument);
    return filled(output);
  };
  const handler: RequestListener = connectNodeAdapter({
    routes: (router) => {
      for (const service of services) {
        const implementation = service.methods.map((method) => [
          method.localName,
          method.methodKind === 'server_streaming'
            ? async function* () {
                yield answer(method.output);
              }
            : () => answer(method.output),
        ]);
        router.service(service, Object.fromEntries(implementation));
      }
    },
    fallback: (_request, response) => response.end(JSON.stringify({ result: hostile })),
  });
  const server = createServer(handler);
  server.listen(path ?? 0);
  await once(server, 'listening');
  const { port } = path === undefined ? (server.address() as AddressInfo) : { port: 0 };
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A message with a text in every field of it and of those inside, up to a depth, but for tokens of a next page. */
function filled(schema: DescMessage, depth = 0): Message {
  const message = reflect(schema, create(schema));
  for (const field of schema.fields) {
    if (depth > 4 || field.name === 'next_page_token') continue;
    fill(message, field, depth);
  }
  return message.message as Message;
}

function fill(message: ReflectMessage, field: DescMessage['fields'][number], depth: number): void {
  const inner = (of: DescMessage) => reflect(of, filled(of, depth + 1));
  const isWellKnown = (of: DescMessage) => of.typeName.startsWith('google.');
  if (field.fieldKind === 'scalar' && field.scalar === 9) message.set(field, hostile);
  if (field.fieldKind === 'message' && !isWellKnown(field.message)) message.set(field, inner(field.message));
  if (field.fieldKind === 'list') {
    const isText = field.listKind === 'scalar' && field.scalar === 9;
    if (isText) message.get(field).add(hostile);
    if (field.listKind === 'message' && !isWellKnown(field.message))
      message.get(field).add(inner(field.message));
  }
  if (field.fieldKind === 'enum') message.set(field, field.enum.values[2]?.number ?? 0);
}

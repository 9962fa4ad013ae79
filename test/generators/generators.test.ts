import { execFile } from 'node:child_process';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { checkEvent } from '../support/openapi.ts';
import { startReceiver } from '../support/receiver.ts';
import { startService, type TestService } from '../support/server.ts';
import { temporaryFolder } from '../support/spawn.ts';

const opened = new AsyncDisposableStack();
let service: TestService;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let folder: string;

const modules = join(import.meta.dirname, '../../node_modules');

beforeAll(async () => {
  service = opened.use(await startService());
  receiver = opened.use(await startReceiver());
  folder = opened.use(temporaryFolder()).path;
  cpSync(join(import.meta.dirname, 'flows'), folder, { recursive: true });
  symlinkSync(modules, join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
  writeFileSync(join(folder, 'openapi.json'), (await service.get('/openapi.json')).text);
  await Promise.all([
    generate('openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'openapi.d.ts'),
    generate('@hey-api/openapi-ts/dist/run.mjs', '-i', 'openapi.json', '-o', 'hey-api', '--silent'),
  ]);
  await run(join(modules, 'typescript/bin/tsc'), '-p', folder);
});

afterAll(() => opened.disposeAsync());

it.each(['openapi-fetch', 'hey-api'])(
  'a client generated for %s compiles and does the flow',
  async (name) => {
    const before = receiver.received.length;

    const { stdout } = await run(join(folder, 'built', `${name}.js`));

    expect(JSON.parse(stdout)).toEqual({
      status: 'published',
      required: [true, false, false],
      theme: 'auto',
      secret: 'whsec_',
      repeated: true,
      problems: ['answers.email: invalid_type', 'answers.phone: unrecognized_keys'],
      listed: [name],
      next_cursor: null,
      session: 'submitted',
      exported: 2,
      requestId: true,
    });
    for (const { body } of await receiver.expectRequests(before + 2)) checkEvent(body);
  },
);

/** Runs a generator in the folder, with the compiler API that it needs. */
function generate(program: string, ...args: string[]) {
  return run('--import', join(import.meta.dirname, 'compiler-api.mjs'), join(modules, program), ...args);
}

function run(...args: string[]) {
  return promisify(execFile)(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env.PATH, SERVICE: service.url, KEY: service.key, HOOK: `${receiver.url}/hook` },
  });
}

const tsconfig = {
  compilerOptions: {
    strict: true,
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    skipLibCheck: true,
    outDir: 'built',
  },
  files: ['openapi-fetch.ts', 'hey-api.ts'],
};

import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';
import { expectedOutput, type Given, givenLargeForm } from './given.ts';
import { useDebianModules } from './go-modules.ts';

/** The examples, each with a command that succeeds where its toolchain is installed, and the check of the rest. */
const examples: Language[] = [
  { name: 'node', check: 'true', run: [process.execPath, 'main.ts'] },
  {
    name: 'python',
    check: 'command -v protoc grpc_python_plugin && python3 -c "import grpc"',
    run: ['python3', 'main.py'],
    operations: ['python3', '../../test/clients/python/check.py'],
  },
  {
    name: 'ruby',
    check: 'command -v protoc grpc_ruby_plugin && ruby -e "require :grpc.to_s"',
    run: ['ruby', 'main.rb'],
    operations: ['ruby', '../../test/clients/ruby/check.rb'],
  },
  {
    name: 'go',
    check:
      'command -v go protoc-gen-go protoc-gen-go-grpc && test -d /usr/share/gocode/src/google.golang.org/grpc',
    run: ['go', 'run', '.'],
    operations: ['go', 'run', '../../test/clients/go/check.go'],
  },
  {
    name: 'cpp',
    check: 'command -v g++ make protoc grpc_cpp_plugin && pkg-config --exists grpc++ protobuf libcrypto',
    run: ['sh', '-c', 'make -j2 gen/main >gen/make.log 2>&1 && ./gen/main'],
    operations: [
      'sh',
      '-c',
      `make -j2 gen/main >gen/make.log 2>&1
      libraries='grpc++ protobuf'
      g++ -std=c++17 -Igen $(pkg-config --cflags $libraries) -o gen/check ../../test/clients/cpp/check.cc \
        gen/headlessforms/v1/*.o $(pkg-config --libs $libraries) && ./gen/check`,
    ],
  },
];

/** Those that are wanted: `CLIENTS=python,go npm run test:clients`; by default all. */
const wanted = process.env.CLIENTS?.split(',');
const languages = examples.filter(({ name }) => wanted?.includes(name) ?? true);

const root = join(import.meta.dirname, '../..');
// Debian's interpreters have Debian's packages.
const env: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `/usr/bin:${root}/node_modules/.bin:${process.env.PATH}`,
};

const missing = languages.filter(({ check }) => spawnSync('sh', ['-c', check], { env }).status !== 0);
const installed = languages.filter((language) => !missing.includes(language));
if (missing.length > 0) console.warn(`Left out: ${missing.map(({ name }) => name).join(', ')}`);

/** The compiler takes some minutes for C++, and has a machine that may do more. */
const BUILD_MS = 900_000;

let service: TestService;
let given: Given;

beforeAll(async () => {
  service = await startService();
  given = await givenLargeForm(service);
  await Promise.all(installed.map((language) => run('buf', ['generate'], { cwd: folderOf(language), env })));
  for (const language of installed.filter(({ name }) => name === 'go')) {
    const flags = useDebianModules(join(folderOf(language), 'gen'));
    Object.assign(env, { GOFLAGS: flags.join(' '), GOPROXY: 'off' });
  }
}, 120_000);
afterAll(() => service[Symbol.asyncDispose]());

it('misses no toolchain in CI', () => {
  expect(process.env.CI === 'true' ? missing.map(({ name }) => name) : []).toEqual([]);
});

it.each(installed)(
  'the client in $name does everything, and reads the typed errors',
  async (language) => {
    const output = await outputOf(language, language.run);

    expect(output.split('\n')).toEqual([
      expect.stringMatching(/^activated form_\w+$/),
      expect.stringMatching(/^submitted sub_\w+$/),
      expect.stringMatching(/^refused answers\.email: (VIOLATION_CODE_)?INVALID_STRING$/),
      expect.stringMatching(/^refused answers\.phone: (VIOLATION_CODE_)?UNRECOGNIZED_KEYS$/),
      expect.stringMatching(/^listed .*ada@example\.com/),
      expect.stringMatching(/^session (SESSION_STATUS_)?SUBMITTED$/),
      'exported 2 lines',
      'webhook signature valid',
      '',
    ]);
  },
  BUILD_MS,
);

it.each(installed.filter(({ operations }) => operations !== undefined))(
  'the client in $name reads compressed, large and late replies by gRPC, and does everything by Connect in JSON',
  async (language) => {
    const output = await outputOf(language, language.operations ?? []);

    expect(output.split('\n')).toEqual(expectedOutput);
  },
  BUILD_MS,
);

/** What a command prints in the folder of an example. */
async function outputOf(language: Language, [command = '', ...args]: string[]): Promise<string> {
  const targets = {
    API_KEY: service.key,
    GRPC_TARGET: new URL(service.grpcUrl).host,
    HTTP_TARGET: new URL(service.url).host,
    FORM_ID: given.formId,
    LARGE_FORM_ID: given.largeFormId,
    UPLOAD_ID: given.uploadId,
  };
  const { stdout } = await run(command, args, { cwd: folderOf(language), env: { ...env, ...targets } });
  return stdout;
}

function folderOf({ name }: Language): string {
  return join(root, 'examples', name);
}

const run = promisify(execFile);

type Language = { name: string; check: string; run: string[]; operations?: string[] };

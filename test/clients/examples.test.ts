import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';

/** The examples, each with a command that succeeds where its toolchain is installed. */
const examples: Language[] = [
  { name: 'node', check: 'true', run: [process.execPath, 'main.ts'] },
  {
    name: 'python',
    check: 'command -v protoc grpc_python_plugin && python3 -c "import grpc"',
    run: ['python3', 'main.py'],
  },
  {
    name: 'ruby',
    check: 'command -v protoc grpc_ruby_plugin && ruby -e "require :grpc.to_s"',
    run: ['ruby', 'main.rb'],
  },
  {
    name: 'go',
    check:
      'command -v go protoc-gen-go protoc-gen-go-grpc && test -d /usr/share/gocode/src/google.golang.org/grpc',
    run: ['sh', '-c', 'GO111MODULE=off GOPATH=$PWD/gen:/usr/share/gocode go run main.go'],
  },
  {
    name: 'cpp',
    check: 'command -v g++ make protoc grpc_cpp_plugin && pkg-config --exists grpc++ protobuf libcrypto',
    run: ['sh', '-c', 'make -j2 gen/main >gen/make.log 2>&1 && ./gen/main'],
  },
];

/** Those that are wanted: `CLIENTS=python,go npm run test:clients`; by default all. */
const wanted = process.env.CLIENTS?.split(',');
const languages = examples.filter(({ name }) => wanted?.includes(name) ?? true);

const root = join(import.meta.dirname, '../..');
// Debian's interpreters have Debian's packages.
const env = { ...process.env, PATH: `/usr/bin:${root}/node_modules/.bin:${process.env.PATH}` };

const missing = languages.filter(({ check }) => spawnSync('sh', ['-c', check], { env }).status !== 0);
const installed = languages.filter((language) => !missing.includes(language));
if (missing.length > 0) console.warn(`Left out: ${missing.map(({ name }) => name).join(', ')}`);

/** The compiler takes most of a minute for C++ on two cores that have nothing else to do. */
const BUILD_MS = 300_000;

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service[Symbol.asyncDispose]());

it('misses no toolchain in CI', () => {
  expect(process.env.CI === 'true' ? missing.map(({ name }) => name) : []).toEqual([]);
});

it.each(installed)(
  'the client in $name does everything, and reads the typed errors',
  async (language) => {
    const [command = '', ...args] = language.run;
    const cwd = join(root, 'examples', language.name);
    const target = new URL(service.grpcUrl).host;

    await run('buf', ['generate'], { cwd, env });
    const started = run(command, args, { cwd, env: { ...env, API_KEY: service.key, GRPC_TARGET: target } });

    const { stdout: output } = await started;

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

const run = promisify(execFile);

type Language = { name: string; check: string; run: string[] };

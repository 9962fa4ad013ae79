import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startService, type TestService } from '../support/server.ts';
import { expectedOutput, type Given, givenLargeForm, repeated } from './given.ts';
import { type LossyProxy, startLossyProxy } from './lossy-proxy.ts';
import {
  ANSWERS_PROTO,
  givenTypedForm,
  givenUploads,
  storedAnswers,
  type TypedForm,
  withoutUploads,
  writeProto,
} from './typed.ts';

/** What a gRPC client in Java needs of Debian's packages. */
const jars =
  `grpc-api grpc-context grpc-core grpc-netty grpc-protobuf grpc-protobuf-lite grpc-stub netty-buffer
  netty-codec netty-codec-http netty-codec-http2 netty-common netty-handler netty-handler-proxy netty-resolver
  netty-transport netty-transport-native-unix-common geronimo-annotation-1.3-spec gson guava perfmark-api protobuf
  protobuf-util proto-google-common-protos`
    .split(/\s+/)
    .map((name) => `/usr/share/java/${name}.jar`);

/** A program in Java, with the code that is generated beside the example. */
const inJava = (source: string, name: string) => [
  'sh',
  '-c',
  `javac -nowarn -cp ${jars.join(':')} -d gen/classes $(find gen -name '*.java') ${source} &&
  java -cp gen/classes:${jars.join(':')} ${name}`,
];

/** What the checks in Go import beside what the example does is not vendored: they take Debian's packages as they are. */
const debianModules = ['-mod=mod', '-modfile=gen/debian.mod', '-overlay=gen/overlay.json'];

/** The examples, each with a command that succeeds where its toolchain is installed, and the check of the rest. */
const examples: Language[] = [
  {
    name: 'node',
    check: 'true',
    run: [process.execPath, 'main.ts'],
    answers: { local: 'protoc-gen-es', out: 'gen/answers', opt: ['target=js', 'import_extension=js'] },
    typed: [process.execPath, '../../test/clients/node/typed.mjs'],
  },
  {
    name: 'python',
    check: 'command -v protoc grpc_python_plugin protoc-gen-mypy mypy && python3 -c "import grpc"',
    prepare: ['buf', 'generate', '--template', 'buf.gen.types.yaml'],
    run: ['python3', 'main.py'],
    operations: ['python3', '../../test/clients/python/check.py'],
    answers: { protoc_builtin: 'python', out: 'gen/answers' },
    typed: ['python3', '../../test/clients/python/typed.py'],
  },
  {
    name: 'ruby',
    check: 'command -v protoc grpc_ruby_plugin && ruby -e "require :grpc.to_s"',
    run: ['ruby', 'main.rb'],
    operations: ['ruby', '../../test/clients/ruby/check.rb'],
    answers: { protoc_builtin: 'ruby', out: 'gen/answers' },
    typed: ['ruby', '../../test/clients/ruby/typed.rb'],
  },
  {
    name: 'go',
    check:
      'command -v go protoc-gen-go protoc-gen-go-grpc && test -d /usr/share/gocode/src/google.golang.org/grpc',
    prepare: ['./vendor-debian.sh'],
    run: ['go', 'run', '-mod=vendor', '-modfile=gen/debian.mod', '.'],
    operations: ['go', 'run', ...debianModules, '../../test/clients/go/check.go'],
    answers: {
      local: 'protoc-gen-go',
      out: 'gen',
      opt: [
        'module=example.com/client/gen',
        `M${ANSWERS_PROTO}=example.com/client/gen/headlessforms/generated/every_type`,
      ],
    },
    typed: ['go', 'run', ...debianModules, '../../test/clients/go/typed/typed.go'],
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
    answers: { protoc_builtin: 'cpp', out: 'gen' },
    typed: [
      'sh',
      '-c',
      `make -j2 gen/main >gen/make.log 2>&1
      libraries='grpc++ protobuf'
      g++ -std=c++17 -Igen $(pkg-config --cflags $libraries) -o gen/typed ../../test/clients/cpp/typed.cc \
        gen/headlessforms/generated/every_type/every_type_answers.pb.cc gen/headlessforms/v1/*.o \
        $(pkg-config --libs $libraries) && ./gen/typed`,
    ],
  },
  {
    name: 'java',
    check: `command -v javac protoc grpc_java_plugin && ls ${jars.join(' ')}`,
    run: inJava('Main.java', 'Main'),
    answers: { protoc_builtin: 'java', out: 'gen' },
    typed: inJava('../../test/clients/java/Typed.java', 'Typed'),
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
  // Go's modules come from Debian's packages, and from nowhere else.
  GOFLAGS: '',
  GOPROXY: 'off',
  GOMODCACHE: join(root, 'examples/go/gen/no-modules'),
};

const missing = languages.filter(({ check }) => spawnSync('sh', ['-c', check], { env }).status !== 0);
const installed = languages.filter((language) => !missing.includes(language));
if (missing.length > 0) console.warn(`Left out: ${missing.map(({ name }) => name).join(', ')}`);

/** The compiler takes some minutes for C++, and has a machine that may do more. */
const BUILD_MS = 900_000;

const opened = new AsyncDisposableStack();
let service: TestService;
let lossy: LossyProxy;
let given: Given;
let typed: TypedForm;

beforeAll(async () => {
  service = opened.use(await startService());
  lossy = opened.use(await startLossyProxy(service));
  given = await givenLargeForm(service);
  typed = await givenTypedForm(service);
  await Promise.all(
    installed.map(async (language) => {
      const cwd = folderOf(language);
      await run('buf', ['generate'], { cwd, env });
      const template = JSON.stringify({ version: 'v2', plugins: [language.answers] });
      await run('buf', ['generate', writeProto(cwd, typed), '--template', template], { cwd, env });
      const [command, ...args] = language.prepare ?? [];
      if (command !== undefined) await run(command, args, { cwd, env });
    }),
  );
}, BUILD_MS);
afterAll(() => opened.disposeAsync());

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
  'the client in $name reads compressed, large, late and lost replies by gRPC, and does everything by Connect in JSON',
  async (language) => {
    const output = await outputOf(language, language.operations ?? []);

    expect(output.split('\n')).toEqual(expectedOutput);
    expect(lossy.takeCalls()).toEqual(repeated(2));
  },
  BUILD_MS,
);

it.runIf(installed.some(({ name }) => name === 'python'))(
  'the client in Python fits the types of the generated code, which refuse a wrong value',
  async () => {
    const cwd = join(root, 'examples/python');
    const types = { ...env, MYPYPATH: 'gen/types:typings' };
    const mypy = async (...args: string[]) => {
      const checked = run('mypy', ['--strict', '--cache-dir=gen/mypy', ...args], { cwd, env: types });
      return (await checked.catch((error: { stdout: string }) => error)).stdout;
    };
    const wrong = `from headlessforms.v1 import definition_pb2\ndefinition_pb2.FormField(required="yes")`;

    expect(await mypy('main.py')).toBe('Success: no issues found in 1 source file\n');
    expect(await mypy('-c', wrong)).toMatch(/Argument "required" to "FormField" has incompatible type "str"/);
  },
  BUILD_MS,
);

it.each(installed)(
  'the message of answers in $name reads and sends every type of field, and keeps what it does not know',
  async (language) => {
    const uploadIds = await givenUploads(service, typed.formId);
    const output = await outputOf(language, language.typed, {
      FORM_ID: typed.formId,
      SUBMISSION_ID: typed.submissionId,
      UPLOAD_IDS: uploadIds.join(),
      NEWER: typed.newer,
      NEWER_JSON: JSON.stringify(typed.newerJson),
    });

    const [read = '', whole, sent = '', kept = '', strict, ignored = '', end] = output.split('\n');
    const jsonOf = (line: string) => JSON.parse(line.slice(line.indexOf(' ')));
    expect(jsonOf(read)).toEqual(typed.stored);
    expect(whole).toBe('whole 2147483646 5 3 Ada');
    const stored = await storedAnswers(service, sent.replace('sent ', ''));
    expect(withoutUploads(stored)).toEqual(withoutUploads(typed.stored));
    expect(stored).toMatchObject({ file: { upload_id: uploadIds[0] }, files: [{ upload_id: uploadIds[1] }] });
    expect(typed.readNewer(kept.replace('kept ', ''))).toEqual(typed.readNewer(typed.newer));
    expect(strict).toBe('refused');
    expect(jsonOf(ignored)).toEqual(typed.stored);
    expect(end).toBe('');
  },
  BUILD_MS,
);

/** What a command prints in the folder of an example. */
async function outputOf(
  language: Language,
  [command = '', ...args]: string[],
  more: NodeJS.ProcessEnv = {},
): Promise<string> {
  const targets = {
    API_KEY: service.key,
    GRPC_TARGET: new URL(service.grpcUrl).host,
    HTTP_TARGET: new URL(service.url).host,
    LOSSY_GRPC_TARGET: new URL(lossy.grpcUrl).host,
    LOSSY_HTTP_TARGET: new URL(lossy.url).host,
    FORM_ID: given.formId,
    LARGE_FORM_ID: given.largeFormId,
    UPLOAD_ID: given.uploadId,
  };
  const { stdout } = await run(command, args, {
    cwd: folderOf(language),
    // Go's library repeats calls where it is asked to, in older versions.
    env: { ...env, GRPC_GO_RETRY: 'on', ...targets, ...more },
  });
  return stdout;
}

function folderOf({ name }: Language): string {
  return join(root, 'examples', name);
}

const run = promisify(execFile);

/**
 * `prepare` comes after the code is generated. `answers` is the plugin of buf that generates the message of answers, which
 * the command `typed` uses.
 */
type Language = {
  name: string;
  check: string;
  prepare?: string[];
  run: string[];
  operations?: string[];
  answers: object;
  typed: string[];
};

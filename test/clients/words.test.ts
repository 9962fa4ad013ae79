import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { VersionToDescribe } from '../../src/domain/contracts/answers-file.ts';
import { firstContract } from '../../src/domain/contracts/contract.ts';
import { generateSchema } from '../../src/domain/contracts/generate.ts';
import { formLimits } from '../../src/domain/limits/limits.ts';
import { givenDefinition, options } from '../domain/given.ts';
import { temporaryFolder } from '../support/spawn.ts';

/*
 * Names of fields that generated code could not have: what is generated of forms with a field for each compiles in every
 * language of the documents, and each field is written and read by its name where that is known only when it runs.
 */

const words = [
  // Python
  'False None True and as assert async await break class continue def del elif else except finally for from global if ' +
    'import in is lambda nonlocal not or pass raise return try while with yield match self print',
  // C and C++
  'alignas alignof and_eq asm auto bitor bool catch char char8_t char16_t concept consteval const const_cast ' +
    'constexpr co_await decltype default delete do double enum explicit export extern float friend goto inline int long ' +
    'mutable namespace new noexcept nullptr operator private protected public register requires short signed sizeof ' +
    'static static_assert static_cast struct switch template this throw typedef typeid typename typeof union unsigned ' +
    'using virtual void volatile xor NULL errno unix linux stdin stdout stderr offsetof alloca major minor min max',
  // Java, Go, JavaScript
  'abstract boolean byte extends final implements instanceof interface native package super synchronized throws var ' +
    'null chan defer func go map range select type string error function let constructor prototype toString toJSON ' +
    'valueOf hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString arguments eval',
  // Ruby, and what messages have
  'BEGIN END begin end ensure module next nil redo rescue then undef unless until when clone display dup extend ' +
    'freeze hash inspect itself method methods objectId send tap to_s to_h publicSend ProtoReflect Reset ProtoMessage ' +
    'Marshal Descriptor descriptor defaultInstance unknown_fields all_fields serializedSize swap clear CopyFrom parser ' +
    'builder getClass google protobuf std message value key',
].flatMap((line) => line.split(' '));

/** Each compiles and checks what is generated of a folder of proto files; the check says what it needs. */
const languages: Language[] = [
  {
    name: 'node',
    check: 'true',
    plugin: { local: 'protoc-gen-es', out: 'gen', opt: ['target=ts', 'import_extension=ts'] },
    run: `node check.mjs && tsc --ignoreConfig --noEmit --strict --skipLibCheck --allowImportingTsExtensions \
      --module nodenext --types '' $(find gen -name '*.ts')`,
    files: {
      'package.json': '{ "type": "module" }',
      // Not set, each is undefined, under a name without an escape.
      'check.mjs': `import { create } from '@bufbuild/protobuf';
        import { globSync } from 'node:fs';
        for (const file of globSync('gen/**/*_pb.ts')) {
          const [schema] = Object.values(await import('./' + file)).filter((each) => each.fields !== undefined);
          const message = create(schema);
          for (const { name, localName } of schema.fields)
            if (localName.includes('$') || (message[localName] ?? '').length > 0) throw new Error(name);
        }`,
    },
  },
  {
    name: 'python',
    check: 'command -v protoc && /usr/bin/python3 -c "import google.protobuf"',
    plugin: { protoc_builtin: 'python', out: 'gen' },
    run: '/usr/bin/python3 check.py',
    files: {
      'check.py': `import glob, importlib, sys
sys.path.insert(0, 'gen')
for path in glob.glob('gen/**/*_pb2.py', recursive=True):
    module = importlib.import_module(path[4:-3].replace('/', '.'))
    for message in module.DESCRIPTOR.message_types_by_name.values():
        read = {'m': message._concrete_class()}
        for field in message.fields:
            if field.label == field.LABEL_REPEATED:
                exec(f"m.{field.name}.append('x'); assert m.{field.name} == ['x']", read)
            else:
                exec(f"m.{field.name} = 'x'; assert m.{field.name} == 'x'", read)
`,
    },
  },
  {
    name: 'ruby',
    check: 'command -v protoc && ruby -e "require %q(google/protobuf)"',
    plugin: { protoc_builtin: 'ruby', out: 'gen' },
    run: 'ruby check.rb',
    files: {
      'check.rb': `require 'google/protobuf'
Dir['gen/**/*_pb.rb'].each { |path| require "./#{path}" }
%w[First Second Third].each do |name|
  type = Google::Protobuf::DescriptorPool.generated_pool.lookup("headlessforms.generated.#{name.downcase}.#{name}Answers")
  type.each do |field|
    message = type.msgclass.new
    value = field.label == :repeated ? ['x'] : 'x'
    eval("message.#{field.name} #{field.label == :repeated ? '+=' : '='} value")
    raise field.name unless eval("message.#{field.name}") == value
  end
end
`,
    },
  },
  {
    name: 'go',
    check: 'command -v go protoc-gen-go && test -d /usr/share/gocode/src/google.golang.org/protobuf',
    plugin: { local: 'protoc-gen-go', out: 'path/src' },
    run: 'GO111MODULE=off GOPATH=$PWD/path:/usr/share/gocode go build headlessforms.example/go/...',
    files: {},
  },
  {
    name: 'cpp',
    check: 'command -v g++ protoc && pkg-config --exists protobuf',
    plugin: { protoc_builtin: 'cpp', out: 'gen' },
    // With the macros of what programs include, in the dialects that compilers begin with.
    run: `for file in $(find gen -name '*.cc'); do for std in gnu++17 gnu++20; do
      g++ -std=$std -w -fsyntax-only -Igen $(pkg-config --cflags protobuf) -include cassert -include cerrno \
        -include cstdio -include cstddef $file || exit 1
    done; done`,
    files: {},
  },
  {
    name: 'java',
    check: 'command -v javac protoc && ls /usr/share/java/protobuf.jar',
    plugin: { protoc_builtin: 'java', out: 'gen' },
    run: "javac -nowarn -cp /usr/share/java/protobuf.jar -d classes $(find gen -name '*.java')",
    files: {},
  },
];

const wanted = process.env.CLIENTS?.split(',');
const root = join(import.meta.dirname, '../..');
const env = { ...process.env, PATH: `${root}/node_modules/.bin:/usr/bin:${process.env.PATH}`, GOFLAGS: '' };
const tried = languages.filter(({ name }) => wanted?.includes(name) ?? true);
const missing = tried.filter(({ check }) => spawnSync('sh', ['-c', check], { env }).status !== 0);
const installed = tried.filter((language) => !missing.includes(language));
if (missing.length > 0) console.warn(`Left out: ${missing.map(({ name }) => name).join(', ')}`);

/** The compiler takes some minutes for C++. */
const BUILD_MS = 900_000;

const opened = new AsyncDisposableStack();
let folder: string;

beforeAll(() => {
  folder = opened.use(temporaryFolder()).path;
  for (const { path, content } of files()) {
    mkdirSync(dirname(join(folder, 'proto', path)), { recursive: true });
    writeFileSync(join(folder, 'proto', path), content);
  }
});
afterAll(() => opened.disposeAsync());

it('misses no toolchain in CI', () => {
  expect(process.env.CI === 'true' ? missing.map(({ name }) => name) : []).toEqual([]);
});

it('names every file after its message, so that none takes the place of another', () => {
  const names = files().map(({ path }) => path.split('/').at(-1));

  expect(words.length).toBeGreaterThanOrEqual(190);
  expect(names).toEqual(['first_answers.proto', 'second_answers.proto', 'third_answers.proto']);
});

it.each(installed)(
  'fields that are called as words of languages compile in $name',
  async ({ name, plugin, run, files: given }) => {
    const cwd = join(folder, name);
    mkdirSync(join(cwd, 'classes'), { recursive: true });
    mkdirSync(join(cwd, 'path/src'), { recursive: true });
    for (const [path, text] of Object.entries(given)) writeFileSync(join(cwd, path), text);
    spawnSync('ln', ['-s', join(root, 'node_modules'), join(cwd, 'node_modules')]);
    const template = JSON.stringify({ version: 'v2', plugins: [plugin] });
    await execute('buf', ['generate', '../proto', '--template', template], { cwd, env });

    const outcome = await execute('sh', ['-c', run], { cwd, env, maxBuffer: 2 ** 26 }).catch(
      (error: { stdout: string; stderr: string }) => error,
    );

    expect(`${outcome.stdout}${outcome.stderr}`.slice(0, 3_000)).toBe('');
  },
  BUILD_MS,
);

/** The proto files of forms with a field for each word, texts in one and lists in another, as far as a form has room. */
function files() {
  return ['First', 'Second', 'Third'].flatMap((name, index) => {
    const ids = words.slice(index * formLimits.fields, (index + 1) * formLimits.fields);
    const field = index === 1 ? { type: 'multi_select', options: options('x', 'y') } : { type: 'text' };
    if (ids.length === 0) return [];
    const definition = givenDefinition({ name, fields: ids.map((id) => ({ id, ...field })) });
    const contract = firstContract(name.toLowerCase(), definition);
    const version: VersionToDescribe = {
      formId: 'form_01k',
      version: 1,
      checksum: 'c0ffee',
      definition,
      contract,
    };
    return [generateSchema('proto', version)];
  });
}

const execute = promisify(execFile);

type Language = {
  name: string;
  /** Succeeds where the toolchain is installed. */
  check: string;
  /** Of buf. */
  plugin: object;
  /** Prints nothing if all is well. */
  run: string;
  /** What `run` needs beside the generated code, by path. */
  files: Record<string, string>;
};

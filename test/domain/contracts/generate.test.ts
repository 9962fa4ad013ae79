import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import type { VersionToDescribe } from '../../../src/domain/contracts/answers-file.ts';
import { changesBetween } from '../../../src/domain/contracts/changes.ts';
import { nextContract } from '../../../src/domain/contracts/contract.ts';
import { generateSchema } from '../../../src/domain/contracts/generate.ts';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { createRandom } from '../../days/world/random.ts';
import { temporaryFolder } from '../../support/spawn.ts';
import { givenDefinition, leastField, options, sent } from '../given.ts';
import { corpus } from './corpus.ts';
import { generated, versionOf } from './given.ts';
import { randomFields } from './random-forms.ts';

/** Those that the protos import come in a package of their own. */
const protocFiles = ['/usr/bin/protoc', '/usr/include/google/protobuf/struct.proto'];
const noProtoc = !protocFiles.every((path) => existsSync(path)) && !process.env.CI;

/** Words of target languages, and names of methods of generated messages. */
const reservedWords = (
  'class def import from None self return package func type interface map range select var new delete namespace ' +
  'template union operator int string public void static final native yield await async function constructor ' +
  'toString valueOf prototype descriptor default_instance unknown_fields swap clear name get_name clear_name name_size ' +
  'name_bytes end begin rescue module next nil'
).split(' ');

const everyType = [
  ...fieldTypes.map((type) => ({ id: type, ...leastField(type) })),
  { id: 'whole', type: 'number', step: 2, min: -4, max: 2 ** 31 - 1 },
  { id: 'files', type: 'file', maxFiles: 3, accept: ['image/*'] },
  { id: 'cells', type: 'matrix', rows: options('r', 's'), options: options('x', 'y'), multiple: true },
];

describe('types of answers', () => {
  it.each([
    [{ type: 'text' }, 'optional string'],
    [{ type: 'select', options: options('x') }, 'optional string'],
    [{ type: 'datetime' }, 'optional string'],
    [{ type: 'number' }, 'optional double'],
    [{ type: 'number', min: 0, max: 9 }, 'optional double'],
    [{ type: 'number', step: 1, min: 0 }, 'optional double'],
    [{ type: 'number', step: 0.5, min: 0, max: 9 }, 'optional double'],
    [{ type: 'number', step: 1, min: 0.5, max: 9 }, 'optional double'],
    [{ type: 'number', step: 1, min: 0, max: 2 ** 31 }, 'optional double'],
    [{ type: 'number', step: 1, min: -(2 ** 31) - 1, max: 9 }, 'optional double'],
    [{ type: 'number', step: 1, min: -(2 ** 31), max: 2 ** 31 - 1 }, 'optional int32'],
    [{ type: 'rating' }, 'optional int32'],
    [{ type: 'scale' }, 'optional int32'],
    [{ type: 'checkbox' }, 'optional bool'],
    [{ type: 'multi_select', options: options('x') }, 'repeated string'],
    [{ type: 'ranking', options: options('x', 'y') }, 'repeated string'],
    [{ type: 'file' }, 'optional File'],
    [{ type: 'file', maxFiles: 2 }, 'repeated File'],
    [{ type: 'address' }, 'optional Address'],
    [{ type: 'signature' }, 'optional Signature'],
    [{ type: 'hidden' }, 'optional .google.protobuf.Value'],
    [{ type: 'matrix', rows: options('r'), options: options('x') }, 'map<string, string>'],
    [
      { type: 'matrix', rows: options('r'), options: options('x'), multiple: true },
      'map<string, .google.protobuf.ListValue>',
    ],
  ])('%j is %s', (field, type) => {
    expect(generated('proto', versionOf([{ id: 'it', ...field }]))).toContain(`\n  ${type} it = 1;\n`);
  });
});

it('writes a proto file with the words of the form as comments', () => {
  const fields = [
    { id: 'email', type: 'email', required: true, description: 'So that we\ncan answer. */' },
    { id: 'first-name', type: 'text', maxLength: 80 },
    {
      id: 'size',
      type: 'radio',
      options: options('s', 'm'),
      visibleWhen: { field: 'email', op: 'notEmpty' },
    },
  ];

  expect(generated('proto', versionOf(fields, { name: 'Contact us', description: 'By mail.' }))).toBe(
    `// Answers to the form form_01k, "Contact us", version 1.
// SHA-256 of the version: c0ffee
syntax = "proto3";

package headlessforms.generated.form_01k;

option go_package = "headlessforms.example/go/headlessforms/generated/form_01k;form_01k";
option java_multiple_files = true;

// Contact us
// By mail.
message ContactUsAnswers {
  // Email
  // So that we
  // can answer. */
  // Required
  optional string email = 1;

  // First name
  // Most characters: 80
  optional string first_name = 2 [json_name = "first-name"];

  // Size
  // Asked if email has an answer
  // Values: "s" (S), "m" (M)
  optional string size = 3;
}
`,
  );
});

it('reserves numbers of fields that are gone, and says that those of a draft are provisional', () => {
  const first = versionOf(['a', 'b', 'c', 'd'].map((id) => ({ id, type: 'text' })));
  const definition = givenDefinition({ fields: [{ id: 'd', type: 'text' }] });
  const next = { ...first, version: 2, definition, contract: nextContract(first, definition) };

  expect(generated('proto', next)).toContain('  // Of fields that are gone.\n  reserved 1 to 3;\n');
  expect(generated('proto', { ...first, version: undefined })).toContain('numbers are provisional');
  expect(JSON.parse(generated('json_schema', { ...first, version: undefined }))['x-provisional']).toBe(true);
});

it('writes a type for TypeScript that takes answers of every type', () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, 'answers.ts'), generated('typescript', versionOf(everyType)));
  writeFileSync(
    join(folder.path, 'use.ts'),
    `import type { ContactAnswers, ContactAnswersInput } from './answers.ts';
     export const answers: ContactAnswersInput = {
       text: 'a', number: 1.5, boolean: true, select: 'x', multi_select: ['x', 'y'], hidden: 1, file: { upload_id: '1' },
       rating: 1, ranking: ['y', 'x'], matrix: { r: 'x' }, address: { line1: '1', city: 'B', country: 'CH' },
       signature: { text: 'Ada' }, files: [{ upload_id: '1' }], cells: { r: ['x'] },
     };
     // @ts-expect-error Not one of the options.
     export const wrong: ContactAnswersInput = { select: 'z' };
     // What later versions have is read.
     export const later: ContactAnswers = { select: 'z', multi_select: ['z'], matrix: { q: 'z' }, cells: { q: ['z'] } };
     // @ts-expect-error Still a text.
     export const number: ContactAnswers = { select: 1 };
     export const sent: ContactAnswers = answers;
     export function nameOf({ select, matrix }: ContactAnswers): string {
       return select === 'x' ? 'X' : (select ?? matrix?.['r'] ?? matrix?.['gone'] ?? 'none');
     }`,
  );

  const args = [
    'tsc',
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--allowImportingTsExtensions',
    join(folder.path, 'use.ts'),
  ];
  const { status, stdout } = spawnSync('npx', args, { encoding: 'utf8' });

  expect(`${status} ${stdout}`).toBe('0 ');
});

it('says of what is read that it is there if each submission has it, and of what is sent if it must be given', () => {
  const fields = [
    { id: 'given', type: 'text', required: true },
    { id: 'filled', type: 'text', required: true, defaultValue: 'x' },
    { id: 'byPerson', type: 'text', required: true, answeredBy: 'human' },
    { id: 'asked', type: 'text', required: true, visibleWhen: { field: 'given', op: 'notEmpty' } },
    { id: 'free', type: 'select', options: options('a', 'b') },
  ];

  const [, read = '', sent = ''] = generated('typescript', versionOf(fields)).split(/^export type /m);

  const propertiesOf = (text: string) =>
    [...text.matchAll(/^ {2}(\w.*);$/gm)].map(([, property]) => property);
  expect(propertiesOf(read)).toEqual([
    'given: string',
    'filled: string',
    'byPerson: string',
    'asked?: string',
    'free?: "a" | "b" | (string & {})',
  ]);
  expect(propertiesOf(sent)).toEqual([
    'given: string',
    'filled?: string',
    'byPerson?: string',
    'asked?: string',
    'free?: "a" | "b"',
  ]);
});

it('lets readers go on over every change that breaks none of them', () => {
  using folder = temporaryFolder();
  const random = createRandom('readers');
  const ofForms = Array.from({ length: 60 }, () => randomFields(random)).flatMap((fields) =>
    changesOf(fields).map((next) => [{ fields }, { fields: next }] as const),
  );
  let count = 0;
  for (const [former, next] of [...corpus.map((one) => [one.former, one.next] as const), ...ofForms]) {
    const before = versionOf([], former);
    const definition = givenDefinition(next);
    const after = { ...before, definition, contract: nextContract(before, definition) };
    const { message } = before.contract;
    const changes = changesBetween(before.definition, after.definition);
    if (changes.length === 0 || changes.some(({ breaks }) => breaks.includes('webhooks'))) continue;
    count += 1;
    writeFileSync(join(folder.path, `before${count}.ts`), generated('typescript', before));
    writeFileSync(join(folder.path, `after${count}.ts`), generated('typescript', after));
    writeFileSync(
      join(folder.path, `use${count}.ts`),
      `import type { ${message} as Before } from './before${count}.ts';
       import type { ${message} as After } from './after${count}.ts';
       export const read = (answers: After): Before => answers;`,
    );
  }
  const compilerOptions = { strict: true, noEmit: true, allowImportingTsExtensions: true, types: [] };
  writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify({ compilerOptions }));

  const { stdout } = spawnSync('npx', ['tsc', '-p', folder.path], { encoding: 'utf8' });

  expect(stdout).toBe('');
  expect(count).toBeGreaterThan(100);
}, 120_000);

/** The fields with one change each, of the kinds that leave the type of the field alone. */
function changesOf(fields: { options?: object[]; rows?: object[] }[]): object[][] {
  const more = options('new');
  const changes = fields.flatMap((field, at) =>
    [
      { ...field, label: 'Another' },
      { ...field, required: true },
      { ...field, page: 2 },
      ...(field.options === undefined
        ? []
        : [
            { ...field, options: [...field.options, ...more] },
            { ...field, options: [...field.options.slice(1), ...more] },
            { ...field, allowOther: true },
          ]),
      ...(field.rows === undefined ? [] : [{ ...field, rows: [...field.rows.slice(1), ...more] }]),
      { ...field, defaultValue: 'x' },
    ].map((changed) => fields.with(at, changed)),
  );
  return [...changes, [...fields, { id: 'added', type: 'text', required: true }]].filter(
    (changed) => checkDefinition(sent({ fields: changed }), { keyless: false, allowPrivateUrls: false }).ok,
  );
}

describe.skipIf(noProtoc)('what is generated of fields of every type', () => {
  it.each([
    ['every type', everyType],
    ...everyType.map((field): [string, object[]] => [field.id, [field]]),
    ['words of languages', reservedWords.map((id) => ({ id, type: 'text' }))],
    ['ids that are alike', ['a-b', 'aB', 'a_b', 'A_B', 'a_b_1'].map((id) => ({ id, type: 'text' }))],
  ])(
    '%s is read by protoc and buf, and is the descriptor set',
    (_name, fields) => {
      const version = versionOf(fields);
      using folder = temporaryFolder();
      const proto = writeFile(folder.path, 'proto', version);
      const set = writeFile(folder.path, 'descriptor_set', version);
      const output = join(folder.path, 'protoc.binpb');

      run(
        'protoc',
        ['-I', folder.path, '--include_imports', `--descriptor_set_out=${output}`, proto],
        folder.path,
      );
      if (fields.length > 1) run('buf', ['build', set, '-o', '/dev/null'], folder.path);
      if (fields.length > 1) run('buf', ['build', '.', '-o', '/dev/null'], folder.path);

      expect(filesOf(readFileSync(set))).toEqual(filesOf(readFileSync(output)));
      const ajv = new Ajv2020({ strict: false });
      ajvFormats.default(ajv);
      expect(ajv.compile(JSON.parse(generated('json_schema', version)))({ unknown: 1 })).toBe(false);
    },
    60_000,
  );
});

function writeFile(folder: string, format: 'proto' | 'descriptor_set', version: VersionToDescribe): string {
  const { path, content } = generateSchema(format, version);
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

function run(command: string, args: string[], cwd: string) {
  const env = {
    ...process.env,
    PATH: `${join(import.meta.dirname, '../../../node_modules/.bin')}:${process.env.PATH}`,
  };
  const { status, stderr } = spawnSync(command, args, { encoding: 'utf8', cwd, env });
  expect(`${status} ${stderr}`).toBe('0 ');
}

/** By name, without comments and places in the text. */
function filesOf(bytes: Uint8Array) {
  const { file } = fromBinary(FileDescriptorSetSchema, bytes);
  const files = file.map((each) => ({ ...each, sourceCodeInfo: undefined }));
  return files
    .toSorted((left, right) => left.name.localeCompare(right.name))
    .map((each) =>
      JSON.stringify(each.name.startsWith('google/') ? each.name : each, (_, value) =>
        typeof value === 'bigint' ? String(value) : value,
      ),
    );
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readFormFiles } from '../../src/cli/forms/files.ts';
import { testForms } from '../../src/cli/forms/test.ts';
import { RefusedError } from '../../src/cli/terminal.ts';
import { temporaryFolder } from '../support/spawn.ts';

const form = `owner: owner@example.com
name: Contact
slug: contact
fields:
  - { id: email, type: email, required: true }
  - { id: topic, type: select, options: [{ value: sales, label: Sales }, { value: support, label: Support }], defaultValue: support }
  - { id: source, type: hidden }
  - { id: note, type: statement, page: 2 }
  - { id: country, type: text, page: 2, required: true, visibleWhen: { field: topic, op: eq, value: sales } }
  - { id: campaign, type: text, page: 3, visibleWhen: { field: source, op: eq, value: ad } }
  - { id: agreed, type: checkbox, page: 3, answeredBy: human }
  - { id: score, type: number, page: 3, answeredBy: agent }
delivery: { type: email }
`;

const passing = `- name: Support is asked nothing further
  answers: { email: ada@example.com, agreed: true }
  accepted: true
  asks: { 1: [email, topic], 3: [agreed] }
- name: Sales are asked for a country, and those of an ad for the campaign
  answers: { email: ada@example.com, topic: sales, source: ad }
  refused: { answers.country: invalid_type }
  asks: { 1: [email, topic], 2: [country], 3: [campaign, agreed] }
- name: A program can't agree
  by: api
  answers: { email: ada@example.com, agreed: true }
  refused: { answers.agreed: custom }
- name: All that is wrong
  answers: { email: ada, topic: other, extra: 1 }
  refused: { answers.email: invalid_string, answers.topic: invalid_enum_value, answers.extra: unrecognized_keys }
`;

it('cases that are as expected end with 0', async () => {
  using folder = givenFolder({ 'contact.form.yaml': form, 'contact.test.yaml': passing });

  expect(await folder.run()).toEqual({ code: 0, lines: ['4 of 4 cases are as expected.'] });
});

it('cases that are not are named with their line and with what is so', async () => {
  const failing = `- { name: Fine, answers: { email: a@b.co }, accepted: true }
- name: Taken
  answers: { email: a@b.co }
  refused: { answers.email: invalid_string }
- name: Refused
  answers: {}
  accepted: true
  asks: { 1: [email] }
`;
  using folder = givenFolder({ 'contact.form.yaml': form, 'contact.test.yaml': failing });

  const { code, lines } = await folder.run();

  const at = join(folder.path, 'contact.test.yaml');
  expect(code).toBe(1);
  expect(lines).toEqual([
    `${at}:4:3: 1.refused: Taken: the problems are {}, not {"answers.email":"invalid_string"}`,
    `${at}:7:3: 2.accepted: Refused: the problems are {"answers.email":"invalid_type"}, not {}`,
    `${at}:8:3: 2.asks: Refused: the questions are {"1":["email","topic"],"3":["agreed"]}, not {"1":["email"]}`,
    '1 of 3 cases are as expected.',
  ]);
});

it.each([
  ['- name: x\n  answers: {}\n', ['1:3: 0: Expected either accepted, or what is refused']],
  [
    '- name: x\n  answers: {}\n  accepted: true\n  refused: { a: custom }\n',
    ['1:3: 0: Expected either accepted, or what is refused'],
  ],
  [
    '- name: x\n  answers: []\n  accepted: false\n- answers: {}\n  refused: { answers.a: wrong }\n',
    [
      '2:3: 0.answers: Expected object, received array',
      '3:3: 0.accepted: Expected true',
      '4:3: 1.name: Required',
      expect.stringMatching(/^5:3: 1\.refused\.answers\.a: Expected one of "invalid_type", /),
    ],
  ],
  ['name: x\n', ['1:1: Expected array, received object']],
  ['- {', [expect.stringMatching(/^1:4: /)]],
  [
    '- name: x\n  aks: {}\n  answers: {}\n  accepted: true\n',
    ['2:3: 0.aks: Unknown property `aks`. Did you mean `asks`?'],
  ],
])('a file of cases that is none is refused by its lines: %j', async (text, problems) => {
  using folder = givenFolder({ 'contact.form.yaml': form, 'contact.test.yaml': text });

  const refused = await folder.refusal();

  const at = `${join(folder.path, 'contact.test.yaml')}:`;
  expect(refused.map((line) => line.replace(at, ''))).toEqual(problems);
});

it('a form that is missing or wrong is refused, and a folder without cases', async () => {
  const cases = '[{ "name": "x", "answers": {}, "accepted": true }]';
  using alone = givenFolder({ 'contact.test.json': cases });
  using wrong = givenFolder({ 'contact.form.yaml': `${form}extra: 1\n`, 'contact.test.json': cases });
  using none = givenFolder({ 'contact.form.yaml': form });

  expect(await alone.refusal()).toEqual([
    `${join(alone.path, 'contact.test.json')}: There is no contact.form.json or .yaml beside it`,
  ]);
  expect(await wrong.refusal()).toEqual([expect.stringMatching(/contact\.form\.yaml:14:1: extra: /)]);
  expect(await none.refusal()).toEqual([`${none.path}: No files named *.test.json or *.test.yaml`]);
});

it('a file of cases is no form for the other commands', async () => {
  using folder = givenFolder({ 'contact.form.yaml': form, 'contact.test.yaml': passing });

  const forms = await readFormFiles(folder.path, 'folder');

  expect(forms.map(({ key }) => key)).toEqual(['contact']);
});

function givenFolder(files: Record<string, string>) {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const run = async () => {
    const lines: string[] = [];
    return { code: await testForms(folder.path, (line) => lines.push(line)), lines };
  };
  return {
    ...folder,
    run,
    refusal: async () => {
      const error: unknown = await run().catch((reason: unknown) => reason);
      if (!(error instanceof RefusedError)) throw new Error('It was not refused', { cause: error });
      return error.lines;
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

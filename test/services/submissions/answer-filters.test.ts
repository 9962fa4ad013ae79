import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AnswerFilterSchema } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const options = ['sales', 'support', 'press'].map((value) => ({ value, label: value }));

const fields = [
  { id: 'topic', type: 'select', options },
  { id: 'tags', type: 'multi_select', options },
  { id: 'email', type: 'email' },
  { id: 'note', type: 'textarea', maxLength: 10_000 },
  { id: 'n', type: 'number', max: 50 },
  { id: 'agreed', type: 'checkbox' },
  { id: 'day', type: 'date' },
  { id: 'at', type: 'time' },
  { id: 'instant', type: 'datetime' },
  { id: 'home', type: 'address' },
];

/** By name, oldest first. */
const given = {
  first: { topic: 'sales', tags: ['sales', 'press'], email: 'ann@example.com', n: 3, agreed: true },
  second: { topic: 'support', note: `the "quoted" part ${'x'.repeat(5_000)}`, n: -1.5, agreed: false },
  third: { topic: 'press', tags: ['support'], day: '2026-11-24', at: '08:30' },
  fourth: { topic: 'sales', at: '08:30:01', instant: '2026-02-28T23:30:00-01:00', n: 12 },
  quoted: { note: 'a "b"\\c\n\u0001é😀/' },
  empty: {},
};

describe.each(engines)('a list with conditions on answers, on %s,', (engine) => {
  let services: TestServices;
  let formId: string;
  const ids = new Map<string, string>();

  beforeAll(async () => {
    services = await startServices(engine);
    formId = await services.givenFormOf(fields);
    for (const [name, answers] of Object.entries(given)) {
      services.clock.ms += 10;
      const { submissionId } = await services.submissions.createSubmission({ formId, answers });
      ids.set(submissionId, name);
    }
  });
  afterAll(() => services?.[Symbol.asyncDispose]());

  const list = (filters: Filter[], more: object = {}) =>
    services.submissions.listSubmissions({ formId, filters, ...more }, services.owner);
  const namesOf = (found: Awaited<ReturnType<typeof list>>) => found.submissions.map(({ id }) => ids.get(id));

  it.each([
    ['a choice', [where('topic', 'eq', 'sales')], ['fourth', 'first']],
    ['one of several choices', [where('topic', 'in', ['sales', 'press'])], ['fourth', 'third', 'first']],
    ['a chosen option', [where('tags', 'contains', 'press')], ['first']],
    ['a text', [where('email', 'eq', 'ann@example.com')], ['first']],
    ['a part of a text', [where('email', 'contains', 'ann@')], ['first']],
    ['a text as it is in JSON', [where('note', 'eq', 'a "b"\\c\n\u0001é😀/')], ['quoted']],
    ['a part as it is in JSON', [where('note', 'contains', '"b"\\c\n\u0001é😀/')], ['quoted']],
    ['a part of another field’s text', [where('email', 'contains', 'support')], []],
    ['a part of a large text', [where('note', 'contains', '"quoted" part')], ['second']],
    ['a number', [where('n', 'eq', '3.0')], ['first']],
    ['numbers from', [where('n', 'gte', '3')], ['fourth', 'first']],
    ['numbers up to, beyond the field’s bound', [where('n', 'lte', '100')], ['fourth', 'second', 'first']],
    ['some numbers', [where('n', 'in', ['12', '-1.5'])], ['fourth', 'second']],
    ['what is true', [where('agreed', 'eq', 'true')], ['first']],
    ['a day', [where('day', 'eq', '2026-11-24')], ['third']],
    ['days from', [where('day', 'gte', '2026-11-25')], []],
    ['a time with and without seconds', [where('at', 'eq', '08:30:00')], ['third']],
    ['times from', [where('at', 'gte', '08:30')], ['fourth', 'third']],
    ['an instant of another offset', [where('instant', 'eq', '2026-03-01T00:30:00Z')], ['fourth']],
    ['instants from', [where('instant', 'gte', '2026-03-01T00:30:01Z')], []],
    [
      'all of three',
      [where('topic', 'eq', 'sales'), where('n', 'gte', '1'), where('n', 'lte', '5')],
      ['first'],
    ],
    ['none', [where('topic', 'eq', "'; drop table submissions; --")], []],
  ])('finds %s', async (_name, filters, expected) => {
    const found = await list(filters, { includeTotal: true });

    expect(namesOf(found)).toEqual(expected);
    expect(found.totalSize).toBe(BigInt(expected.length));
    expect([found.nextPageToken, found.searchedUntil]).toEqual(['', undefined]);
  });

  it('goes on by its token', async () => {
    const filters = [where('topic', 'in', ['sales', 'press'])];

    const first = await list(filters, { pageSize: 2 });
    const second = await list(filters, { pageSize: 2, pageToken: first.nextPageToken });

    expect([namesOf(first), namesOf(second)]).toEqual([['fourth', 'third'], ['first']]);
    expect(second.nextPageToken).toBe('');
  });

  it.each([
    ['an unknown field', [where('topics', 'eq', 'sales')], ['filters[0].field_id']],
    ['a field without operators', [where('home', 'eq', 'x')], ['filters[0].field_id']],
    [
      'an operator that the type lacks',
      [where('n', 'eq', '1'), where('topic', 'gte', 'a')],
      ['filters[1].gte'],
    ],
    ['no operator', [{ fieldId: 'n' }], ['filters[0].condition']],
    ['what is no number', [where('n', 'gte', 'many')], ['filters[0].gte']],
    ['what is no day', [where('day', 'eq', '2026-02-30')], ['filters[0].eq']],
    ['a number of more characters', [where('n', 'gte', `${'0'.repeat(1_000)}7`)], ['filters[0].gte']],
    ['a text of more characters', [where('email', 'eq', 'x'.repeat(1_001))], ['filters[0].eq']],
    ['an empty value', [where('topic', 'eq', '')], ['filters[0].eq']],
    ['NUL', [where('email', 'contains', '\0')], ['filters[0].contains']],
    ['no values', [where('topic', 'in', [])], ['filters[0].in']],
    ['four', Array(4).fill(where('n', 'eq', '1')), ['filters']],
    ['all at once', [where('x', 'eq', '1'), where('n', 'eq', 'y')], ['filters[0].field_id', 'filters[1].eq']],
  ])('refuses %s with its path', async (_name, filters, paths) => {
    const { code, violations } = await failureOf(list(filters));

    expect(code).toBe(Code.InvalidArgument);
    expect(violations.map(([path]) => path)).toEqual(paths);
  });

  it('is not confused by answers of an earlier version whose field had another type', async () => {
    const older = await services.givenFormOf([{ id: 'n', type: 'text' }]);
    for (const n of ['many', '2026-02-31T10:00:00Z', '0000-01-01T00:00:00Z', '2026-01-01T00:00:00+23:00']) {
      await services.submissions.createSubmission({ formId: older, answers: { n } });
    }
    const publish = (type: string, attributes = {}) =>
      services.forms.publishFormVersion(
        { formId: older, definition: definitionOf([{ id: 'n', type, ...attributes }]), allowBreaking: true },
        services.owner,
      );
    const count = async (filter: Filter) => {
      const request = { formId: older, filters: [filter] };
      return (await services.submissions.listSubmissions(request, services.owner)).submissions.length;
    };

    await publish('number');
    const numbers = await count(where('n', 'gte', '0'));
    await publish('datetime');
    const instants = await count(where('n', 'gte', '2026-01-01T00:00:00+23:00'));
    await publish('multi_select', { options });
    const chosen = await count(where('n', 'contains', 'many'));

    expect([numbers, instants, chosen]).toEqual([0, 1, 1]);
  });

  it('counts all without conditions by the form’s counters, and some by an index', async () => {
    const all = await list([], { includeTotal: true, pageSize: 1 });
    const none = await list([], { includeTotal: true, source: 'nowhere' });
    const unasked = await list([]);

    expect([all.totalSize, none.totalSize, unasked.totalSize]).toEqual([6n, 0n, undefined]);
  });
});

describe.each(engines)('a long list on %s', (engine) => {
  let services: TestServices;
  let formId: string;

  beforeAll(async () => {
    services = await startServices(engine);
    formId = await services.givenFormOf([{ id: 'n', type: 'number' }]);
    await services.database.execute(
      `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
       select 'sub_01' || lpad(n::text, 24, '0'), f.project_id, f.id, f.current_version_id, 'api',
         json_build_object('n', n), '{}', 'accepted', now()
       from forms f, generate_series(1, ${STORED}) n where f.id = $1`,
      [formId],
    );
    await services.database.execute(
      `insert into form_counters (form_id, slot, accepted, spam, keyless_bytes) values ($1, 0, ${STORED}, 0, 0)`,
      [formId],
    );
  });
  afterAll(() => services?.[Symbol.asyncDispose]());

  const list = (request: object, caller = services.owner) =>
    services.submissions.listSubmissions({ formId, pageSize: 2, ...request }, caller);
  const numbers = (found: Awaited<ReturnType<typeof list>>) =>
    found.submissions.map(({ answers }) => answers?.n);

  it('skips far, and gives the token to go on with', async () => {
    const deep = await list({ skip: STORED - 3 });
    const next = await list({ pageToken: deep.nextPageToken });
    const beyond = await list({ skip: STORED });

    expect([numbers(deep), numbers(next), numbers(beyond)]).toEqual([[3, 2], [1], []]);
  });

  it('skips far for one call of a project at a time', async () => {
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => list({ skip: STORED - 3 })));
    const near = await Promise.all([1, 2, 3].map(() => list({ skip: 10_000 })));

    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(refused.map(({ code }) => code)).toEqual([Code.ResourceExhausted, Code.ResourceExhausted]);
    expect(refused[0].metadata.get('retry-after')).toBe('1');
    expect(near.map(numbers)).toEqual(Array(3).fill([STORED - 10_000, STORED - 10_001]));
  });

  it('is searched as far as one call may, and says how far that was', async () => {
    const first = await list({ filters: [where('n', 'eq', '1')], includeTotal: true });
    let last = first;
    const found = numbers(first);
    // A loaded machine gets less far in the time of a call.
    for (let calls = 1; last.nextPageToken !== '' && calls < 100; calls += 1) {
      last = await list({ filters: [where('n', 'eq', '1')], pageToken: last.nextPageToken });
      found.push(...numbers(last));
    }

    expect(first.searchedUntil).toBeDefined();
    expect([first.totalSize, first.submissions]).toEqual([undefined, []]);
    expect(found).toEqual([1]);
    expect([last.searchedUntil, last.nextPageToken]).toEqual([undefined, '']);
  });
});

type Filter = MessageInitShape<typeof AnswerFilterSchema>;

/** A little more than one call searches. */
const STORED = 105_000;

function where(
  fieldId: string,
  op: 'eq' | 'in' | 'gte' | 'lte' | 'contains',
  value: string | string[],
): Filter {
  const [one = ''] = [value].flat();
  const values = [value].flat();
  return { fieldId, condition: op === 'in' ? { case: op, value: { values } } : { case: op, value: one } };
}

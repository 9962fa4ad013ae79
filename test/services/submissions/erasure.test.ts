import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { engines } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'email', type: 'email' },
  { id: 'text', type: 'text' },
  { id: 'member', type: 'number' },
  { id: 'site', type: 'url' },
  { id: 'cv', type: 'file' },
];

type Give = (services: TestServices, formId: string) => Promise<unknown>;

const answered = (answers: object, more: object = {}): Give => {
  return ({ submissions, owner }, formId) =>
    submissions.createSubmission({ formId, answers: { ...answers }, ...more }, owner);
};

const withFile = (filename: string): Give => {
  return async ({ submissions, uploads }, formId) => {
    const target = { case: 'formId', value: formId } as const;
    const content = Buffer.from('A file.');
    const { upload } = await uploads.createUpload({ target, fieldId: 'cv', filename, content });
    await submissions.createSubmission({ formId, answers: { cv: { upload_id: upload?.id ?? '' } } });
  };
};

/** A session with its idempotency key as the version before stored it. */
const inSession = (idempotencyKey: string): Give => {
  return async ({ sessions, owner, database }, formId) => {
    const { session } = await sessions.createSession({ subject: { case: 'formId', value: formId } }, owner);
    await database.execute('update sessions set idempotency_key = $1 where id = $2', [
      idempotencyKey,
      session?.id,
    ]);
  };
};

/** Where a value can be, what is looked for, and a neighbour that differs from it. */
const placesOfValues: [string, string, Give, Give][] = [
  ['a number', '4711', answered({ member: 4711 }), answered({ member: 47 })],
  [
    'a number that is written in another way',
    ' 4711.0',
    answered({ member: 4711 }),
    answered({ member: 4711.5 }),
  ],
  [
    'a text with spaces around it',
    'ada@example.com',
    answered({ text: ' ada@example.com\u00a0' }),
    answered({ text: 'x' }),
  ],
  [
    'a text that JSON writes with escapes, and LIKE reads otherwise',
    '100%_"x"\\y',
    answered({ text: '100%_"X"\\y' }),
    answered({ text: '100a_"x"\\y' }),
  ],
  ['a text in another case', 'ärger', answered({ text: 'ÄRGER' }), answered({ text: 'Arger' })],
  [
    'a letter with its mark as two characters',
    'Zo\u00eb',
    answered({ text: 'Zoe\u0308' }),
    answered({ text: 'Zoe' }),
  ],
  [
    'a web address without its scheme',
    'ada.example.com',
    answered({ site: 'https://ada.example.com' }),
    answered({ site: 'https://bob.example.com' }),
  ],
  [
    'a source',
    'Ada',
    answered({ text: 'x' }, { source: 'ada' }),
    answered({ text: 'x' }, { source: 'adam' }),
  ],
  [
    'an idempotency key',
    'ada@example.com',
    answered({ text: 'x' }, { idempotencyKey: 'ada@example.com' }),
    answered({ text: 'x' }, { idempotencyKey: 'bob' }),
  ],
  [
    'the idempotency key of a session, as the version before stored it',
    'ada',
    inSession('ada'),
    inSession('bob'),
  ],
  ['the name of a file', 'Ada Lovelace.txt', withFile('ada lovelace.txt'), withFile('cv.txt')],
  [
    'the name of a file without its ending',
    'ada@example.com',
    withFile('ada@example.com.txt'),
    withFile('ada.txt'),
  ],
];

async function rowsOf({ database }: TestServices): Promise<number> {
  const counting = `select (select count(*) from submissions) + (select count(*) from sessions) as count`;
  return Number((await database.select(counting))[0]?.count);
}

describe.each(engines)('EraseSubmissions on %s', (engine) => {
  it('removes all that names a person, in every form of the project, and nothing else', async () => {
    await using services = await startServices(engine);
    const { submissions, sessions, owner, database } = services;
    const [one, two] = [await services.givenFormOf(fields), await services.givenFormOf(fields)];
    const other = await services.givenFormOf(fields, {}, await services.givenCaller(['*'], 'other'));
    const submit = async (formId: string, email: string, text = 'Hello') =>
      (await submissions.createSubmission({ formId, answers: { email, text } })).submissionId;
    await submit(one, 'ada@example.com');
    await submit(two, 'ADA@Example.com');
    const kept = [
      await submit(one, 'bob@example.com', 'Tell ada@example.com'),
      await submit(other, 'ada@example.com'),
    ];
    const { session: named } = await sessions.createSession(
      { subject: { case: 'formId', value: one }, prefill: { email: 'ada@example.com' }, metadata: { n: 1 } },
      owner,
    );
    const { session: answered } = await sessions.createSession(
      { subject: { case: 'formId', value: two }, metadata: { of: ['ada@example.com'] } },
      owner,
    );
    await sessions.submitSession({ sessionId: answered?.id ?? '', answers: { text: 'Mine' } }, owner);
    const { session: open } = await sessions.createSession(
      { subject: { case: 'formId', value: one } },
      owner,
    );
    await sessions.cancelSession({ sessionId: named?.id ?? '' }, owner);

    const erased = await eraseAll(services, ' Ada@example.com ');
    const again = await eraseAll(services, 'ada@example.com');

    expect(erased).toMatchObject({ submissions: 3, sessions: 1 });
    expect(again).toMatchObject({ submissions: 0, sessions: 0 });
    const ids = async (table: string) =>
      (await database.select(`select id from ${table} order by id`)).map(({ id }) => id);
    expect(await ids('submissions')).toEqual(kept.toSorted((a, b) => a.localeCompare(b)));
    expect(await ids('sessions')).toEqual([open?.id]);
    const traces = await database.select(
      `select id from events where body ilike '%ada@example.com%' and submission_id <> all($1)`,
      [kept],
    );
    expect(traces).toEqual([]);
  });

  it.each(placesOfValues)('finds %s, and leaves what differs', async (_, value, give, giveOther) => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    await give(services, formId);
    await giveOther(services, formId);
    const before = await rowsOf(services);

    const erased = await eraseAll(services, value);

    expect(before).toBe(2);
    expect(await rowsOf(services)).toBe(1);
    expect(erased.searched).toBeGreaterThan(1);
    expect((await eraseAll(services, value)).searched).toBeGreaterThan(0);
  });

  it('finds events of a session that is gone, which a reader of an old cursor would get', async () => {
    await using services = await startServices(engine);
    const { sessions, owner, database } = services;
    const formId = await services.givenFormOf(fields);
    for (const email of ['ada@example.com', 'bob@example.com']) {
      const subject = { case: 'formId', value: formId } as const;
      const { session } = await sessions.createSession({ subject, metadata: { email } }, owner);
      await sessions.cancelSession({ sessionId: session?.id ?? '' }, owner);
    }
    await database.execute('delete from sessions');

    const erased = await eraseAll(services, 'ada@example.com');

    expect(erased).toEqual({ submissions: 0, sessions: 0, searched: 2 });
    const left = await database.select("select body from events where type = 'session.cancelled'");
    expect(left).toEqual([{ body: expect.stringContaining('bob@example.com') }]);
  });

  it('finds the name of a file that no submission has claimed', async () => {
    await using services = await startServices(engine);
    const { uploads, database } = services;
    const formId = await services.givenFormOf(fields);
    for (const filename of ['ada@example.com.pdf', 'bob.pdf']) {
      const target = { case: 'formId', value: formId } as const;
      await uploads.createUpload({ target, fieldId: 'cv', filename, content: Buffer.from('A file.') });
    }

    await eraseAll(services, 'ada@example.com');

    expect(await database.select('select filename from uploads')).toEqual([{ filename: 'bob.pdf' }]);
    expect(await database.select('select subject from removals')).toHaveLength(1);
  });

  it('takes a source of the service itself for no value', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    await services.submissions.createSubmission({ formId, answers: { text: 'Hello' } });

    expect(await eraseAll(services, 'api')).toEqual({ submissions: 0, sessions: 0, searched: 1 });
  });

  it('goes on where it stopped, through one form alone if it is named', async () => {
    await using services = await startServices(engine);
    const [one, two] = [await services.givenFormOf(fields), await services.givenFormOf(fields)];
    for (const formId of [one, two]) {
      await Promise.all(
        Array.from({ length: 450 }, (_, n) =>
          services.submissions.createSubmission({ formId, answers: { text: n % 9 === 0 ? 'x' : 'y' } }),
        ),
      );
    }

    expect(await eraseAll(services, 'X', one)).toEqual({
      submissions: 50,
      sessions: 0,
      searched: 450,
    });

    const left = await services.database.select(
      `select form_id, count(*)::int as count from submissions group by form_id order by count`,
    );
    expect(left).toEqual([
      { form_id: one, count: 400 },
      { form_id: two, count: 450 },
    ]);
  });

  it('tells of answers that mention the value, and removes their submissions if that is wanted', async () => {
    await using services = await startServices(engine);
    const { submissions } = services;
    const [one, two] = [await services.givenFormOf(fields), await services.givenFormOf(fields)];
    const other = await services.givenFormOf(fields, {}, await services.givenCaller(['*'], 'other'));
    const submit = async (formId: string, answers: object) =>
      (await submissions.createSubmission({ formId, answers: { ...answers } })).submissionId;
    await submit(one, { text: 'ada@example.com' });
    const mentions = [
      `${await submit(one, { text: 'I am ADA@example.com, call me' })} ${one} text`,
      `${await submit(two, { site: 'https://example.org/?to=ada@example.com' })} ${two} site`,
      `${await submit(two, { text: '(ada@example.com)' })} ${two} text`,
    ];
    const left = [
      await submit(one, { text: 'nada@example.com' }),
      await submit(one, { text: 'ada@example.community' }),
      await submit(one, { text: 'ada-example.com and adaXexample.com' }),
      await submit(other, { text: 'I am ada@example.com' }),
    ];

    const value = 'ada@example.com';
    const erased = await eraseWith(services, { value });
    const inOne = await eraseWith(services, { value: ' Ada@example.com', formId: one });
    const all = await eraseWith(services, { value, includeMentions: true });

    expect(erased).toEqual({ submissions: 1, mentions: 3, named: mentions.toSorted() });
    expect(inOne).toEqual({ submissions: 0, mentions: 1, named: mentions.slice(0, 1) });
    expect(all).toEqual({ submissions: 3, mentions: 0, named: [] });
    const rows = await services.database.select('select id from submissions order by id');
    expect(rows.map(({ id }) => id)).toEqual(left.toSorted());
  });

  it.each([
    ['signs that mean something in patterns', 'a+b (c)|d\\e.f', 'So: a+b (c)|d\\e.f!', 'So: aab c'],
    ['a name', 'Ann', 'Ask ann.', 'Anna planned it'],
    ['a letter with its mark as two characters', 'Zo\u00eb', 'Tell Zoe\u0308 this', 'Tell Zoe this'],
    ['a number', '4711', 'Member 4711, please', 'Member 47110, please'],
    ['a thousand characters', 'ä+'.repeat(500), `: ${'Ä+'.repeat(500)} :`, 'ä+'.repeat(499)],
  ])('knows %s within a text', async (_, value, mention, other) => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    for (const text of [mention, other])
      await services.submissions.createSubmission({ formId, answers: { text } });

    expect(await eraseWith(services, { value })).toMatchObject({ submissions: 0, mentions: 1 });
  });

  it('names the first hundred mentions, and counts all', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    for (let n = 0; n < 101; n += 1)
      await services.submissions.createSubmission({ formId, answers: { text: `Ada, ${n}` } });

    const { mentions, named } = await eraseWith(services, { value: 'ada', formId });

    expect([mentions, named.length]).toEqual([101, 100]);
  });

  it('refuses strangers, keys that may not delete, forms of others and bad values', async () => {
    await using services = await startServices(engine);
    const { submissions, owner } = services;
    const foreign = await services.givenFormOf(fields, {}, await services.givenCaller(['*'], 'other'));
    const value = 'ada@example.com';
    const mayNot = await services.givenCaller(['submissions:read']);

    await expectFailure(submissions.eraseSubmissions({ value }), Reason.MISSING_KEY);
    await expectFailure(submissions.eraseSubmissions({ value }, mayNot), Reason.INSUFFICIENT_SCOPE);
    await expectFailure(submissions.eraseSubmissions({ value, formId: foreign }, owner), Reason.NOT_FOUND);
    await expectFailure(submissions.eraseSubmissions({ value: ' ' }, owner), Reason.INVALID);
    await expectFailure(submissions.eraseSubmissions({ value: 'x'.repeat(1_001) }, owner), Reason.INVALID);
    for (const pageToken of ['x', `${foreign}|gone|`, `${foreign}|accepted|'`]) {
      await expectFailure(submissions.eraseSubmissions({ value, pageToken }, owner), Reason.BAD_REQUEST);
    }
    await submissions.createSubmission({ formId: foreign, answers: { email: value } });
    await submissions.eraseSubmissions({ value, pageToken: `${foreign}|accepted|` }, owner);
    expect(await services.database.select('select 1 from submissions')).toHaveLength(1);
  });
});

async function eraseAll({ submissions, owner }: TestServices, value: string, formId = '') {
  const counts = { submissions: 0, sessions: 0, searched: 0 };
  let pageToken = '';
  do {
    const reply = await submissions.eraseSubmissions({ value, formId, pageToken }, owner);
    counts.submissions += reply.erasedSubmissions;
    counts.sessions += reply.erasedSessions;
    counts.searched += reply.searchedRows;
    pageToken = reply.nextPageToken;
  } while (pageToken !== '');
  return counts;
}

/** What all calls of an erasure say together. */
async function eraseWith({ submissions, owner }: TestServices, request: Erasure) {
  const told = { submissions: 0, mentions: 0 };
  const named: string[] = [];
  let pageToken = '';
  do {
    const reply = await submissions.eraseSubmissions({ ...request, pageToken }, owner);
    const { count = 0, first = [] } = reply.mentions ?? {};
    told.submissions += reply.erasedSubmissions;
    told.mentions += count;
    named.push(...first.map(({ submissionId, formId, fieldId }) => `${submissionId} ${formId} ${fieldId}`));
    pageToken = reply.nextPageToken;
  } while (pageToken !== '');
  return { ...told, named: named.toSorted() };
}

type Erasure = { value: string; formId?: string; includeMentions?: boolean };

import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { engines } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'email', type: 'email' },
  { id: 'text', type: 'text' },
];

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
      { formId: one, prefill: { email: 'ada@example.com' }, metadata: { n: 1 } },
      owner,
    );
    const { session: answered } = await sessions.createSession(
      { formId: two, metadata: { of: ['ada@example.com'] } },
      owner,
    );
    await sessions.submitSession({ sessionId: answered?.id ?? '', answers: { text: 'Mine' } }, owner);
    const { session: open } = await sessions.createSession({ formId: one }, owner);
    await sessions.cancelSession({ sessionId: named?.id ?? '' }, owner);

    const erased = await eraseAll(services, ' Ada@example.com ');
    const again = await eraseAll(services, 'ada@example.com');

    expect(erased).toEqual({ submissions: 3, sessions: 1 });
    expect(again).toEqual({ submissions: 0, sessions: 0 });
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

    expect(await eraseAll(services, 'X', one)).toEqual({ submissions: 50, sessions: 0 });

    const left = await services.database.select(
      `select form_id, count(*)::int as count from submissions group by form_id order by count`,
    );
    expect(left).toEqual([
      { form_id: one, count: 400 },
      { form_id: two, count: 450 },
    ]);
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
  const counts = { submissions: 0, sessions: 0 };
  let pageToken = '';
  do {
    const reply = await submissions.eraseSubmissions({ value, formId, pageToken }, owner);
    counts.submissions += reply.erasedSubmissions;
    counts.sessions += reply.erasedSessions;
    pageToken = reply.nextPageToken;
  } while (pageToken !== '');
  return counts;
}

import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { HostedGoal, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { AnswerChannel } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { expireSessions } from '../../../src/delivery/sweeps/sweeps.ts';
import { sumKeylessBytes } from '../../../src/store/keyless-storage.ts';
import { removeVisitorsSessions } from '../../../src/store/sessions/session-removal.ts';
import { oneEngine } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { postsOf } from '../../support/hosted.ts';
import { startServices, type TestServices } from '../../support/services.ts';
import { until } from '../../support/until.ts';

const fields = [
  { id: 'utm_source', type: 'hidden' },
  { id: 'email', type: 'email', required: true },
  { id: 'topics', type: 'multi_select', options: ['a', 'b', 'c'].map((value) => ({ label: value, value })) },
  { id: 'consent', type: 'checkbox', answeredBy: 'human' },
  { id: 'score', type: 'number', answeredBy: 'agent' },
  { id: 'team', type: 'text', visibleWhen: { field: 'utm_source', op: 'eq', value: 'intern' } },
];

const input = (name: string, ...values: string[]) => ({ name, values });
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });
const email = input('email', 'a@example.com');

async function tokenOf({ hosted }: TestServices, formId: string) {
  return (await hosted.getHosted({ formId })).session?.issueToken ?? '';
}

async function stored({ database }: TestServices) {
  return {
    sessions: await database.select('select id, prefill, partial_answers from sessions'),
    submissions: await database.select('select answers, session_id, status, source from submissions'),
  };
}

describe.each(oneEngine('postgres'))('GetHosted of a form on %s', (engine) => {
  it('fills in what its address may, leaves the rest out, and stores nothing', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const prefill = [
      input('utm_source', 'intern'),
      input('topics', 'a', 'c'),
      input('email', 'no address'),
      input('consent', 'true'),
      input('score', '9'),
      input('unknown', 'x'),
    ];

    const { session } = await services.hosted.getHosted({ formId, prefill });

    expect(session).toMatchObject({
      state: HostedState.OPEN,
      permanent: true,
      sessionId: '',
      answers: { topics: ['a', 'c'] },
    });
    expect(session?.fields.map(({ id }) => id)).toEqual(['email', 'topics', 'consent', 'team']);
    expect(await stored(services)).toEqual({ sessions: [], submissions: [] });
  });

  it('reads the plus that programs have left as it stands, and parts of an address alone', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf([
      { id: 'email', type: 'email' },
      { id: 'phone', type: 'phone' },
      { id: 'fax', type: 'phone' },
      { id: 'note', type: 'text' },
      { id: 'home', type: 'address' },
      { id: 'office', type: 'address', required: true, page: 2 },
      { id: 'depot', type: 'address', hidden: true },
    ]);
    const prefill = [
      input('email', ' ada maths@example.com '),
      input('phone', ' 32 2 555 01 00'),
      input('fax', ' 02 555'),
      input('note', ' a b'),
      input('home.city', 'Ghent'),
      input('office.country', 'Belgium'),
      input('office.postal_code', '9000'),
      input('depot.city', 'Ghent'),
    ];

    const { session } = await services.hosted.getHosted({ formId, prefill });
    const replyTo = (inputs: ReturnType<typeof input>[]) =>
      services.hosted.postHosted({
        formId,
        prefill,
        inputs,
        goal: HostedGoal.FORWARD,
        page: 1,
        shown: ['email', 'phone', 'fax', 'note', 'home'],
      });
    const unchanged = await replyTo([input('home.city', 'Ghent')]);
    const emptied = await replyTo([input('home.city', '')]);

    expect(session?.answers).toMatchObject({
      email: 'ada+maths@example.com',
      phone: '+32 2 555 01 00',
      note: ' a b',
      home: { city: 'Ghent' },
      office: { postal_code: '9000' },
    });
    expect(session?.answers?.fax).not.toMatch(/^\+/);
    expect(session?.answers).not.toHaveProperty('depot');
    expect(unchanged.violations.map(({ path }) => path)).toEqual([
      'answers.home.line1',
      'answers.home.country',
    ]);
    expect(emptied.step).toBe(2);
    expect(await stored(services)).toEqual({ sessions: [], submissions: [] });
  });

  it('shows no form that has no page of its own, and says why one takes no answers', async () => {
    await using services = await startServices(engine);
    const withoutPage = await services.givenFormOf(fields, { publicPage: false });
    const forAgents = await services.givenFormOf([
      { id: 'by', type: 'text', answeredBy: 'agent', required: true },
    ]);
    const draft = await services.givenDraft(services.key);
    const closed = await services.givenFormOf(fields, {
      closesAt: new Date(services.clock.ms + 1_000).toISOString(),
    });
    const archived = await services.givenFormOf(fields);
    await services.forms.archiveForm({ formId: archived }, services.owner);
    services.clock.ms += 2_000;

    for (const formId of [withoutPage, forAgents, draft.id, 'form_unknown']) {
      for (const call of visits(services, formId)) await expectFailure(call(), Reason.NOT_FOUND);
    }
    for (const [formId, state, reason] of [
      [closed, HostedState.CLOSED, Reason.CLOSED],
      [archived, HostedState.ARCHIVED, Reason.ARCHIVED],
    ] as const) {
      const [show, ...others] = visits(services, formId);
      expect(await show?.()).toMatchObject({ session: { state, fields: [], formName: 'Test' } });
      for (const call of others) await expectFailure(call(), reason);
    }

    expect(await stored(services)).toEqual({ sessions: [], submissions: [] });
  });
});

describe.each(oneEngine('postgres'))('PostHosted to start over on %s', (engine) => {
  it('deletes what a visitor has begun and what it counts for, once or twice, and no other session', async () => {
    await using services = await startServices(engine);
    const { hosted, sessions, owner } = services;
    const [formId, otherForm] = [
      await services.givenFormOf(fields, { allowPartial: true }),
      await services.givenFormOf(fields),
    ];
    const begin = async (form: string) =>
      (await hosted.openHostedSession({ formId: form, issueToken: await tokenOf(services, form) })).sessionId;
    const [begun, submitted, elsewhere] = [await begin(formId), await begin(formId), await begin(otherForm)];
    await postsOf(hosted).save({ formId, sessionId: begun, inputs: [email] });
    const token = {
      formId,
      sessionId: submitted,
      inputs: [email],
      issueToken: await tokenOf(services, formId),
    };
    await postsOf(hosted).submit(token);
    const given =
      (await sessions.createSession({ subject: { case: 'formId', value: formId } }, owner)).session?.id ?? '';

    for (const sessionId of [begun, begun, elsewhere, given, 'sess_unknown', '']) {
      expect(await postsOf(hosted).startOver({ formId, sessionId })).toMatchObject({});
    }
    await expectFailure(postsOf(hosted).startOver({ formId, sessionId: submitted }), Reason.CONFLICT);
    await postsOf(hosted).startOver({ sessionId: given });

    const left = await services.database.select('select id, keyless_bytes from sessions');
    expect(new Set(left.map(({ id }) => id))).toEqual(new Set([submitted, elsewhere, given]));
    const counted = await until(async () => {
      const [row] = await services.database.select(
        `select sum(keyless_bytes)::int as bytes from form_counters`,
      );
      const bytes = left.reduce((sum, row) => sum + Number(row.keyless_bytes ?? 0), 0);
      return Number(row?.bytes) === bytes;
    });
    expect(counted).toBe(true);
  });
});

describe.each(oneEngine('postgres'))('PostHosted of a form on %s', (engine) => {
  it('makes one submission of one page, with what the address filled in', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const page = {
      formId,
      prefill: [input('utm_source', 'mail'), input('score', '9'), input('topics', 'a')],
      inputs: [email, input('topics', 'a'), input('utm_source', 'posted'), input('score', '9')],
      issueToken: await tokenOf(services, formId),
    };

    const replies = await Promise.all([1, 2, 3].map(() => postsOf(services.hosted).submit(page)));
    const other = await expectFailure(
      postsOf(services.hosted).submit({ ...page, inputs: [input('email', 'b@example.com')] }),
      Reason.CONFLICT,
    );

    const answers = { utm_source: 'mail', email: 'a@example.com', topics: ['a'] };
    expect(await stored(services)).toEqual({
      sessions: [],
      submissions: [{ answers, session_id: null, status: 'accepted', source: 'hosted' }],
    });
    expect(new Set(replies.map(({ submissionId }) => submissionId)).size).toBe(1);
    expect(replies.map(({ ending }) => ending?.answers.map(({ text }) => text))).toEqual(
      replies.map(() => ['a@example.com', 'a']),
    );
    expect(other.message).toContain('another request');
    const { submission } = await services.submissions.getSubmission(
      { submissionId: replies[0]?.submissionId ?? '' },
      services.owner,
    );
    const { email: given, topics, utm_source: source } = submission?.provenance ?? {};
    expect([given?.by, topics?.by, source?.by]).toEqual([
      AnswerChannel.HUMAN,
      AnswerChannel.PREFILL,
      AnswerChannel.PREFILL,
    ]);
  });

  it('gives the first ending again where the form was filled by it', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields, { maxSubmissions: 1 });
    const page = { formId, inputs: [email], issueToken: await tokenOf(services, formId) };

    const first = await postsOf(services.hosted).submit(page);
    const again = await postsOf(services.hosted).submit(page);
    await expectFailure(postsOf(services.hosted).submit({ ...page, issueToken: '' }), Reason.CLOSED);

    expect(again).toEqual(first);
  });

  it.each([
    ['a filled honeypot', { honeypot: 'http' }, 60_000, 'spam'],
    ['an answer sooner than minSeconds', {}, 1000, 'spam'],
    ['no token', { issueToken: '' }, 60_000, 'spam'],
    ['a person', {}, 60_000, 'accepted'],
  ])('judges %s', async (_, sent, waited, status) => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields, { spam: { honeypot: true, minSeconds: 5 } });
    const issueToken = await tokenOf(services, formId);
    services.clock.ms += waited;

    await postsOf(services.hosted).submit({ formId, inputs: [email], issueToken, ...sent });

    expect((await stored(services)).submissions).toMatchObject([{ status }]);
  });
});

describe.each(oneEngine('postgres'))('A session of a visitor on %s', (engine) => {
  it('is one for each page, keeps answers, and is submitted with the page’s token', async () => {
    await using services = await startServices(engine);
    const settings = { allowPartial: true, spam: { minSeconds: 1 } };
    const formId = await services.givenFormOf(fields, settings);
    const issueToken = await tokenOf(services, formId);
    const opening = { formId, issueToken, prefill: [input('utm_source', 'mail'), input('score', '9')] };

    const [one, two] = await Promise.all([
      services.hosted.openHostedSession(opening),
      services.hosted.openHostedSession(opening),
    ]);
    const { sessionId } = one;
    await postsOf(services.hosted).save({ formId, sessionId, inputs: [email] });
    const resumed = await services.hosted.getHosted({ formId, sessionId });
    services.clock.ms += 2_000;
    await postsOf(services.hosted).submit({
      formId,
      sessionId,
      begun: [sessionId],
      inputs: [input('topics', 'b')],
      issueToken,
    });
    const after = await services.hosted.getHosted({ formId, sessionId });

    expect(two.sessionId).toBe(sessionId);
    expect(resumed.session).toMatchObject({ sessionId, resumed: true, answers: { email: 'a@example.com' } });
    expect(after.session).toMatchObject({ sessionId: '', answers: {} });
    expect((await stored(services)).submissions).toEqual([
      {
        answers: { utm_source: 'mail', email: 'a@example.com', topics: ['b'] },
        session_id: sessionId,
        status: 'accepted',
        source: 'hosted',
      },
    ]);
  });

  it('is shown only on the page of its form, and sessions made for somebody are on none', async () => {
    await using services = await startServices(engine);
    const [formId, other] = [await services.givenFormOf(fields), await services.givenFormOf(fields)];
    const { sessionId } = await services.hosted.openHostedSession({ formId });
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { email: 'secret@example.com' } },
      services.owner,
    );

    const elsewhere = await services.hosted.getHosted({ formId: other, sessionId });
    const made = await services.hosted.getHosted({ formId, sessionId: session?.id ?? '' });

    expect([elsewhere, made].map((reply) => reply.session?.sessionId)).toEqual(['', '']);
    expect(made.session?.answers).toEqual({});
  });

  it('is not taken for gone where it can’t be read', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const { sessionId } = await services.hosted.openHostedSession({ formId });
    await services.hosted.getHosted({ formId });

    await services.database.execute('alter table sessions rename to sessions_away');
    await expectFailure(services.hosted.getHosted({ formId, sessionId }), Reason.INTERNAL);
    await services.database.execute('alter table sessions_away rename to sessions');

    const { session } = await services.hosted.getHosted({ formId, sessionId });
    expect(session?.sessionId).toBe(sessionId);
  });

  it('announces no end, is removed a day after it, and counts as stored until then', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const held = () => sumKeylessBytes(services.database, projectId);
    const { sessionId } = await services.hosted.openHostedSession({ formId });
    const [row] = await services.database.select('select project_id from sessions');
    const projectId = String(row?.project_id);
    await postsOf(services.hosted).save({ formId, sessionId, inputs: [email] });
    await until(async () => (await held()) > 1024);

    await services.database.execute(`update sessions set expires_at = now() - interval '23 hours'`);
    const { database, auditWriter } = services;
    const sweep = { database, auditWriter, now: () => services.clock.ms };
    await expireSessions({ ...sweep, log: pino({ level: 'silent' }), settings }, () => undefined);
    const kept = await removeVisitorsSessions(services.database, 100);
    const gone = await services.hosted.getHosted({ formId, sessionId });
    await services.database.execute(`update sessions set expires_at = now() - interval '25 hours'`);
    const removed = await removeVisitorsSessions(services.database, 100);

    expect([kept, removed, gone.session?.sessionId]).toEqual([0, 1, '']);
    expect(await services.database.select("select type from events where type like 'session.%'")).toEqual([]);
    expect(await held()).toBe(0);
  });

  it('is followed by another where the page was open for longer', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const opening = { formId, issueToken: await tokenOf(services, formId) };

    const first = await services.hosted.openHostedSession(opening);
    await services.database.execute(`update sessions set expires_at = now() - interval '1 second'`);
    const second = await services.hosted.openHostedSession(opening);

    expect(second.sessionId).not.toBe(first.sessionId);
  });
});

describe.each(oneEngine('postgres'))('Visitors on %s', (engine) => {
  it('open so many sessions an hour from one network, save so many bytes, and submit so often', async () => {
    const keylessBytes = { hourly: 250 * 1024 };
    await using services = await startServices(engine, { settings: { rateLimit: true }, keylessBytes });
    const formId = await services.givenFormOf([{ id: 'text', type: 'textarea' }], { allowPartial: true });
    const { openHostedSession } = services.hosted;
    const { save, submit } = postsOf(services.hosted);
    const inputs = (count: number) => [input('text', `${count}`.padEnd(9_000, 'x'))];

    const opened = await Promise.all(
      Array.from({ length: 100 }, () => openHostedSession({ formId }, from('192.0.2.1'))),
    );
    await expectFailure(openHostedSession({ formId }, from('192.0.2.1')), Reason.RATE_LIMITED);
    const { sessionId } = await openHostedSession({ formId }, from('192.0.2.2'));
    for (let count = 0; count < 28; count += 1) {
      await save({ formId, sessionId, inputs: inputs(count) }, from('192.0.2.2'));
    }
    await expectFailure(
      save({ formId, sessionId, inputs: inputs(28) }, from('192.0.2.2')),
      Reason.RATE_LIMITED,
    );
    for (let count = 0; count < 60; count += 1) await submit({ formId }, from('192.0.2.3'));
    await expectFailure(submit({ formId }, from('192.0.2.3')), Reason.RATE_LIMITED);

    expect(new Set(opened.map((one) => one.sessionId)).size).toBe(100);
  });
});

// Counted in memory, whatever the database.
describe('Visitors', () => {
  it('save and submit so often from one network, in all their sessions together', async () => {
    await using services = await startServices('postgres', { settings: { rateLimit: true } });
    const formId = await services.givenFormOf([{ id: 'text', type: 'text' }], { allowPartial: true });
    const { openHostedSession } = services.hosted;
    const { save: saveIn, submit } = postsOf(services.hosted);
    const [first, second] = [await openHostedSession({ formId }), await openHostedSession({ formId })];
    const save = ({ sessionId } = first) => saveIn({ formId, sessionId }, from('192.0.2.1'));

    for (let count = 0; count < 600; count += 20) await Promise.all(Array.from({ length: 20 }, () => save()));

    for (const session of [first, second]) await expectFailure(save(session), Reason.RATE_LIMITED);
    await expectFailure(
      submit({ formId, sessionId: second.sessionId }, from('192.0.2.1')),
      Reason.RATE_LIMITED,
    );
    await submit({ formId, sessionId: second.sessionId }, from('192.0.2.2'));
  });
});

const settings = { schedule: [0] } as never;

/** All that a visitor of a form's page can call. */
function visits({ hosted }: TestServices, formId: string): (() => Promise<unknown>)[] {
  return [
    () => hosted.getHosted({ formId }),
    () => postsOf(hosted).save({ formId }),
    () => hosted.openHostedSession({ formId }),
    () => postsOf(hosted).submit({ formId, inputs: [email] }),
  ];
}

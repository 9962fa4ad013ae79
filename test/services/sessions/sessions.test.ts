import { timestampMs } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type CreateSessionRequest, SessionStatus } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { newSessionId } from '../../../src/domain/ids.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'email', type: 'email', required: true },
  { id: 'note', type: 'text' },
  { id: 'plan', type: 'text', defaultValue: 'free' },
];
const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });

async function givenSession(services: TestServices, settings: object = {}, request: object = {}) {
  const formId = await services.givenFormOf(fields, settings);
  const { session } = await services.sessions.createSession(
    { subject: formSubject(formId), ...request },
    services.owner,
  );
  return { formId, sessionId: session?.id ?? '' };
}

async function expire({ database }: TestServices, sessionId: string) {
  await database.execute("update sessions set expires_at = now() - interval '1 second' where id = $1", [
    sessionId,
  ]);
}

async function count({ database }: TestServices, table: 'sessions' | 'submissions') {
  const [row] = await database.select(`select count(*)::int as n from ${table}`);
  return row?.n;
}

describe.each(engines)('CreateSession on %s', (engine) => {
  it('opens a session for an hour, with what its maker gave', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);

    const request = {
      subject: formSubject(formId),
      prefill: { note: 'Hi', plan: null },
      metadata: { order: [1, { a: null }] },
    };
    const { session } = await services.sessions.createSession(request, services.owner);

    expect(session).toMatchObject({
      formId,
      status: SessionStatus.OPEN,
      url: `https://forms.test/f/${session?.id}`,
      prefill: { note: 'Hi' },
      metadata: { order: [1, { a: null }] },
      submissionId: '',
    });
    expect(session?.id).toMatch(/^sess_.{26,}$/);
    const [start, end] = [session?.createTime, session?.expireTime];
    expect(end && start && timestampMs(end) - timestampMs(start)).toBe(3_600_000);
  });

  it('names every problem at once and stores nothing', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const create = (request: object) =>
      services.sessions.createSession({ subject: formSubject(formId), ...request }, services.owner);

    const all = await expectFailure(
      create({ expiresIn: seconds(0), prefill: { email: 'x', age: 1 }, metadata: { a: '\ud800' } }),
      Reason.INVALID,
    );
    const long = await expectFailure(
      create({ expiresIn: seconds(2_592_001), metadata: { a: 'x'.repeat(16_384) } }),
      Reason.INVALID,
    );
    const broken = await expectFailure(create({ expiresIn: { seconds: 1n, nanos: 5 } }), Reason.INVALID);

    expect(all.violations.sort()).toEqual([
      'expires_in: too_small',
      'metadata.a: custom',
      'prefill.age: unrecognized_keys',
      'prefill.email: invalid_string',
    ]);
    expect(long.violations).toEqual(['expires_in: too_big', 'metadata: too_big']);
    expect(broken.violations).toEqual(['expires_in: invalid_type']);
    expect(await count(services, 'sessions')).toBe(0);
  });

  it('is for published forms of the own project, with the scope', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const archived = await services.givenFormOf(fields);
    await services.forms.archiveForm({ formId: archived }, services.owner);
    const draft = await services.forms.createForm({ definition: definitionOf(fields) }, services.owner);
    const { createSession } = services.sessions;

    await expectFailure(createSession({ subject: formSubject(formId) }), Reason.MISSING_KEY);
    await expectFailure(
      createSession({ subject: formSubject(formId) }, await services.givenCaller(['sessions:read'])),
      Reason.INSUFFICIENT_SCOPE,
    );
    await expectFailure(
      createSession({ subject: formSubject(formId) }, await services.givenCaller(['*'], 'other')),
      Reason.NOT_FOUND,
    );
    await expectFailure(
      createSession({ subject: { case: 'formId', value: archived } }, services.owner),
      Reason.NOT_FOUND,
    );
    await expectFailure(
      createSession({ subject: { case: 'formId', value: draft.form?.id ?? '' } }, services.owner),
      Reason.NOT_FOUND,
    );

    expect(await count(services, 'sessions')).toBe(0);
  });

  it('opens none once the form takes no more submissions', async () => {
    await using services = await startServices(engine);
    const closesAt = new Date(services.clock.ms + 60_000).toISOString();
    const closing = await services.givenFormOf(fields, { closesAt });
    const full = await services.givenFormOf(fields, { maxSubmissions: 1 });
    const { createSession } = services.sessions;
    await createSession({ subject: { case: 'formId', value: closing } }, services.owner);
    await createSession({ subject: { case: 'formId', value: full } }, services.owner);
    await services.submissions.createSubmission({ formId: full, answers: { email: 'ann@example.com' } });

    services.clock.ms += 60_000;

    await expectFailure(
      createSession({ subject: { case: 'formId', value: closing } }, services.owner),
      Reason.CLOSED,
    );
    await expectFailure(
      createSession({ subject: { case: 'formId', value: full } }, services.owner),
      Reason.CLOSED,
    );
    await expectFailure(
      createSession({ subject: { case: 'formId', value: full }, expiresIn: seconds(0) }, services.owner),
      Reason.CLOSED,
    );
    expect(await count(services, 'sessions')).toBe(2);
  });

  it('opens one session for any number of calls with one idempotency key', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const request = {
      subject: formSubject(formId),
      prefill: { note: 'Hi' },
      metadata: { order: 1 },
      idempotencyKey: 'once',
    };
    const create = () => services.sessions.createSession(request, services.owner);

    const replies = await Promise.all(Array.from({ length: 20 }, create));
    await services.sessions.updateSession(
      { sessionId: replies[0]?.session?.id ?? '', metadata: { order: 2 } },
      services.owner,
    );
    const later = await create();

    expect(new Set([...replies, later].map(({ session }) => session?.id)).size).toBe(1);
    expect(later.session?.metadata).toEqual({ order: 2 });
    expect(await count(services, 'sessions')).toBe(1);
  });

  it('gives the first session again once the form is closed, archived or changed', async () => {
    await using services = await startServices(engine);
    const settings = { closesAt: new Date(services.clock.ms + 60_000).toISOString() };
    const formId = await services.givenFormOf(fields, settings);
    const request = { subject: formSubject(formId), prefill: { note: 'Hi' }, idempotencyKey: 'once' };
    const create = async () => (await services.sessions.createSession(request, services.owner)).session?.id;
    const first = await create();

    services.clock.ms += 60_000;
    const closed = await create();
    const definition = definitionOf([{ id: 'other', type: 'text' }]);
    await services.forms.publishFormVersion({ formId, definition }, services.owner);
    const changed = await create();
    await services.forms.archiveForm({ formId }, services.owner);
    const archived = await create();

    expect([closed, changed, archived]).toEqual([first, first, first]);
    expect(await count(services, 'sessions')).toBe(1);
  });

  it('keeps an idempotency key to one request of one form', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const other = await services.givenFormOf(fields);
    const create = (request: object) =>
      services.sessions.createSession(
        { subject: formSubject(formId), idempotencyKey: 'once', ...request },
        services.owner,
      );
    await create({ expiresIn: seconds(3600) });
    await create({});
    await create({ subject: formSubject(other) });

    const failures = [
      await expectFailure(create({ expiresIn: seconds(60) }), Reason.CONFLICT),
      await expectFailure(create({ prefill: { note: 'Hi' } }), Reason.CONFLICT),
      await expectFailure(create({ metadata: { order: 1 } }), Reason.CONFLICT),
      await expectFailure(create({ prefill: { email: 'x' } }), Reason.CONFLICT),
    ];
    const long = await expectFailure(create({ idempotencyKey: 'k'.repeat(256) }), Reason.BAD_REQUEST);
    const elsewhere = await services.givenCaller(['*'], 'other');
    await expectFailure(
      services.sessions.createSession({ subject: formSubject(formId), idempotencyKey: 'once' }, elsewhere),
      Reason.NOT_FOUND,
    );

    expect(failures.map(({ code }) => code)).toEqual(failures.map(() => Code.AlreadyExists));
    expect(long.violations).toEqual(['idempotency_key: invalid_string']);
    expect(await count(services, 'sessions')).toBe(2);
  });

  it('answers without a key where none is required', async () => {
    await using services = await startServices(engine, { settings: { requireApiKey: false } });
    const formId = await services.givenFormOf(fields);

    const { session } = await services.sessions.createSession({ subject: formSubject(formId) });

    expect(session?.formId).toBe(formId);
  });
});

describe.each(engines)('GetSession and UpdateSession on %s', (engine) => {
  it('let nobody read or change what is not theirs', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);
    const other = await services.givenCaller(['*'], 'other');
    const reader = await services.givenCaller(['sessions:read']);

    for (const call of [services.sessions.getSession, services.sessions.updateSession]) {
      await expectFailure(call({ sessionId }), Reason.MISSING_KEY);
      await expectFailure(call({ sessionId }, other), Reason.NOT_FOUND);
      await expectFailure(call({ sessionId: newSessionId() }, services.owner), Reason.NOT_FOUND);
      await expectFailure(call({ sessionId: '\0' }, services.owner), Reason.NOT_FOUND);
    }
    await expectFailure(services.sessions.updateSession({ sessionId }, reader), Reason.INSUFFICIENT_SCOPE);
    expect((await services.sessions.getSession({ sessionId }, reader)).session?.id).toBe(sessionId);
  });

  it('merges what is changed into what is there; null removes', async () => {
    await using services = await startServices(engine);
    const given = { prefill: { note: 'Hi', plan: 'pro' }, metadata: { a: 1, b: 2 } };
    const { sessionId } = await givenSession(services, { allowPartial: true }, given);
    const update = (request: object) =>
      services.sessions.updateSession({ sessionId, ...request }, services.owner);

    await update({ prefill: { note: null, email: 'a@example.com' }, metadata: { a: null, c: 3 } });
    await update({ answers: { note: 'x', plan: null } });
    await update({ answers: { note: 'y' } });
    const { session } = await services.sessions.getSession({ sessionId }, services.owner);

    expect(session?.prefill).toEqual({ plan: 'pro', email: 'a@example.com' });
    expect(session?.metadata).toEqual({ b: 2, c: 3 });
    expect(session?.partialAnswers).toEqual({ note: 'y', plan: null });
  });

  it('gives more time, up to 30 days from now', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);
    const update = async (request: object) => {
      const { session } = await services.sessions.updateSession({ sessionId, ...request }, services.owner);
      const [start, end] = [session?.createTime, session?.expireTime];
      return end && start && (timestampMs(end) - timestampMs(start)) / 1000;
    };

    expect(await update({ extendBy: seconds(400) })).toBe(4000);
    expect(Math.round((await update({ expiresIn: seconds(7200) })) ?? 0)).toBeCloseTo(7200, -2);
    const far = await expectFailure(update({ extendBy: seconds(2_592_000) }), Reason.INVALID);
    const both = await expectFailure(update({ extendBy: seconds(1), expiresIn: seconds(1) }), Reason.INVALID);
    expect(far.violations).toEqual(['extend_by: too_big']);
    expect(both.violations).toEqual(['extend_by: custom']);
  });

  it('names every problem at once and changes nothing', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, {}, { metadata: { a: 'x'.repeat(10_000) } });
    const request = {
      sessionId,
      prefill: { age: 1 },
      answers: { email: 'x' },
      metadata: { b: 'x'.repeat(10_000) },
    };

    const refused = await expectFailure(
      services.sessions.updateSession(request, services.owner),
      Reason.INVALID,
    );

    expect(refused.violations.sort()).toEqual([
      'answers.email: invalid_string',
      'answers: custom',
      'metadata: too_big',
      'prefill.age: unrecognized_keys',
    ]);
    const { session } = await services.sessions.getSession({ sessionId }, services.owner);
    expect(Object.keys(session?.metadata ?? {})).toEqual(['a']);
  });

  it('tell and respect the end of a session', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);
    await expire(services, sessionId);

    const { session } = await services.sessions.getSession({ sessionId }, services.owner);

    expect(session?.status).toBe(SessionStatus.EXPIRED);
    await expectFailure(
      services.sessions.updateSession({ sessionId, expiresIn: seconds(60) }, services.owner),
      Reason.EXPIRED,
    );
    await expectFailure(
      services.sessions.submitSession({ sessionId, answers: { email: 'a@example.com' } }, services.owner),
      Reason.EXPIRED,
    );
    expect(await count(services, 'submissions')).toBe(0);
  });

  it('refuses changes once the form is archived', async () => {
    await using services = await startServices(engine);
    const { formId, sessionId } = await givenSession(services);
    await services.forms.archiveForm({ formId }, services.owner);

    await expectFailure(services.sessions.updateSession({ sessionId }, services.owner), Reason.ARCHIVED);
    await expectFailure(services.sessions.submitSession({ sessionId }, services.owner), Reason.ARCHIVED);
  });
});

describe.each(engines)('SubmitSession on %s', (engine) => {
  it('lays answers over partial answers over prefill over defaults', async () => {
    await using services = await startServices(engine);
    const given = { prefill: { email: 'a@example.com', note: 'prefill' }, metadata: { order: 7 } };
    const { formId, sessionId } = await givenSession(services, { allowPartial: true }, given);
    await services.sessions.updateSession({ sessionId, answers: { note: 'partial' } }, services.owner);

    const reply = await services.sessions.submitSession(
      { sessionId, answers: { email: 'b@example.com' } },
      services.owner,
    );

    expect(reply.submission).toMatchObject({
      formId,
      sessionId,
      answers: { email: 'b@example.com', note: 'partial', plan: 'free' },
      metadata: { order: 7 },
    });
    expect(reply.session).toMatchObject({
      status: SessionStatus.SUBMITTED,
      submissionId: reply.submission?.id,
    });
    const [event] = await services.database.select('select type, body from events where submission_id = $1', [
      reply.submission?.id,
    ]);
    expect(event?.type).toBe('submission.created');
    expect(JSON.parse(String(event?.body)).data).toMatchObject({
      sessionId,
      status: 'accepted',
      metadata: { order: 7 },
    });
  });

  it('never skips validation, and null clears', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, {}, { prefill: { email: 'a@example.com' } });
    const submit = (answers: object) =>
      services.sessions.submitSession({ sessionId, answers: { ...answers } }, services.owner);

    const cleared = await expectFailure(submit({ email: null }), Reason.INVALID);
    const { submission } = await submit({ plan: null });

    expect(cleared.violations).toEqual(['answers.email: invalid_type']);
    expect(submission?.answers).toEqual({ email: 'a@example.com' });
  });

  it('makes one submission of any number of calls at once', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, {}, { prefill: { email: 'a@example.com' } });
    const submit = () => services.sessions.submitSession({ sessionId }, services.owner);

    const outcomes = await Promise.allSettled([submit(), submit(), submit(), submit()]);
    const again = await expectFailure(submit(), Reason.CONFLICT);

    const done = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(done).toHaveLength(1);
    expect(again.submissionId).toBe(done[0]?.submission?.id);
    expect(await count(services, 'submissions')).toBe(1);
  });

  it('keeps the fields of the version the session began with', async () => {
    await using services = await startServices(engine);
    const { formId, sessionId } = await givenSession(services);
    const definition = definitionOf([{ id: 'other', type: 'text', required: true }]);
    await services.forms.publishFormVersion({ formId, definition }, services.owner);

    const answers = { email: 'a@example.com' };
    const { submission, session } = await services.sessions.submitSession(
      { sessionId, answers },
      services.owner,
    );

    expect(submission?.formVersionId).toBe(session?.formVersionId);
    expect(submission?.answers).toEqual({ email: 'a@example.com', plan: 'free' });
  });

  it('lets no stranger submit', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);
    const { submitSession } = services.sessions;

    await expectFailure(submitSession({ sessionId }), Reason.MISSING_KEY);
    await expectFailure(
      submitSession({ sessionId }, await services.givenCaller(['sessions:read'])),
      Reason.INSUFFICIENT_SCOPE,
    );
    await expectFailure(
      submitSession({ sessionId }, await services.givenCaller(['*'], 'other')),
      Reason.NOT_FOUND,
    );

    expect(await count(services, 'submissions')).toBe(0);
  });
});

function formSubject(formId: string): CreateSessionRequest['subject'] {
  return { case: 'formId', value: formId };
}

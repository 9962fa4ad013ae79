import { describe, expect, it } from 'vitest';
import { HostedGoal, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason, ViolationCode } from '../../../gen/headlessforms/v1/errors_pb.js';
import { newSessionId } from '../../../src/domain/ids.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { postsOf } from '../../support/hosted.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'plan', type: 'hidden', defaultValue: 'free' },
  { id: 'email', type: 'email', required: true, agentHint: 'the secret hint' },
  { id: 'team', type: 'text', visibleWhen: { field: 'plan', op: 'eq', value: 'pro' } },
  { id: 'note', type: 'text', defaultValue: 'none', page: 2, required: true },
];

async function givenSession(services: TestServices, settings: object = {}, request: object = {}) {
  const formId = await services.givenFormOf(fields, settings);
  const { session } = await services.sessions.createSession(
    { subject: { case: 'formId', value: formId }, ...request },
    services.owner,
  );
  return { formId, sessionId: session?.id ?? '' };
}

const input = (name: string, ...values: string[]) => ({ name, values });

async function stored({ database }: TestServices) {
  const submissions = await database.select('select answers, status, source from submissions');
  const events = await database.select("select type, body from events where type like 'submission.%'");
  return { submissions, events };
}

describe.each(engines)('GetHosted of a session on %s', (engine) => {
  it('shows only what a person may see', async () => {
    await using services = await startServices(engine);
    const request = {
      prefill: { plan: 'pro', email: 'a@example.com' },
      metadata: { secret: 'kept-from-pages' },
    };
    const { sessionId } = await givenSession(services, { embedOrigins: ['https://shop.example'] }, request);

    const { session } = await services.hosted.getHosted({ sessionId });

    expect(session).toMatchObject({
      state: HostedState.OPEN,
      formName: 'Test',
      answers: { email: 'a@example.com', note: 'none' },
      embedOrigins: ['https://shop.example'],
      allowPartial: false,
    });
    expect(session?.fields.map(({ id, visibleWhen }) => [id, visibleWhen])).toEqual([
      ['email', undefined],
      ['team', undefined],
      ['note', undefined],
    ]);
    const seen = JSON.stringify(session, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    expect(seen).not.toMatch(/secret|metadata|kept-from-pages|"plan"|"pro"/);
  });

  it('notes the first opening only, and no preview', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);

    await services.hosted.getHosted({ sessionId, preview: true });
    const before = await services.sessions.getSession({ sessionId }, services.owner);
    await services.hosted.getHosted({ sessionId });
    const first = await services.sessions.getSession({ sessionId }, services.owner);
    await services.hosted.getHosted({ sessionId });
    const second = await services.sessions.getSession({ sessionId }, services.owner);

    expect(before.session?.openTime).toBeUndefined();
    expect(first.session?.openTime).toBeDefined();
    expect(second.session?.openTime).toEqual(first.session?.openTime);
  });

  it('says why a session takes no answers, and shows none then', async () => {
    await using services = await startServices(engine);
    const prefill = { email: 'a@example.com' };
    const submitted = await givenSession(services, {}, { prefill });
    await services.sessions.submitSession({ sessionId: submitted.sessionId }, services.owner);
    const expired = await givenSession(services, {}, { prefill });
    await services.database.execute(
      "update sessions set expires_at = now() - interval '1 second' where id = $1",
      [expired.sessionId],
    );
    const archived = await givenSession(services, {}, { prefill });
    await services.forms.archiveForm({ formId: archived.formId }, services.owner);
    const closesAt = new Date(services.clock.ms + 1_000).toISOString();
    const closed = await givenSession(services, { closesAt }, { prefill });
    services.clock.ms += 2_000;

    const states = [];
    for (const { sessionId } of [submitted, expired, archived, closed]) {
      const { session } = await services.hosted.getHosted({ sessionId });
      states.push([session?.state, session?.fields.length, session?.answers]);
      await expect(postsOf(services.hosted).submit({ sessionId })).rejects.toThrow();
    }

    expect(states).toEqual([
      [HostedState.SUBMITTED, 0, undefined],
      [HostedState.EXPIRED, 0, undefined],
      [HostedState.ARCHIVED, 0, undefined],
      [HostedState.CLOSED, 0, undefined],
    ]);
    await expectFailure(services.hosted.getHosted({ sessionId: newSessionId() }), Reason.NOT_FOUND);
    await expectFailure(services.hosted.getHosted({ sessionId: '\0' }), Reason.NOT_FOUND);
  });
});

describe.each(engines)('PostHosted to save on %s', (engine) => {
  it('keeps what fits, names what does not, and what the page still lacks', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, { allowPartial: true });

    const refused = await postsOf(services.hosted).save({
      sessionId,
      inputs: [input('email', 'x'), input('note', 'kept'), input('plan', 'pro')],
    });
    const lacking = await services.hosted.postHosted({
      sessionId,
      inputs: [input('email', '')],
      goal: HostedGoal.FORWARD,
      page: 1,
      shown: ['email'],
    });
    const { session } = await services.sessions.getSession({ sessionId }, services.owner);
    const again = await services.hosted.getHosted({ sessionId });

    expect(refused).toMatchObject({ saved: true, answers: { note: 'kept' } });
    expect(refused.refused).toEqual(['email']);
    expect(lacking.violations.map(({ path, message }) => [path, message])).toEqual([
      ['answers.email', 'Required'],
    ]);
    expect(session?.partialAnswers).toEqual({ note: 'kept', email: null });
    expect(again.session?.answers).toEqual({ note: 'kept' });
  });

  it('writes nothing where the answers are those that it holds', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, { allowPartial: true });
    const save = (note: string) =>
      postsOf(services.hosted).save({ sessionId, inputs: [input('note', note)] });
    const row = () => services.database.select('select xmin::text, ctid::text from sessions');

    await save('kept');
    const before = await row();
    const again = await save('kept');
    const same = await row();
    await save('changed');

    expect(again).toMatchObject({ saved: true, answers: { note: 'kept' } });
    expect(same).toEqual(before);
    expect(await row()).not.toEqual(before);
  });

  it('writes at most so many bytes of a session a minute', async () => {
    await using services = await startServices(engine, { settings: { rateLimit: true } });
    const note = { id: 'note', type: 'textarea', maxLength: 60_000 };
    const formId = await services.givenFormOf([note], { allowPartial: true });
    const { sessionId } = await services.hosted.openHostedSession({ formId });
    const { sessionId: other } = await services.hosted.openHostedSession({ formId });
    const save = (id: string, count: number) =>
      postsOf(services.hosted).save({
        formId,
        sessionId: id,
        inputs: [input('note', `${count}`.padEnd(60_000, 'x'))],
      });

    for (let count = 0; count < 52; count += 1) await save(sessionId, count);

    await expectFailure(save(sessionId, 52), Reason.RATE_LIMITED);
    expect(await save(sessionId, 51)).toMatchObject({ saved: true });
    expect(await save(other, 52)).toMatchObject({ saved: true });
    services.clock.ms += 60_000;
    expect(await save(sessionId, 52)).toMatchObject({ saved: true, refused: [] });
  });

  it('keeps nothing unless the form does', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);

    const reply = await services.hosted.postHosted({
      sessionId,
      inputs: [input('note', 'typed')],
      goal: HostedGoal.FORWARD,
      page: 1,
      shown: ['email'],
    });

    expect(reply).toMatchObject({ saved: false, answers: { note: 'typed' } });
    expect(reply.violations.map(({ path }) => path)).toEqual(['answers.email']);
    const again = await services.hosted.getHosted({ sessionId });
    expect(again.session?.answers).toEqual({ note: 'none' });
  });
});

describe.each(engines)('A session of a form made without a key, on %s', (engine) => {
  it('holds 64 KiB of answers, however many calls bring them', async () => {
    await using services = await startServices(engine);
    const ids = Array.from({ length: 8 }, (_, index) => `text${index}`);
    const formId = await services.givenFormOf(
      ids.map((id) => ({ id, type: 'textarea' })),
      { allowPartial: true },
      { headers: { authorization: 'none' } },
    );
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const sessionId = session?.id ?? '';
    const inputs = ids.map((id) => input(id, 'x'.repeat(9_000)));
    const { save, submit } = postsOf(services.hosted);

    await expectFailure(save({ sessionId, inputs }), Reason.TOO_LARGE);
    await save({ sessionId, inputs: inputs.slice(0, 7) });
    await expectFailure(save({ sessionId, inputs: inputs.slice(7) }), Reason.TOO_LARGE);
    await expectFailure(submit({ sessionId, inputs: inputs.slice(7) }), Reason.TOO_LARGE);

    expect(await stored(services)).toEqual({ submissions: [], events: [] });
  });
});

describe.each(engines)('PostHosted to submit on %s', (engine) => {
  it('drops posted hidden values, and announces that a human completed it', async () => {
    await using services = await startServices(engine);
    const settings = { redirectUrl: 'https://shop.example/thanks' };
    const { sessionId } = await givenSession(services, settings, { prefill: { plan: 'pro', note: 'x' } });
    const inputs = [input('email', 'a@example.com'), input('plan', 'hacked'), input('team', 'Red')];

    const { submissionId, ending } = await postsOf(services.hosted).submit({ sessionId, inputs });

    const { submissions, events } = await stored(services);
    const answers = { plan: 'pro', email: 'a@example.com', team: 'Red', note: 'x' };
    expect(submissions).toEqual([{ answers, status: 'accepted', source: 'hosted' }]);
    expect(events.map(({ type }) => type)).toEqual(['submission.completed']);
    expect(JSON.parse(String(events[0]?.body))).toMatchObject({
      event: 'submission.completed',
      data: { submissionId, status: 'complete', sessionId },
    });
    expect(ending?.redirectUrl).toBe('https://shop.example/thanks');
    expect(ending?.answers.map(({ text }) => text)).toEqual(['a@example.com', 'Red', 'x']);
  });

  it('names every refused answer, and takes the corrected ones once', async () => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services);
    const submit = (email: string) =>
      postsOf(services.hosted).submit({ sessionId, inputs: [input('email', email), input('note', '')] });

    const refused = await submit('');
    const outcomes = await Promise.allSettled([
      postsOf(services.hosted).submit({ sessionId, inputs: [input('email', 'a@example.com')] }),
      postsOf(services.hosted).submit({ sessionId, inputs: [input('email', 'a@example.com')] }),
    ]);
    await expectFailure(submit('a@example.com'), Reason.CONFLICT);

    expect(refused.violations.map(({ path, code }) => [path, code])).toEqual([
      ['answers.email', ViolationCode.INVALID_TYPE],
      ['answers.note', ViolationCode.INVALID_TYPE],
    ]);
    expect([refused.step, refused.ending, refused.submissionId]).toEqual([1, undefined, '']);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it.each([
    ['a filled honeypot', { honeypot: 'http' }, 60_000, 'spam'],
    ['an answer sooner than minSeconds', {}, 1000, 'spam'],
    ['no token', { issueToken: '' }, 60_000, 'spam'],
    ['a forged token', { issueToken: 'c2Vzcw..AAAA' }, 60_000, 'spam'],
    ['a person', {}, 60_000, 'accepted'],
  ])('judges %s, and answers all alike', async (_, sent, waited, status) => {
    await using services = await startServices(engine);
    const { sessionId } = await givenSession(services, { spam: { honeypot: true, minSeconds: 5 } });
    const { session } = await services.hosted.getHosted({ sessionId });
    services.clock.ms += waited;

    const reply = await postsOf(services.hosted).submit({
      sessionId,
      inputs: [input('email', 'a@example.com')],
      issueToken: session?.issueToken ?? '',
      ...sent,
    });

    const { submissions, events } = await stored(services);
    expect(reply.ending?.answers).toHaveLength(2);
    expect(submissions).toMatchObject([{ status }]);
    expect(events).toMatchObject([{ type: status === 'spam' ? 'submission.spam' : 'submission.completed' }]);
  });

  it('keeps the fields and words of the version it began with, and behaves as the form does now', async () => {
    await using services = await startServices(engine);
    const { formId, sessionId } = await givenSession(services, { successMessage: 'Old words' });
    const definition = definitionOf([{ id: 'other', type: 'text', required: true }], {
      redirectUrl: 'https://shop.example/now',
    });
    await services.forms.publishFormVersion({ formId, definition }, services.owner);

    const inputs = [input('email', 'a@example.com')];
    const { ending } = await postsOf(services.hosted).submit({ sessionId, inputs });

    expect(ending).toMatchObject({ successMessage: 'Old words', redirectUrl: 'https://shop.example/now' });
  });
});

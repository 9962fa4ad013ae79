import { Code } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Reason, ViolationCode } from '../../../gen/headlessforms/v1/errors_pb.js';
import { SubmissionStatus } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { demoFormId, newId } from '../../../src/domain/ids.ts';
import { contextOf } from '../../../src/rpc/context.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { servicesOn, startServices, type TestServices } from '../../support/services.ts';

const answers = { email: 'ann@example.com' };

async function stored({ database }: TestServices) {
  const submissions = await database.select('select * from submissions order by id');
  const events = await database.select(
    "select type, body from events where type like 'submission.%' order by id",
  );
  return { submissions, events };
}

describe.each(engines)('CreateSubmission on %s', (engine) => {
  it('stores the answers and announces them in the same commit', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();

    const { submissionId } = await services.submissions.createSubmission({ formId, answers, source: 'site' });

    const { submissions, events } = await stored(services);
    expect(submissions).toMatchObject([
      { id: submissionId, form_id: formId, source: 'site', status: 'accepted' },
    ]);
    expect(events.map(({ type }) => type)).toEqual(['submission.created']);
    expect(JSON.parse(String(events[0]?.body))).toMatchObject({
      event: 'submission.created',
      data: {
        submissionId,
        formId,
        status: 'accepted',
        answers,
        source: 'site',
        metadata: {},
        sessionId: null,
      },
    });
  });

  it('names every refused answer and stores nothing', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const { createSubmission } = services.submissions;

    const wrong = await expectFailure(
      createSubmission({ formId, answers: { email: 'x', age: 1 } }),
      Reason.INVALID,
    );
    const none = await expectFailure(createSubmission({ formId }), Reason.INVALID);
    const source = await expectFailure(
      createSubmission({ formId, answers, source: 's'.repeat(201) }),
      Reason.INVALID,
    );
    const nul = await expectFailure(createSubmission({ formId, answers, source: '\0' }), Reason.INVALID);

    expect(wrong.violations).toEqual(['answers.email: invalid_string', 'answers.age: unrecognized_keys']);
    expect(none.violations).toEqual(['answers: invalid_type']);
    expect(source.violations).toEqual(['source: too_big']);
    expect(nul.violations).toEqual(['source: invalid_string']);
    expect(await stored(services)).toEqual({ submissions: [], events: [] });
  });

  it('says that drafts and unknown forms are not there, and that archived and closed ones are over', async () => {
    await using services = await startServices(engine);
    const draft = await services.forms.createForm(
      { definition: definitionOf([{ id: 'email', type: 'email' }]) },
      services.owner,
    );
    const archived = await services.givenFormOf();
    await services.forms.archiveForm({ formId: archived }, services.owner);
    const closed = await services.givenFormOf(undefined, { closesAt: '2020-01-01T00:00:00Z' });
    const submit = (formId: string) => services.submissions.createSubmission({ formId, answers });

    await expectFailure(submit(draft.form?.id ?? ''), Reason.NOT_FOUND);
    await expectFailure(submit(newId('form', 0)), Reason.NOT_FOUND);
    await expectFailure(submit("' or 1=1"), Reason.NOT_FOUND);
    await expectFailure(submit(archived), Reason.ARCHIVED);
    await expectFailure(submit(closed), Reason.CLOSED);

    expect((await stored(services)).submissions).toEqual([]);
  });

  it('takes no more than maxSubmissions, and again after one is deleted', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { maxSubmissions: 2 });
    const submit = () => services.submissions.createSubmission({ formId, answers });

    const { submissionId } = await submit();
    await submit();
    await expectFailure(submit(), Reason.CLOSED);
    await services.submissions.deleteSubmission({ submissionId }, services.owner);
    await submit();

    expect((await stored(services)).submissions).toHaveLength(2);
  });

  it.each([1, 7])(
    'takes exactly maxSubmissions of %i from 100 posts at once by two processes',
    async (max) => {
      await using services = await startServices(engine);
      await using opened = new AsyncDisposableStack();
      const other = opened.adopt(await servicesOn(services.database), (running) => running.close());
      const formId = await services.givenFormOf(undefined, { maxSubmissions: max });

      const replies = await Promise.allSettled(
        Array.from({ length: 100 }, (_, n) =>
          (n % 2 === 0 ? services : other).submissions.createSubmission({ formId, answers }),
        ),
      );

      const refused = replies.flatMap((reply) => (reply.status === 'rejected' ? [reply.reason] : []));
      expect(refused).toHaveLength(100 - max);
      for (const error of refused) await expectFailure(Promise.reject(error), Reason.CLOSED);
      expect((await stored(services)).submissions).toHaveLength(max);
      expect(
        await services.database.select('select slot, accepted::int from form_counters where form_id = $1', [
          formId,
        ]),
      ).toEqual([{ slot: 0, accepted: max }]);
    },
  );

  it('counts what came before a form had maxSubmissions', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { maxSubmissions: 3 });
    await services.database.execute(
      'insert into form_counters (form_id, slot, accepted) values ($1, 5, 1), ($1, 9, 1)',
      [formId],
    );

    const replies = await Promise.allSettled(
      Array.from({ length: 5 }, () => services.submissions.createSubmission({ formId, answers })),
    );

    expect(replies.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('repeats the reply of the submission that made the form full', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { maxSubmissions: 1 });
    const submit = () => services.submissions.createSubmission({ formId, answers, idempotencyKey: 'once' });

    const replies = await Promise.all([submit(), submit(), submit()]);

    expect(new Set(replies.map(({ submissionId }) => submissionId)).size).toBe(1);
  });

  it('lets no form made without a key grow without end', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, {}, { headers: { authorization: 'none' } });
    const long = { email: 'ann@example.com', note: 'x'.repeat(65_536) };

    await expectFailure(services.submissions.createSubmission({ formId, answers: long }), Reason.TOO_LARGE);
    await services.submissions.createSubmission({ formId, answers });
    await services.database.execute('update form_counters set accepted = 9000, spam = 1000');
    services.clock.ms += 2000;
    await expectFailure(services.submissions.createSubmission({ formId, answers }), Reason.CLOSED);

    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it('takes browsers of allowed origins only', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { allowedOrigins: ['https://shop.example'] });
    const from = (origin: string) =>
      services.submissions.createSubmission({ formId, answers }, { headers: { origin } });

    await from('https://shop.example');
    const { code } = await expectFailure(from('https://evil.example'), Reason.ORIGIN_NOT_ALLOWED);

    expect(code).toBe(Code.PermissionDenied);
    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it("as the management tier needs the scope and a form of the key's project", async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const submit = (options = {}) =>
      services.submissions.createManagedSubmission({ formId, answers }, options);

    await expectFailure(submit(), Reason.MISSING_KEY);
    await expectFailure(submit(await services.givenCaller(['submissions:read'])), Reason.INSUFFICIENT_SCOPE);
    await expectFailure(submit(await services.givenCaller(['*'], 'other')), Reason.NOT_FOUND);
    await submit(await services.givenCaller(['submissions:write']));

    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it('makes one submission of any number of calls with one idempotency key', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const request = { formId, answers, idempotencyKey: 'once' };

    const replies = await Promise.all(
      Array.from({ length: 20 }, () => services.submissions.createSubmission(request)),
    );
    const later = await services.submissions.createSubmission(request);

    expect(new Set([...replies, later].map(({ submissionId }) => submissionId)).size).toBe(1);
    const { submissions, events } = await stored(services);
    expect(submissions).toHaveLength(1);
    expect(events).toHaveLength(1);
  });

  it('gives the first answer again after the form has filled, closed or changed', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { maxSubmissions: 1 });
    const request = { formId, answers, idempotencyKey: 'once' };
    const first = await services.submissions.createSubmission(request);

    const full = await services.submissions.createSubmission(request);
    const definition = definitionOf([{ id: 'other', type: 'text', required: true }]);
    await services.forms.publishFormVersion({ formId, definition }, services.owner);
    const changed = await services.submissions.createSubmission(request);

    expect([full.submissionId, changed.submissionId]).toEqual([first.submissionId, first.submissionId]);
    await expectFailure(services.submissions.createSubmission({ formId, answers }), Reason.INVALID);
  });

  it('refuses an idempotency key that was used for another request, and ones that are none', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const submit = (idempotencyKey: string, email = 'ann@example.com', options = services.owner) =>
      services.submissions.createSubmission({ formId, answers: { email }, idempotencyKey }, options);
    await submit('once');

    const reused = await expectFailure(submit('once', 'bob@example.com'), Reason.CONFLICT);
    const long = await expectFailure(submit('k'.repeat(256)), Reason.BAD_REQUEST);

    expect(reused.code).toBe(Code.AlreadyExists);
    expect(long.violations).toEqual(['idempotency_key: invalid_string']);
    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it('tells nobody without a key of another’s idempotency key, and repeats for whom sent the same', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const submit = async (email: string, options = {}, source = '') => {
      const request = { formId, answers: { email }, idempotencyKey: 'guessed', source };
      return (await services.submissions.createSubmission(request, options)).submissionId;
    };
    const from = (address: string) => contextOf({ clientAddress: address });
    const first = await submit('ann@example.com', { contextValues: from('192.0.2.1') });

    const others = [
      await submit('bob@example.com', { contextValues: from('192.0.2.2') }),
      await submit('ann@example.com', {}, 'guesser'),
      await submit('ann@example.com', services.owner),
    ];
    const again = await submit('ann@example.com', { contextValues: from('198.51.100.7') });

    expect(again).toBe(first);
    expect(new Set([first, ...others]).size).toBe(4);
  });

  it('reads the inputs of an HTML form, drops unknown names, and thanks with a copy in words', async () => {
    await using services = await startServices(engine);
    const fields = [
      { id: 'email', type: 'email', label: 'Your address' },
      { id: 'terms', type: 'checkbox' },
      { id: 'ref', type: 'hidden' },
    ];
    const formId = await services.givenFormOf(fields, { successMessage: 'Thanks!' });
    const inputs = [
      { name: 'email', values: ['ann@example.com'] },
      { name: 'terms', values: ['on'] },
      { name: 'ref', values: ['x'] },
      { name: 'utm', values: ['y'] },
    ];
    const headers = { origin: 'https://blog.example' };

    const reply = await services.hosted.submitPostedForm({ formId, inputs, nextUrl: '/thanks' }, { headers });
    const elsewhere = await services.hosted.submitPostedForm(
      { formId, inputs, nextUrl: 'https://evil.example' },
      { headers },
    );

    expect((await stored(services)).submissions[0]?.answers).toEqual({
      email: 'ann@example.com',
      terms: true,
      ref: 'x',
    });
    expect(reply.ending).toMatchObject({
      successMessage: 'Thanks!',
      formName: 'Test',
      redirectUrl: 'https://blog.example/thanks',
      answers: [
        { label: 'Your address', text: 'ann@example.com' },
        { label: 'Terms', text: 'Yes' },
      ],
    });
    expect(elsewhere.ending?.redirectUrl).toBe('');
  });

  it('stores what fell for the honeypot as spam, answers alike, and tells only who watches for spam', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();

    const { submissionId } = await services.hosted.submitPostedForm({
      formId,
      inputs: [{ name: 'email', values: [answers.email] }],
      honeypot: 'http',
    });

    const { submissions, events } = await stored(services);
    expect(submissionId).toMatch(/^sub_/);
    expect(submissions).toMatchObject([{ status: 'spam' }]);
    expect(events).toMatchObject([{ type: 'submission.spam' }]);
  });
});

describe.each(engines)('CheckAnswers on %s', (engine) => {
  it('names what CreateSubmission would refuse, and stores nothing', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const { checkAnswers } = services.submissions;

    const fitting = await checkAnswers({ formId, answers });
    const wrong = await checkAnswers({ formId, answers: { email: 'x', age: 1 } });
    const none = await checkAnswers({ formId });

    expect(fitting.violations).toEqual([]);
    expect(wrong.violations.map(({ path, code }) => `${path}: ${ViolationCode[code]}`)).toEqual([
      'answers.email: INVALID_STRING',
      'answers.age: UNRECOGNIZED_KEYS',
    ]);
    expect(none.violations).toEqual([]);
    expect(await stored(services)).toEqual({ submissions: [], events: [] });
  });

  it('fails where the form takes no answers, or none from this caller', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(undefined, { allowedOrigins: ['https://shop.example'] });
    const closed = await services.givenFormOf(undefined, { closesAt: '2020-01-01T00:00:00Z' });
    const keyless = await services.givenFormOf(undefined, {}, { headers: { authorization: 'none' } });
    const long = { email: 'ann@example.com', note: 'x'.repeat(65_536) };
    const { checkAnswers, checkManagedAnswers } = services.submissions;

    await expectFailure(checkAnswers({ formId: newId('form', 0) }), Reason.NOT_FOUND);
    await expectFailure(checkAnswers({ formId: closed }), Reason.CLOSED);
    await expectFailure(
      checkAnswers({ formId }, { headers: { origin: 'https://evil.example' } }),
      Reason.ORIGIN_NOT_ALLOWED,
    );
    await expectFailure(checkAnswers({ formId: keyless, answers: long }), Reason.TOO_LARGE);
    await expectFailure(checkManagedAnswers({ formId }), Reason.MISSING_KEY);
    await expectFailure(
      checkManagedAnswers({ formId }, await services.givenCaller(['*'], 'other')),
      Reason.NOT_FOUND,
    );
  });
});

describe.each(engines)('CreateDemoSubmission on %s', (engine) => {
  it('stores under the demo form, and checks the answers', async () => {
    await using services = await startServices(engine);
    const demo = { name: 'Ann', email: 'ann@example.com', message: 'Hello' };

    await services.submissions.createDemoSubmission({ answers: demo });
    await expectFailure(
      services.submissions.createDemoSubmission({ answers: { email: 'x' } }),
      Reason.INVALID,
    );

    expect((await stored(services)).submissions).toMatchObject([
      { form_id: demoFormId, source: 'demo', answers: demo },
    ]);
  });
});

describe.each(engines)('GetSubmission and DeleteSubmission on %s', (engine) => {
  it('let nobody read or delete what is not theirs', async () => {
    await using services = await startServices(engine);
    const { getSubmission, deleteSubmission } = services.submissions;
    const formId = await services.givenFormOf();
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });
    const other = await services.givenCaller(['*'], 'other');

    await expectFailure(getSubmission({ submissionId }), Reason.MISSING_KEY);
    await expectFailure(deleteSubmission({ submissionId }), Reason.MISSING_KEY);
    await expectFailure(
      deleteSubmission({ submissionId }, await services.givenCaller(['submissions:read'])),
      Reason.INSUFFICIENT_SCOPE,
    );
    for (const call of [getSubmission, deleteSubmission]) {
      await expectFailure(call({ submissionId }, other), Reason.NOT_FOUND);
      await expectFailure(call({ submissionId: newId('sub', 0) }, services.owner), Reason.NOT_FOUND);
      await expectFailure(call({ submissionId: '\0' }, services.owner), Reason.NOT_FOUND);
    }

    expect((await stored(services)).submissions).toHaveLength(1);
  });

  it('read a submission whole, and remove it with its event', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf();
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });

    const { submission } = await services.submissions.getSubmission({ submissionId }, services.owner);
    await services.submissions.deleteSubmission({ submissionId }, services.owner);

    expect(submission).toMatchObject({
      id: submissionId,
      formId,
      sessionId: '',
      source: 'api',
      answers,
      status: SubmissionStatus.ACCEPTED,
      metadata: {},
    });
    await expectFailure(
      services.submissions.deleteSubmission({ submissionId }, services.owner),
      Reason.NOT_FOUND,
    );
    expect(await stored(services)).toEqual({ submissions: [], events: [] });
  });
});

import { describe, expect, it } from 'vitest';
import { Reason, ViolationCode } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { oneEngine } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { postsOf } from '../../support/hosted.ts';
import { startServices, type TestServices } from '../../support/services.ts';

/** An agent fills `case`, either fills `note`, and a person agrees. */
const fields = [
  { id: 'case', type: 'text', required: true, answeredBy: 'agent' },
  { id: 'note', type: 'text' },
  { id: 'consent', type: 'checkbox', required: true, answeredBy: 'human' },
  {
    id: 'reason',
    type: 'text',
    required: true,
    answeredBy: 'human',
    visibleWhen: { field: 'case', op: 'eq', value: 'refund' },
  },
];

const input = (name: string, value: string) => ({ name, values: [value] });

async function givenSession(services: TestServices, prefill: JsonObject, settings: object = {}) {
  const formId = await services.givenFormOf(fields, settings);
  const { session } = await services.sessions.createSession(
    { subject: { case: 'formId', value: formId }, prefill },
    services.owner,
  );
  return session?.id ?? '';
}

/** What a call is refused for, once it is: path and code of each answer. */
const refused = async (call: Promise<unknown>) => (await expectFailure(call, Reason.INVALID)).violations;

describe.each(oneEngine('pglite'))('answeredBy on %s', (engine) => {
  it('lets neither an API call nor an HTML form answer for a person', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const submit = (request: object) => services.submissions.createSubmission({ formId, ...request });

    const given = await refused(submit({ answers: { case: 'refund', consent: true, reason: 'Broken' } }));
    const missing = await refused(submit({ answers: { case: 'other' } }));
    const inputs = [input('case', 'other'), input('consent', 'on')];
    const posted = await refused(services.hosted.submitPostedForm({ formId, inputs }));
    const { violations } = await services.submissions.checkAnswers({ formId, answers: { case: 'x' } });
    const message = 'This field must be answered by a person';

    expect(given).toEqual(['answers.consent: custom', 'answers.reason: custom']);
    expect(missing).toEqual(['answers.consent: custom']);
    expect(posted).toEqual(['answers.consent: custom']);
    expect(violations).toMatchObject([{ path: 'answers.consent', code: ViolationCode.CUSTOM, message }]);
    const { submissions } = await services.submissions.listSubmissions({ formId }, services.owner);
    expect(submissions).toEqual([]);
  });

  it('refuses prefill, partial answers and a forced submission for a person', async () => {
    await using services = await startServices(engine);
    const { sessions, owner } = services;
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const prefill = { case: 'refund' };

    const prefilled = sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { ...prefill, consent: true } },
      owner,
    );
    expect(await refused(prefilled)).toEqual(['prefill.consent: custom']);

    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill },
      owner,
    );
    const sessionId = session?.id ?? '';
    const update = (change: object) => refused(sessions.updateSession({ sessionId, ...change }, owner));
    const submit = (answers: JsonObject) => refused(sessions.submitSession({ sessionId, answers }, owner));
    expect(await update({ prefill: { consent: true } })).toEqual(['prefill.consent: custom']);
    expect(await update({ answers: { consent: true } })).toEqual(['answers.consent: custom']);
    expect(await update({ answers: { consent: null } })).toEqual(['answers.consent: custom']);
    expect(await submit({ note: 'Hello' })).toEqual(['answers.consent: custom', 'answers.reason: custom']);
    expect(await submit({ consent: true, reason: 'x' })).toHaveLength(2);
    const { session: kept } = await sessions.getSession({ sessionId }, owner);
    expect(kept).toMatchObject({ prefill, partialAnswers: {} });
  });

  it('takes them from the page, and then lets the session be submitted, but not changed, by key', async () => {
    await using services = await startServices(engine);
    const { hosted, sessions, owner } = services;
    const sessionId = await givenSession(services, { case: 'refund' }, { allowPartial: true });

    const inputs = [input('consent', 'on'), input('reason', 'Broken'), input('case', 'forged')];
    await postsOf(hosted).save({ sessionId, inputs });
    const changed = await refused(sessions.submitSession({ sessionId, answers: { reason: null } }, owner));
    const { submission } = await sessions.submitSession({ sessionId }, owner);

    expect(changed).toEqual(['answers.reason: custom']);
    expect(submission?.answers).toEqual({ case: 'refund', consent: true, reason: 'Broken' });
  });

  it('keeps what an agent answers off the page, and conditions on it work', async () => {
    await using services = await startServices(engine);
    const { hosted } = services;
    const refund = await givenSession(services, { case: 'refund' });
    const other = await givenSession(services, { case: 'other' });

    const page = await hosted.getHosted({ sessionId: refund });
    const shorter = await hosted.getHosted({ sessionId: other });
    const inputs = [input('consent', 'on'), input('case', 'refund')];
    const { ending, submissionId } = await postsOf(hosted).submit({ sessionId: other, inputs });
    const { submission } = await services.submissions.getSubmission({ submissionId }, services.owner);

    expect(page.session?.fields.map(({ id, visibleWhen }) => [id, visibleWhen])).toEqual([
      ['note', undefined],
      ['consent', undefined],
      ['reason', undefined],
    ]);
    expect(page.session?.answers).toEqual({});
    expect(shorter.session?.fields.map(({ id }) => id)).toEqual(['note', 'consent']);
    expect(submission?.answers).toEqual({ case: 'other', consent: true });
    expect(ending?.answers.map(({ label }) => label)).toEqual(['Consent']);
  });

  it('opens no session that lacks what only an agent can answer, and keeps it there', async () => {
    await using services = await startServices(engine);
    const { sessions, owner } = services;
    const formId = await services.givenFormOf(fields);
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { case: 'x' } },
      owner,
    );

    const opened = sessions.createSession(
      { subject: { case: 'formId', value: formId }, prefill: { note: 'Hi' } },
      owner,
    );
    expect(await refused(opened)).toEqual(['prefill.case: invalid_type']);
    const emptied = sessions.updateSession({ sessionId: session?.id ?? '', prefill: { case: null } }, owner);
    expect(await refused(emptied)).toEqual(['prefill.case: invalid_type']);
  });
});

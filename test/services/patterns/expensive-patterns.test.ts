import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { definitionOf } from '../../support/definitions.ts';
import { startServices, type TestServices } from '../../support/services.ts';

/** Of 1,800 instructions: no definition may have it with such a length, but one that was stored before could. */
const tooExpensive = { type: 'text', pattern: '(?:[ab]*a[ab]{900}|.*b[ab]{900})c', maxLength: 100_000 };
/** Two seconds of matching. */
const text = 'ab'.repeat(50_000);

describe('a form whose patterns are too expensive', () => {
  it.each(['validateForm', 'createForm'] as const)('is refused by %s', async (method) => {
    await using services = await startServices('pglite');
    const definition = tooExpensiveDefinition();

    const refused = services.forms[method]({ definition }, services.owner);

    await expect(refused).rejects.toMatchObject({ code: Code.InvalidArgument });
    await expect(refused).rejects.toThrow(/fields\[0\]\.pattern: Takes up to 18\d,/);
  });

  it('is refused as a new version', async () => {
    await using services = await startServices('pglite');
    const formId = await services.givenFormOf();
    const definition = tooExpensiveDefinition();

    const refused = services.forms.publishFormVersion({ formId, definition }, services.owner);

    await expect(refused).rejects.toThrow(/fields\[0\]\.pattern: Takes up to 18\d,/);
  });
});

describe('a form that was stored with expensive patterns', () => {
  it('takes the answers that fit and names those that do not', async () => {
    await using services = await startServices('pglite');
    const { formId, session } = await givenStoredForm(services, { pattern: '[ab]*a[ab]{200}|.*b[ab]{200}c' });
    const submit = (code: string) =>
      services.submissions.createSubmission({ formId, answers: { code } }, services.owner);

    await expect(submit(`${'b'.repeat(9_000)}`)).rejects.toThrow(/answers\.code/);
    expect((await submit(`${'a'.repeat(9_000)}`)).submissionId).toMatch(/^sub_/);
    const { submission } = await services.sessions.submitSession(
      { sessionId: session, answers: { code: 'a'.repeat(9_000) } },
      services.owner,
    );
    expect(submission?.id).toMatch(/^sub_/);
  });

  it('answers UNAVAILABLE wherever matching them takes too long, and refuses no answer for it', async () => {
    await using services = await startServices('pglite', { patternLimitMs: 50 });
    const { formId, session } = await givenStoredForm(services, tooExpensive);
    const inputs = [{ name: 'code', values: [text] }];
    const { sessions, submissions, hosted, owner } = services;

    const calls = {
      submission: () => submissions.createSubmission({ formId, answers: { code: text } }, owner),
      check: () => submissions.checkAnswers({ formId, answers: { code: text } }, owner),
      prefill: () => sessions.createSession({ formId, prefill: { code: text } }, owner),
      'prefill of a change': () =>
        sessions.updateSession({ sessionId: session, prefill: { code: text } }, owner),
      'partial answers': () => sessions.updateSession({ sessionId: session, answers: { code: text } }, owner),
      'submission of a session': () =>
        sessions.submitSession({ sessionId: session, answers: { code: text } }, owner),
      'saved page': () => hosted.saveHostedAnswers({ sessionId: session, inputs, page: 1 }),
      'submitted page': () => hosted.submitHostedSession({ sessionId: session, inputs }),
    };
    const codes: Record<string, Code | undefined> = {};
    for (const [name, call] of Object.entries(calls)) {
      codes[name] = await call().then(
        () => undefined,
        (error: unknown) => ConnectError.from(error).code,
      );
    }

    expect(codes).toEqual(Object.fromEntries(Object.keys(calls).map((name) => [name, Code.Unavailable])));
    const [stored] = await services.database.select('select count(*)::int as n from submissions');
    expect(stored).toEqual({ n: 0 });
    expect((await services.forms.getForm({ formId }, owner)).form?.id).toBe(formId);
  });

  it('leaves others to be answered at once meanwhile', async () => {
    await using services = await startServices('pglite', { patternLimitMs: 1_000 });
    const { formId } = await givenStoredForm(services, tooExpensive);
    const other = await services.givenFormOf([{ id: 'code', type: 'text', pattern: '[a-z]{1,50}' }]);
    const submit = (to: string, code: string) =>
      services.submissions.createSubmission({ formId: to, answers: { code } }, services.owner);

    const expensive = submit(formId, text).catch((error: unknown) => ConnectError.from(error));
    const order = await Promise.race([
      expensive.then(() => 'the expensive form'),
      submit(other, 'a').then(() => 'the other form'),
    ]);

    expect(order).toBe('the other form');
    expect(await expensive).toMatchObject({ code: Code.Unavailable });
  });
});

function tooExpensiveDefinition() {
  const { fields, ...rest } = definitionOf([{ id: 'code', type: 'text' }]);
  return {
    ...rest,
    fields: fields.map((field) => ({
      ...field,
      pattern: tooExpensive.pattern,
      maxLength: tooExpensive.maxLength,
    })),
  };
}

/** A form with an open session, given a field as though it were stored before there were bounds. */
async function givenStoredForm(services: TestServices, field: object) {
  const code = { id: 'code', type: 'text', pattern: '[a-z]*', maxLength: 100_000 };
  const formId = await services.givenFormOf([code], { allowPartial: true });
  await services.database.execute(
    `update form_versions set definition = jsonb_set(definition::jsonb, '{fields,0}', definition::jsonb#>'{fields,0}' || $1::jsonb)
     where form_id = $2`,
    [JSON.stringify(field), formId],
  );
  const { session } = await services.sessions.createSession({ formId }, services.owner);
  return { formId, session: session?.id ?? '' };
}

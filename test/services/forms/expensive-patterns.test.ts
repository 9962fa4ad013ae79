import { Code } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { checkDefinitions } from '../../../src/cli/admin/doctor/database.ts';
import type { Finding } from '../../../src/cli/terminal.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
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

    await expect(submit(`${'b'.repeat(900)}`)).rejects.toThrow(/answers\.code/);
    expect((await submit(`${'a'.repeat(900)}`)).submissionId).toMatch(/^sub_/);
    const { submission } = await services.sessions.submitSession(
      { sessionId: session, answers: { code: 'a'.repeat(900) } },
      services.owner,
    );
    expect(submission?.id).toMatch(/^sub_/);
  });

  it('refuses a text that is too long for its pattern wherever it comes, and stores none', async () => {
    await using services = await startServices('pglite');
    const { formId, session } = await givenStoredForm(services, tooExpensive);
    const { sessions, submissions, owner } = services;

    const calls = {
      submission: () => submissions.createSubmission({ formId, answers: { code: text } }, owner),
      prefill: () =>
        sessions.createSession(
          { subject: { case: 'formId', value: formId }, prefill: { code: text } },
          owner,
        ),
      'partial answers': () => sessions.updateSession({ sessionId: session, answers: { code: text } }, owner),
      'submission of a session': () =>
        sessions.submitSession({ sessionId: session, answers: { code: text } }, owner),
    };
    const refusals: Record<string, string[] | undefined> = {};
    for (const [name, call] of Object.entries(calls)) {
      refusals[name] = (await expectFailure(call(), Reason.INVALID)).violations;
    }
    const { violations } = await submissions.checkAnswers({ formId, answers: { code: text } }, owner);

    expect(refusals).toEqual({
      submission: ['answers.code: too_big'],
      prefill: ['prefill.code: too_big'],
      'partial answers': ['answers.code: too_big'],
      'submission of a session': ['answers.code: too_big'],
    });
    expect(violations.map(({ message }) => message)).toEqual(['Too long for its pattern']);
    const [stored] = await services.database.select('select count(*)::int as n from submissions');
    expect(stored).toEqual({ n: 0 });
  });

  it('is listed by admin doctor, and others are not', async () => {
    await using services = await startServices('pglite');
    const { formId } = await givenStoredForm(services, tooExpensive);
    for (let n = 0; n < 12; n += 1)
      await services.givenFormOf([{ id: 'code', type: 'text', pattern: '[a-z]+' }]);

    const findings: Finding[] = [];
    for await (const finding of checkDefinitions(services.database)) findings.push(finding);

    expect(findings.map(({ level }) => level)).toEqual(['warning']);
    expect(findings[0]?.text).toMatch(
      new RegExp(`^${formId}, version 1, fields.0.pattern: could not be published today. Takes up to 18\\d,`),
    );
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
  const { session } = await services.sessions.createSession(
    { subject: { case: 'formId', value: formId } },
    services.owner,
  );
  return { formId, session: session?.id ?? '' };
}

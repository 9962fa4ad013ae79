import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices } from '../../support/services.ts';

const options = [
  { label: 'Forms', value: 'forms' },
  { label: 'Exports', value: 'exports' },
];

const fields = [
  { id: 'email', type: 'email', required: true },
  { id: 'uses', type: 'multi_select', options },
  { id: 'stars', type: 'rating' },
  { id: 'agree', type: 'checkbox', answeredBy: 'human' },
  { id: 'cv', type: 'file' },
];

describe.each(engines)('drafts of own pages on %s', (engine) => {
  it('keeps the answers that fit and lists the others, and repeats that under the same key', async () => {
    await using services = await startServices(engine);
    const { sessions, uploads, owner } = services;
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const { session } = await sessions.createSession({ subject: { case: 'formId', value: formId } }, owner);
    const sessionId = session?.id ?? '';
    const { upload } = await uploads.createUpload({
      target: { case: 'formId', value: formId },
      fieldId: 'cv',
      filename: 'ada.txt',
      content: Buffer.from('Ada'),
    });
    const answers = { email: 'ada@', uses: ['forms', 'webhooks'], stars: 4, agree: true, gone: 1 };
    const strict = { sessionId, answers };

    await expectFailure(sessions.updateSession(strict, owner), Reason.INVALID);
    const request = {
      sessionId,
      answers: { ...answers, cv: { upload_id: upload?.id ?? '' } },
      lenient: true,
      step: 2,
      idempotencyKey: 'draft-1',
    };
    const saved = await sessions.updateSession(request, owner);
    const again = await sessions.updateSession(request, owner);
    const foreign = await sessions.updateSession(
      {
        sessionId,
        answers: { cv: { upload_id: 'upl_01jd3kvz8nf9t8x1v0c9m2q4ra' }, email: 'ada@example.com' },
        lenient: true,
      },
      owner,
    );
    const read = await sessions.getSession({ sessionId }, owner);

    expect(saved.refused.map(({ path }) => path)).toEqual([
      'answers.email',
      'answers.uses.1',
      'answers.agree',
      'answers.gone',
    ]);
    expect(again).toEqual(saved);
    expect(foreign.refused.map(({ path }) => path)).toEqual(['answers.cv.upload_id']);
    expect(read.session?.step).toBe(2);
    expect(read.session?.partialAnswers).toEqual({
      email: 'ada@example.com',
      stars: 4,
      cv: expect.objectContaining({ upload_id: upload?.id, filename: 'ada.txt', size: 3 }),
    });
    expect(Object.keys(read.session?.provenance ?? {})).toEqual(
      expect.arrayContaining(['email', 'stars', 'cv']),
    );
  });

  it('is refused as a whole where the form keeps no partial answers', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const request = { sessionId: session?.id ?? '', answers: { stars: 4 }, lenient: true, step: 2 };

    const refused = await expectFailure(
      services.sessions.updateSession(request, services.owner),
      Reason.INVALID,
    );

    expect(refused.violations).toEqual(['answers: custom', 'step: custom']);
  });

  it('gives the form in the version that the session keeps, and nothing that is for others', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const sessionId = session?.id ?? '';
    const definition = definitionOf(fields.slice(0, 1));
    await services.forms.publishFormVersion({ formId, definition }, services.owner);

    const { form } = await services.sessions.getSession({ sessionId, includeForm: true }, services.owner);
    const without = await services.sessions.getSession({ sessionId }, services.owner);

    expect([form?.id, form?.versionId, form?.open]).toEqual([formId, session?.formVersionId, true]);
    expect(form?.definition?.fields.map(({ id }) => id)).toEqual(fields.map(({ id }) => id));
    expect(form?.definition?.delivery).toBeUndefined();
    expect(without.form).toBeUndefined();
  });

  it('takes a source from a key alone, and never that of the hosted page', async () => {
    await using services = await startServices(engine);
    const { sessions, owner, submissions } = services;
    const formId = await services.givenFormOf(fields);
    const open = async () => {
      const { session } = await sessions.createSession({ subject: { case: 'formId', value: formId } }, owner);
      return session?.id ?? '';
    };
    const answers = { email: 'ada@example.com' };
    const submit = async (request: object, caller: typeof owner | undefined = owner) =>
      sessions.submitSession({ sessionId: await open(), answers, ...request }, caller);

    const { submission } = await submit({ source: 'checkout' });
    const plain = await submit({});
    const hosted = await expectFailure(submit({ source: 'hosted' }), Reason.INVALID);
    const long = await expectFailure(submit({ source: 'x'.repeat(201) }), Reason.INVALID);
    const human = await expectFailure(submit({ source: 'checkout', answeredBy: 1 }), Reason.BAD_REQUEST);
    const stored = await submissions.getSubmission({ submissionId: submission?.id ?? '' }, owner);

    expect([stored.submission?.source, plain.submission?.source]).toEqual(['checkout', 'api']);
    // Who has answered is not the sender's to say.
    expect(stored.submission?.provenance.email?.by).toBe(2);
    expect([hosted.violations, long.violations]).toEqual([['source: custom'], ['source: too_big']]);
    expect(human.message).toContain('answered_by');
  });
});

import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { HostedGoal } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { newId, newSessionId } from '../../../src/domain/ids.ts';
import { engines } from '../../support/database.ts';
import { emailField } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { fileOf } from '../../support/files.ts';
import { postsOf } from '../../support/hosted.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [
  { id: 'cv', type: 'file', accept: ['application/pdf'], maxBytes: 100 },
  { id: 'photos', type: 'file', maxFiles: 2 },
  { id: 'scan', type: 'file', hidden: true },
];
const pdf = Buffer.from('%PDF-1.7 content');

const ofForm = (formId: string) => ({ case: 'formId' as const, value: formId });
const ofSession = (sessionId: string) => ({ case: 'sessionId' as const, value: sessionId });

async function givenUpload(services: TestServices, formId: string, fieldId = 'cv') {
  const target = ofForm(formId);
  const reply = await services.uploads.createUpload({ target, fieldId, filename: 'cv.pdf', content: pdf });
  return reply.upload?.id ?? '';
}

async function files({ folder }: TestServices) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile());
}

describe.each(engines)('CreateUpload on %s', (engine) => {
  it('judges the file by its content and makes its name safe', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);

    const request = { target: ofForm(formId), fieldId: 'cv', filename: '../../cv\r\n.pdf', content: pdf };
    const { upload } = await services.uploads.createUpload(request);

    expect(upload).toMatchObject({
      filename: 'cv__.pdf',
      contentType: 'application/pdf',
      size: pdf.length,
      sha256: createHash('sha256').update(pdf).digest('hex'),
    });
  });

  it('refuses a name that is longer than any file has, at once or in parts, before it reads the name', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const filename = `${'.'.repeat(1_000)}x`;
    const first = { target: ofForm(formId), fieldId: 'cv' };
    async function* parts() {
      yield { ...first, content: pdf };
      yield { filename };
    }

    const whole = await expectFailure(
      services.uploads.createUpload({ ...first, filename, content: pdf }),
      Reason.INVALID,
    );
    const inParts = await expectFailure(services.uploads.uploadFile(parts()), Reason.INVALID);
    const { upload } = await services.uploads.createUpload({
      ...first,
      filename: filename.slice(1),
      content: pdf,
    });

    expect([whole.violations, inParts.violations]).toEqual([['filename: too_big'], ['filename: too_big']]);
    expect(upload?.filename).toBe('x');
    expect(await files(services)).toHaveLength(1);
  });

  it('refuses what the field does not take, and keeps nothing of it', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf([...fields, ...emailField]);
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const create = (request: object) =>
      services.uploads.createUpload({ target: ofForm(formId), fieldId: 'cv', content: pdf, ...request });
    const refusals = async (request: object) =>
      (await expectFailure(create(request), Reason.INVALID)).violations;

    expect(await refusals({ content: Buffer.alloc(0) })).toEqual(['content: too_small']);
    expect(await refusals({ content: Buffer.alloc(101, '%PDF-') })).toEqual(['content: too_big']);
    expect(await refusals({ content: Buffer.from('text'), filename: 'cv.pdf' })).toEqual(['content: custom']);
    expect(await refusals({ fieldId: 'email' })).toEqual(['field_id: custom']);
    expect(await refusals({ fieldId: 'constructor' })).toEqual(['field_id: custom']);
    expect(await refusals({ target: ofSession(session?.id ?? ''), fieldId: 'scan' })).toEqual([
      'field_id: custom',
    ]);
    expect(await refusals({ target: { case: undefined } })).toEqual([': custom']);
    await expectFailure(create({ fieldId: 'photos', content: Buffer.alloc(10_485_761) }), Reason.TOO_LARGE);
    await expectFailure(create({ target: ofForm(newId('form', 0)) }), Reason.NOT_FOUND);
    await expectFailure(create({ target: ofSession(newSessionId()) }), Reason.NOT_FOUND);

    expect(await files(services)).toEqual([]);
  });

  it('takes none for closed forms, ended sessions and foreign origins', async () => {
    await using services = await startServices(engine);
    const closed = await services.givenFormOf(fields, { closesAt: '2020-01-01T00:00:00Z' });
    const formId = await services.givenFormOf(fields, { allowedOrigins: ['https://shop.example'] });
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    await services.sessions.submitSession({ sessionId: session?.id ?? '' }, services.owner);
    const upload = (target: ReturnType<typeof ofForm> | ReturnType<typeof ofSession>, headers = {}) =>
      services.uploads.createUpload({ target, fieldId: 'cv', content: pdf }, { headers });

    await expectFailure(upload(ofForm(closed)), Reason.CLOSED);
    await expectFailure(upload(ofSession(session?.id ?? '')), Reason.CONFLICT);
    await expectFailure(
      upload(ofForm(formId), { origin: 'https://evil.example' }),
      Reason.ORIGIN_NOT_ALLOWED,
    );

    expect(await files(services)).toEqual([]);
  });
});

describe.each(engines)('Uploads in answers on %s', (engine) => {
  it('are described in the submission, and read back with a key of the project', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const uploadId = await givenUpload(services, formId);
    await expectFailure(fileOf(services.uploads.getUpload({ uploadId }, services.owner)), Reason.NOT_FOUND);

    const answers = { cv: { upload_id: uploadId } };
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });

    const { submission } = await services.submissions.getSubmission({ submissionId }, services.owner);
    const { upload, content } = await fileOf(services.uploads.getUpload({ uploadId }, services.owner));
    expect(submission?.answers).toEqual({
      cv: {
        upload_id: uploadId,
        filename: 'cv.pdf',
        content_type: 'application/pdf',
        size: pdf.length,
        sha256: upload?.sha256,
        url: `https://api.test/v1/uploads/${uploadId}`,
      },
    });
    expect(Buffer.from(content)).toEqual(pdf);
    await expectFailure(fileOf(services.uploads.getUpload({ uploadId })), Reason.MISSING_KEY);
    const other = await services.givenCaller(['*'], 'other');
    await expectFailure(fileOf(services.uploads.getUpload({ uploadId }, other)), Reason.NOT_FOUND);
    const writer = await services.givenCaller(['submissions:write']);
    await expectFailure(fileOf(services.uploads.getUpload({ uploadId }, writer)), Reason.INSUFFICIENT_SCOPE);
  });

  it('are refused where they are not the own, used, doubled or unknown', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const foreign = await givenUpload(services, await services.givenFormOf(fields));
    const photo = await givenUpload(services, formId, 'photos');
    const used = await givenUpload(services, formId);
    await services.submissions.createSubmission({ formId, answers: { cv: { upload_id: used } } });
    const refusals = async (answers: object) =>
      (
        await expectFailure(
          services.submissions.createSubmission({ formId, answers: { ...answers } }),
          Reason.INVALID,
        )
      ).violations;

    expect(await refusals({ cv: { upload_id: foreign } })).toEqual(['answers.cv.upload_id: custom']);
    expect(await refusals({ cv: { upload_id: photo } })).toEqual(['answers.cv.upload_id: custom']);
    expect(await refusals({ cv: { upload_id: used } })).toEqual(['answers.cv.upload_id: custom']);
    expect(await refusals({ cv: { upload_id: newId('upl', 0) } })).toEqual(['answers.cv.upload_id: custom']);
    expect(await refusals({ photos: [{ upload_id: photo }, { upload_id: photo }] })).toEqual([
      'answers.photos.1.upload_id: custom',
    ]);
  });

  it('go to one of any number of submissions at once', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const answers = { cv: { upload_id: await givenUpload(services, formId) } };
    const submit = (idempotencyKey = '') =>
      services.submissions.createSubmission({ formId, answers, idempotencyKey });

    const outcomes = await Promise.allSettled([submit(), submit(), submit('a'), submit('a')]);
    const refused = await expectFailure(submit(), Reason.INVALID);

    const winners = outcomes.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []));
    const ids = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value.submissionId] : [],
    );
    // One without a key wins alone; the two with the same key are one submission, and win together.
    expect([[0], [1], [2, 3]]).toContainEqual(winners);
    expect(await services.database.select('select id from submissions')).toEqual([{ id: ids[0] }]);
    expect(new Set(ids).size).toBe(1);
    expect(refused.violations).toEqual(['answers.cv.upload_id: custom']);
  });

  it('give the first answer to repeated submissions, also at once', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const answers = { cv: { upload_id: await givenUpload(services, formId) } };
    const submit = () => services.submissions.createSubmission({ formId, answers, idempotencyKey: 'once' });

    const replies = await Promise.all([submit(), submit(), submit()]);

    expect(new Set(replies.map(({ submissionId }) => submissionId)).size).toBe(1);
  });

  it('give the first answer to a repeated submission', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const answers = { cv: { upload_id: await givenUpload(services, formId) } };
    const submit = () => services.submissions.createSubmission({ formId, answers, idempotencyKey: 'once' });

    const [first, again] = [await submit(), await submit()];

    expect(again.submissionId).toBe(first.submissionId);
  });

  it('come through the hosted page, saved and then submitted', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields, { allowPartial: true });
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const sessionId = session?.id ?? '';
    const made = await services.uploads.createUpload({
      target: ofSession(sessionId),
      fieldId: 'cv',
      filename: 'cv.pdf',
      content: pdf,
    });
    const inputs = [{ name: 'cv', values: [made.upload?.id ?? ''] }];

    const saved = await postsOf(services.hosted).save({ sessionId, inputs });
    const unknown = await services.hosted.postHosted({
      sessionId,
      inputs: [{ name: 'photos', values: [newId('upl', 0)] }],
      goal: HostedGoal.FORWARD,
      page: 1,
      shown: ['photos'],
    });
    const submitted = await postsOf(services.hosted).submit({ sessionId });

    expect(saved.answers).toMatchObject({ cv: { filename: 'cv.pdf' } });
    expect(unknown.violations.map(({ path }) => path)).toEqual(['answers.photos.0.upload_id']);
    expect(submitted.ending?.answers).toMatchObject([{ label: 'Cv', text: 'cv.pdf' }]);
  });

  it('go with their submission', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const uploadId = await givenUpload(services, formId);
    const answers = { cv: { upload_id: uploadId } };
    const { submissionId } = await services.submissions.createSubmission({ formId, answers });

    await services.submissions.deleteSubmission({ submissionId }, services.owner);
    await services.removeFiles();

    await expectFailure(fileOf(services.uploads.getUpload({ uploadId }, services.owner)), Reason.NOT_FOUND);
    expect(await files(services)).toEqual([]);
  });
});

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { removeUnactivatedForms } from '../../../src/store/forms/forms.ts';
import { sumKeylessBytes } from '../../../src/store/keyless-storage.ts';
import { removeSubmission } from '../../../src/store/submissions/submission-removal.ts';
import { removeUnclaimedUploads } from '../../../src/store/uploads.ts';
import { engines } from '../../support/database.ts';
import { expectFailure } from '../../support/failures.ts';
import { postsOf } from '../../support/hosted.ts';
import { servicesOn, startServices, type TestServices } from '../../support/services.ts';

const KIB = 1024;
const fields = [{ id: 'cv', type: 'file' }];
const text = [{ id: 'text', type: 'textarea', maxLength: 20_000 }];
const longForm = Array.from({ length: 10 }, (_, index) => ({
  id: `f${index}`,
  type: 'text',
  description: 'x'.repeat(2_000),
}));
const tenKib = { text: 'x'.repeat(10 * KIB) };
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } });

const upload = (services: Pick<TestServices, 'uploads'>, formId: string, options: object, size = 40 * KIB) =>
  services.uploads.createUpload(
    { target: { case: 'formId', value: formId }, fieldId: 'cv', content: Buffer.alloc(size, 'x') },
    options,
  );

describe.each(engines)('What comes without a key on %s', (engine) => {
  it('is bounded by the hour and the address, and what comes with a key is not', async () => {
    const hourly = 100 * KIB;
    await using services = await startServices(engine, { keylessBytes: { hourly } });
    const formId = await services.givenFormOf(fields);

    await upload(services, formId, from('192.0.2.1'));
    await upload(services, formId, from('192.0.2.1'));
    const refused = await expectFailure(upload(services, formId, from('192.0.2.1')), Reason.RATE_LIMITED);
    await upload(services, formId, from('192.0.2.2'));
    for (let count = 0; count < 4; count += 1) await upload(services, formId, services.owner);
    services.clock.ms += 3_600_001;
    await upload(services, formId, from('192.0.2.1'));

    expect(Number(refused.header.get('retry-after'))).toBeGreaterThan(3_000);
    expect(refused.message).toContain('Too much without an API key');
  });

  it('holds of forms made without a key their definitions and answers', async () => {
    await using services = await startServices(engine, { keylessBytes: { hourly: 60 * KIB } });
    const keyless = await services.givenFormOf(text, {}, from('192.0.2.1'));
    const keyed = await services.givenFormOf(text);
    const submit = (formId: string) =>
      services.submissions.createSubmission({ formId, answers: tenKib }, from('192.0.2.1'));

    await submit(keyless);
    await submit(keyless);
    await expectFailure(submit(keyless), Reason.RATE_LIMITED);

    for (let count = 0; count < 5; count += 1) await submit(keyed);
    await expectFailure(services.givenFormOf(longForm, {}, from('192.0.2.1')), Reason.RATE_LIMITED);
  });

  it('is bounded in each project by the setting, over processes, apart from what came with a key', async () => {
    const keylessBytes = { project: 100 * KIB };
    await using services = await startServices(engine, { keylessBytes });
    const formId = await services.givenFormOf(fields);
    await upload(services, formId, {});
    const other = await servicesOn(services.database, { keylessBytes });

    await upload(other, formId, {});
    const refused = await expectFailure(upload(other, formId, {}), Reason.RATE_LIMITED);
    await upload(other, formId, other.owner, 400 * KIB);
    await other.submissions.createSubmission({ formId, answers: {} });

    expect([refused.message, refused.header.get('retry-after')]).toEqual([
      expect.stringContaining('The project holds as much without an API key as it may'),
      '3600',
    ]);
    await other.close();
  });

  it('gives back what is refused, also to those that come at the same time', async () => {
    await using services = await startServices(engine, { keylessBytes: { hourly: 100 * KIB } });
    const formId = await services.givenFormOf(fields);
    const slowly = async function* () {
      yield { target: { case: 'formId' as const, value: formId }, fieldId: 'cv' };
      for (let count = 0; count < 4; count += 1) {
        await yieldToEventLoop();
        yield { content: Buffer.alloc(10 * KIB, 'x') };
      }
    };

    const outcomes = await Promise.allSettled(
      [1, 2, 3, 4].map(() => services.uploads.uploadFile(slowly(), from('192.0.2.1'))),
    );

    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  });

  it('counts once however often it is repeated, and not where it can’t be stored', async () => {
    await using services = await startServices(engine, { keylessBytes: { hourly: 60 * KIB } });
    const { database, hosted, submissions } = services;
    const formId = await services.givenFormOf(text, {}, from('192.0.2.1'));
    const submit = (idempotencyKey: string) =>
      submissions.createSubmission({ formId, answers: tenKib, idempotencyKey }, from('192.0.2.1'));
    const { session } = await hosted.getHosted({ formId });
    const open = () =>
      hosted.openHostedSession({ formId, issueToken: session?.issueToken ?? '' }, from('192.0.2.1'));

    await database.execute('alter table submissions rename to submissions_away');
    for (let count = 0; count < 3; count += 1) await expectFailure(submit('first'), Reason.INTERNAL);
    await database.execute('alter table submissions_away rename to submissions');
    const first = await submit('first');
    for (let count = 0; count < 3; count += 1) expect(await submit('first')).toEqual(first);
    for (let count = 0; count < 20; count += 1) await open();

    expect(await submit('second')).not.toEqual(first);
  });

  it('counts no session and no saved answers that are refused', async () => {
    const settings = { requireApiKey: false };
    await using services = await startServices(engine, { settings, keylessBytes: { hourly: 60 * KIB } });
    const { hosted, sessions } = services;
    const stranger = from('192.0.2.1');
    const formId = await services.givenFormOf(text);
    const forgetful = await services.givenFormOf(text, { allowPartial: false });
    const { session } = await sessions.createSession(
      { subject: { case: 'formId', value: forgetful }, prefill: {} },
      stranger,
    );
    const sessionId = session?.id ?? '';
    const tooLong = { text: 'x'.repeat(30 * KIB) };

    for (let count = 0; count < 3; count += 1) {
      await expectFailure(
        sessions.createSession({ subject: { case: 'formId', value: formId }, prefill: tooLong }, stranger),
        Reason.INVALID,
      );
      await expectFailure(sessions.updateSession({ sessionId, prefill: tooLong }, stranger), Reason.INVALID);
      await postsOf(hosted).save({ sessionId, inputs: [{ name: 'text', values: [tenKib.text] }] }, stranger);
    }

    for (let count = 0; count < 5; count += 1) {
      await sessions.createSession({ subject: { case: 'formId', value: formId }, prefill: tenKib }, stranger);
    }
    await expectFailure(
      sessions.createSession({ subject: { case: 'formId', value: formId }, prefill: tenKib }, stranger),
      Reason.RATE_LIMITED,
    );
  });

  it('takes nothing off the hour of an address where the project has no room', async () => {
    const keylessBytes = { hourly: 100 * KIB, project: 60 * KIB };
    await using services = await startServices(engine, { keylessBytes });
    const full = await services.givenFormOf(fields);
    const other = await services.givenFormOf(fields, {}, await services.givenCaller(['*'], 'other'));

    await upload(services, full, from('192.0.2.1'));
    for (let count = 0; count < 3; count += 1) {
      const { message } = await expectFailure(upload(services, full, from('192.0.2.1')), Reason.RATE_LIMITED);
      expect(message).toContain('The project holds as much');
    }

    await upload(services, other, from('192.0.2.1'));
  });

  it('counts no more once it is removed', async () => {
    await using services = await startServices(engine);
    const { database } = services;
    const keyless = await services.givenFormOf(text, {}, {});
    const keyed = await services.givenFormOf(fields);
    const made = await services.submissions.createSubmission({ formId: keyless, answers: tenKib });
    await upload(services, keyed, {});
    const [row] = await database.select('select project_id from submissions');
    const projectId = String(row?.project_id);

    const before = await sumKeylessBytes(database, projectId);
    await database.transaction((tx) =>
      removeSubmission(tx, { projectId, id: made.submissionId }, { at: Date.now(), schedule: [0] }),
    );
    const without = await sumKeylessBytes(database, projectId);
    await removeUnclaimedUploads(database, -60, 10);
    const definition = await sumKeylessBytes(database, projectId);

    expect(before - without).toBeGreaterThan(20 * KIB);
    expect(without - definition).toBe(40 * KIB);
    expect(definition).toBeGreaterThan(0);
    expect(definition).toBeLessThan(KIB);
    await database.execute(
      "update forms set status = 'draft', activation_expires_at = now() - interval '1 hour'",
    );
    await removeUnactivatedForms(database, 10);
    expect(await sumKeylessBytes(database, projectId)).toBe(0);
  });
});

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormAvailability } from '../../../gen/headlessforms/v1/owners_pb.js';
import {
  confirmRecipient,
  isMailStopped,
  listConfirmedRecipients,
  stopMail,
} from '../../../src/store/mail/mail-recipients.ts';
import { engines } from '../../support/database.ts';
import { definitionOf, emailField } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { postsOf } from '../../support/hosted.ts';
import { until } from '../../support/until.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, startOwnersServices } from './given.ts';

describe.each(engines)('submissions to an owned form on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  it('tell the owner which of their names no field has, how often and when last, and nothing of their values', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const post = (...names: string[]) => {
      const inputs = ['email', ...names].map((name) => ({ name, values: ['ada@example.com'] }));
      return rpc.hosted.submitPostedForm({ formId, inputs });
    };
    const told = async () => (await owner.getOwnedForm({ formId })).form;
    const isTold = (count: number) =>
      until(async () => {
        const form = await told();
        const named = (form?.ignoredNames ?? []).reduce((sum, each) => sum + each.count, 0);
        return named === count;
      });
    const many = [...Array(60).keys()].map((index) => `field-${index}`);

    const before = await told();
    await post('submit', '_token', `<b>${'x'.repeat(100)}`);
    await isTold(2);
    rpc.clock.ms += 1_000;
    const last = rpc.clock.ms;
    // At once: what comes while others are written is counted, too.
    await Promise.all([post('submit'), post('submit'), post('submit')]);
    await rpc.hosted
      .submitPostedForm({ formId, inputs: [{ name: 'spam', values: ['x'] }], honeypot: 'x' })
      .catch(() => 0);
    await isTold(5);
    const after = await told();
    await post(...many.slice(0, 30));
    await post(...many.slice(30));
    await isTold(65);

    expect(before?.ignoredNames).toEqual([]);
    expect(after?.ignoredNames).toMatchObject([
      { name: 'submit', count: 4, lastTime: timestampFromDate(new Date(last)) },
      { name: `<b>${'x'.repeat(61)}`, count: 1 },
    ]);
    const { ignoredNames = [] } = (await told()) ?? {};
    expect(ignoredNames).toHaveLength(51);
    expect(ignoredNames.find(({ name }) => name === '')).toMatchObject({ count: 12 });
    const [listed] = (await owner.listOwnedForms({})).forms;
    expect(listed?.ignoredNames).toEqual([]);
    const rows = await rpc.database.select('select ignored_names from forms where id = $1', [formId]);
    expect(JSON.stringify(rows)).not.toContain('ada@');
  });

  it('come no more to a form that its owner has closed, by no call, until it is opened again', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const answers = { email: 'ada@example.com' };
    const { session } = await rpc.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      rpc.owner,
    );
    const sessionId = session?.id ?? '';
    const inputs = [{ name: 'email', values: ['ada@example.com'] }];
    const attempts: [string, () => Promise<unknown>][] = [
      ['submission', () => rpc.submissions.createSubmission({ formId, answers })],
      ['managed', () => rpc.submissions.createManagedSubmission({ formId, answers }, rpc.owner)],
      ['check', () => rpc.submissions.checkAnswers({ formId, answers })],
      ['post', () => rpc.hosted.submitPostedForm({ formId, inputs })],
      [
        'session',
        () => rpc.sessions.createSession({ subject: { case: 'formId', value: formId } }, rpc.owner),
      ],
      ['session’s change', () => rpc.sessions.updateSession({ sessionId, answers }, rpc.owner)],
      ['session’s answers', () => rpc.sessions.submitSession({ sessionId, answers }, rpc.owner)],
      ['saved', () => postsOf(rpc.hosted).save({ sessionId, inputs })],
      ['hosted', () => postsOf(rpc.hosted).submit({ sessionId, inputs })],
      [
        'upload',
        () => rpc.uploads.createUpload({ target: { case: 'formId', value: formId }, fieldId: 'cv' }),
      ],
    ];

    await owner.closeOwnedForm({ formId });
    const first = (await owner.getOwnedForm({ formId })).form?.closeTime;
    rpc.clock.ms += 10;
    await owner.closeOwnedForm({ formId });

    for (const [what, attempt] of attempts)
      expect(await failureOf(attempt()), what).toMatchObject({ reason: 'CLOSED' });
    expect((await rpc.hosted.getHosted({ sessionId })).session?.state).toBe(HostedState.CLOSED);
    expect((await owner.getOwnedForm({ formId })).form?.closeTime).toEqual(first);
    expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.closeTime).toEqual(first);
    await owner.reopenOwnedForm({ formId });
    await rpc.givenSubmission(formId);
    expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.closeTime).toBeUndefined();
  });

  it('come no more to a form that its settings end or that is full, and its owner is told which', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const publish = async (settings: object) => {
      const definition = definitionOf(emailField, settings);
      await rpc.forms.publishFormVersion({ formId, definition }, rpc.owner);
    };
    const seen = async () => {
      const [listed] = (await owner.listOwnedForms({})).forms;
      const { form } = await owner.getOwnedForm({ formId });
      expect(listed?.availability).toBe(form?.availability);
      return [form?.availability, form?.submissionLimit?.count, form?.submissionLimit?.max];
    };
    const { OPEN, CLOSED, ENDED, FULL } = FormAvailability;

    expect(await seen()).toEqual([OPEN, undefined, undefined]);
    await publish({ maxSubmissions: 1 });
    expect(await seen()).toEqual([OPEN, 0, 1]);
    const submissionId = await rpc.givenSubmission(formId);
    await expect.poll(seen).toEqual([FULL, 1, 1]);
    await owner.deleteOwnedSubmission({ submissionId });
    expect(await seen()).toEqual([OPEN, 0, 1]);
    const closesAt = new Date(rpc.clock.ms + 1000);
    await publish({ maxSubmissions: 1, closesAt: closesAt.toISOString() });
    expect(await seen()).toEqual([OPEN, 0, 1]);
    rpc.clock.ms += 1000;
    expect(await seen()).toEqual([ENDED, 0, 1]);
    const { form } = await owner.getOwnedForm({ formId });
    expect(form?.settingsCloseTime).toEqual(timestampFromDate(closesAt));
    await owner.closeOwnedForm({ formId });
    expect(await seen()).toEqual([CLOSED, 0, 1]);
  });

  it('are mailed to the owner no more, or again, as the owner says', async () => {
    const { formId, owner, address } = await rpc.givenOwner();
    const stopped = async () => (await owner.getOwnedForm({ formId })).form?.mailsStopped;

    expect(await stopped()).toBe(false);
    await owner.setOwnedFormMails({ formId, stopped: true });
    expect([await stopped(), await isMailStopped(rpc.database, { address, formId })]).toEqual([true, true]);
    await stopMail(rpc.database, { address, formId: '', scope: 'all' });
    await owner.setOwnedFormMails({ formId, stopped: false });
    expect([await stopped(), await isMailStopped(rpc.database, { address, formId })]).toEqual([false, false]);
  });

  it('go by mail to those whom the owner adds once they confirm, ten at most, and no more once removed', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const recipients = async () => (await owner.getOwnedForm({ formId })).form?.recipients;
    const asked = async () => {
      const rows = await rpc.database.select(
        "select body from events where form_id = $1 and type = 'recipients.added'",
        [formId],
      );
      return rows.map(({ body }) => JSON.parse(String(body)).addresses);
    };

    await owner.addFormRecipient({ formId, email: 'Bob@example.com' });
    await owner.addFormRecipient({ formId, email: 'bob@example.com' });
    expect(await recipients()).toMatchObject([{ address: 'Bob@example.com', confirmed: false }]);
    expect(await asked()).toEqual([['Bob@example.com']]);
    await confirmRecipient(rpc.database, { formId, address: 'bob@example.com' });
    expect(await recipients()).toMatchObject([{ address: 'Bob@example.com', confirmed: true }]);

    const added = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) => owner.addFormRecipient({ formId, email: `r${n}@example.com` })),
    );
    expect(added.filter(({ status }) => status === 'fulfilled')).toHaveLength(9);
    await owner.removeFormRecipient({ formId, email: 'BOB@example.com' });
    expect(await recipients()).toHaveLength(9);
    expect((await listConfirmedRecipients(rpc.database, [formId])).map(({ address }) => address)).toEqual([]);
    expect(await failureOf(owner.addFormRecipient({ formId, email: 'bob' }))).toMatchObject({
      reason: 'INVALID',
    });
  });
});

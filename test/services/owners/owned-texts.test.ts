import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { oneEngine } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, startOwnersServices } from './given.ts';

describe.each(oneEngine('postgres'))('the texts of an owned form on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  const texts = (name: string, more: object = {}) => ({ name, fields: [], ...more });

  it('are changed by a new version through the gate of all, never by an old one, nor what is not theirs', async () => {
    const { formId, owner } = await rpc.givenOwner();
    await rpc.forms.publishFormVersion(
      {
        formId,
        definition: definitionOf(
          [
            { id: 'email', type: 'email', required: true, label: 'Address', description: 'Yours' },
            { id: 'colour', type: 'select', options: [{ label: 'Red', value: 'r' }] },
          ],
          {},
          { type: 'email', to: ['other@example.com'] },
        ),
      },
      rpc.owner,
    );
    const read = async () => (await owner.getOwnedForm({ formId })).form;
    const expectedVersionId = (await read())?.versionId ?? '';
    const closeTime = timestampFromMs(rpc.clock.ms + 86_400_000);
    const wanted = texts('Cake orders', {
      description: 'By Friday',
      successMessage: 'Thanks!',
      closeTime,
      maxSubmissions: 50,
      fields: [{ fieldId: 'colour', label: 'Icing', options: [{ value: 'r', label: 'Dark red' }] }],
    });

    const checked = await owner.publishOwnedFormTexts({ formId, texts: wanted, validateOnly: true });
    expect([(await read())?.name, checked.definition?.name]).toEqual(['Test', 'Cake orders']);
    const { versionId } = await owner.publishOwnedFormTexts({ formId, texts: wanted, expectedVersionId });
    const again = await owner.publishOwnedFormTexts({ formId, texts: wanted, expectedVersionId });
    const stale = () => owner.publishOwnedFormTexts({ formId, texts: texts('Late'), expectedVersionId });
    const unnamed = () => owner.publishOwnedFormTexts({ formId, texts: texts('No version') });

    expect(again.versionId).toBe(versionId);
    expect(versionId).not.toBe(expectedVersionId);
    expect(await failureOf(stale())).toMatchObject({ reason: 'CONFLICT' });
    expect(await failureOf(unnamed())).toMatchObject({ reason: 'INVALID' });
    const { form } = await rpc.forms.getForm({ formId }, rpc.owner);
    expect(form?.definition).toMatchObject({
      name: 'Cake orders',
      description: 'By Friday',
      settings: { successMessage: 'Thanks!', maxSubmissions: 50, closesAt: closeTime },
      fields: [
        { id: 'email', label: 'Address', description: 'Yours', required: true },
        { id: 'colour', label: 'Icing', options: [{ value: 'r', label: 'Dark red' }] },
      ],
      delivery: { channel: { case: 'email', value: { to: ['other@example.com'] } } },
    });
    expect(checked.definition?.delivery).toBeUndefined();
  });

  it('are refused with their places, and where a file keeps the form with its name', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const refused = () =>
      owner.publishOwnedFormTexts({
        formId,
        texts: texts('', { fields: [{ fieldId: 'email', label: '' }] }),
        validateOnly: true,
      });
    const unknown = () =>
      owner.publishOwnedFormTexts({
        formId,
        texts: texts('A', { fields: [{ fieldId: 'nobody', label: 'B' }] }),
      });

    expect((await failureOf(refused())).violations.map(([path]) => path)).toEqual([
      'definition.name',
      'definition.fields[0].label',
    ]);
    expect((await failureOf(unknown())).violations[0]?.[0]).toBe('texts.fields[0].field_id');
    await rpc.database.execute("update forms set managed_by = 'forms/', key = $2 where id = $1", [
      formId,
      formId.slice(0, 60),
    ]);
    const kept = { reason: 'CONFLICT', message: expect.stringContaining(`kept in forms/${formId}`) };
    expect(await failureOf(owner.publishOwnedFormTexts({ formId, texts: texts('A') }))).toMatchObject(kept);
    expect(await failureOf(owner.deleteOwnedForm({ formId, name: 'Contact' }))).toMatchObject(kept);
    expect((await owner.getOwnedForm({ formId })).form).toMatchObject({
      name: 'Contact',
      keptIn: `forms/${formId}`,
    });
  });

  it('go with the form when its owner deletes it by its name', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const { submissionId } = await rpc.givenFile(formId);

    expect(await failureOf(owner.deleteOwnedForm({ formId, name: 'contact' }))).toMatchObject({
      reason: 'INVALID',
      violations: [['name', 'custom']],
    });
    await owner.deleteOwnedForm({ formId, name: ' Contact ' });

    expect(await failureOf(owner.getOwnedForm({ formId }))).toMatchObject({ reason: 'NOT_FOUND' });
    expect(await failureOf(owner.getOwnedSubmission({ submissionId }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect((await owner.listOwnedForms({})).forms).toEqual([]);
  });
});

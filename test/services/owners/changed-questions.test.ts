import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ExportFormat } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { changesBetween } from '../../../src/domain/contracts/changes.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createRandom } from '../../days/world/random.ts';
import { changedFields, randomAnswers, randomFields } from '../../domain/contracts/random-forms.ts';
import { givenDefinition, refusals, sent } from '../../domain/given.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, startOwnersServices } from './given.ts';

const option = (value: string, label: string) => ({ value, label });

describe.each(engines)('answers to questions that changed on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });
  beforeEach(awaitWholeDay);
  afterAll(() => rpc[Symbol.asyncDispose]());

  const publish = (formId: string, fields: object[], more: object = {}) =>
    rpc.forms.publishFormVersion(
      { formId, definition: definitionOf(fields), allowBreaking: true, ...more },
      rpc.owner,
    );
  const answer = async (formId: string, times: number, answers: JsonObject) => {
    let id = '';
    for (let n = 0; n < times; n += 1)
      id = (await rpc.submissions.createSubmission({ formId, answers })).submissionId;
    return id;
  };
  const exported = async (
    formId: string,
    owner: Awaited<ReturnType<OwnersServices['givenOwner']>>['owner'],
    people?: object,
  ) => {
    let text = '';
    const request = { formId, format: ExportFormat.CSV, ...(people !== undefined && { people }) };
    for await (const { data } of owner.exportOwnedSubmissions(request)) text += Buffer.from(data).toString();
    return text.replace('\uFEFF', '').trim().split('\r\n');
  };

  /** A survey that was answered under three versions. */
  async function givenSurvey() {
    const { formId, owner } = await rpc.givenOwner();
    const stars = { id: 'stars', label: 'How was it?' };
    const uses = { id: 'uses', label: 'What do you use?', type: 'multi_select' };
    const often = { id: 'often', label: 'How often?', type: 'select' };
    const [forms, exports] = [option('forms', 'Forms'), option('exports', 'Exports')];
    await publish(formId, [
      { ...stars, type: 'rating' },
      { ...uses, options: [forms, option('webhooks', 'Webhooks'), exports] },
      { ...often, options: [option('a', 'Every day'), option('b', 'Seldom')] },
      { id: 'old', label: 'Anything else?', type: 'text' },
    ]);
    const first = await answer(formId, 3, { stars: 4, uses: ['forms', 'webhooks'], often: 'a', old: 'Hi' });
    const parted = rpc.clock.ms + 500;
    rpc.clock.ms += 1000;
    await publish(formId, [
      { ...stars, type: 'scale', min: 1, max: 10 },
      { ...uses, options: [forms, exports] },
      { ...often, options: [option('a', 'Never'), option('b', 'seldom')] },
    ]);
    await answer(formId, 2, { stars: 10, uses: ['exports'], often: 'a' });
    rpc.clock.ms += 1000;
    await publish(formId, [
      { ...stars, label: 'How was it, all in all?', type: 'scale', min: 1, max: 10 },
      { ...uses, options: [forms, exports] },
      { ...often, options: [option('a', 'Never'), option('b', 'Seldom')] },
    ]);
    const last = await answer(formId, 1, { stars: 7, often: 'b' });
    return { formId, owner, first, last, parted };
  }

  it('are counted apart where the meaning changed, and under all names where labels were replaced', async () => {
    const { formId, owner, parted } = await givenSurvey();

    const { choices, countedCount } = await owner.getOwnedFormStatistics({ formId });
    const since = await owner.getOwnedFormStatistics({
      formId,
      filter: { createdAfter: timestampFromMs(parted) },
    });

    const read = choices.map(({ label, answeredCount, average, options, otherCount }) => [
      label,
      answeredCount,
      average,
      options.filter(({ count }) => count > 0).map((one) => `${one.label}: ${one.count}`),
      otherCount,
    ]);
    expect(countedCount).toBe(6);
    expect(read).toEqual([
      ['How was it, all in all? (1 – 10)', 3, 9, ['7: 1', '10: 2'], 0],
      ['How was it? (1 – 5)', 3, 4, ['4: 3'], 0],
      ['What do you use?', 5, undefined, ['Forms: 3', 'Exports: 2', 'Webhooks (no longer offered): 3'], 0],
      ['How often?', 6, undefined, ['Never / Every day: 5', 'Seldom: 1'], 0],
    ]);
    expect(since.choices.map(({ answeredCount }) => answeredCount)).toEqual([3, 2, 3]);
    expect(since.countedCount).toBe(3);
    expect(since.days.at(-1)?.count).toBe(3);
  });

  it('are listed and shown by the words of the version that was answered', async () => {
    const { formId, owner, first } = await givenSurvey();

    const { submissions } = await owner.listOwnedSubmissions({ formId });
    const shown = await owner.getOwnedSubmission({ submissionId: first });
    const { form } = await owner.getOwnedForm({ formId });

    const texts = shown.submission?.texts.map(({ label, text }) => [label, text]);
    expect(texts).toEqual([
      ['How was it?', '4 / 5'],
      ['What do you use?', 'Forms, Webhooks (no longer offered)'],
      ['How often?', 'Every day'],
      ['Anything else?', 'Hi'],
    ]);
    expect(submissions.at(-1)?.texts.map(({ text }) => text)).toEqual(texts?.map(([, text]) => text));
    expect(submissions[0]?.texts.map(({ text }) => text)).toEqual(['7 / 10', 'Seldom']);
    // The form of the test begins with fields of its own.
    expect(form?.formerFieldIds).toContain('old');
    expect(form?.fieldLabels.old).toBe('Anything else?');
  });

  it('are exported in a column for each meaning, with the labels of fields and options that are gone', async () => {
    const { formId, owner } = await givenSurvey();
    const people = { delimiter: ',', language: 'de', received: 'Received', reference: 'Reference' };

    const [head, first, , , fourth, , last] = await exported(formId, owner, people);
    const [names, ...rows] = await exported(formId, owner);

    expect(head).toBe(
      'Received,"How was it, all in all? (1 – 10)",How was it? (1 – 5),What do you use?,How often?,Anything else?,Email,Colour,Note,Cv,Reference',
    );
    expect(first).toContain(',,4,"Forms, Webhooks (nicht mehr angeboten)",Every day,Hi,');
    expect(fourth).toContain(',10,,Exports,Never,,');
    expect(last).toContain(',7,,,Seldom,,');
    expect(names).toContain(',stars,stars.v2,uses,often,old,email,colour,note,cv,_version');
    expect(rows.map((row) => row.split(',').slice(5, 7))).toEqual([
      ...Array(3).fill(['', '4']),
      ...Array(2).fill(['10', '']),
      ['7', ''],
    ]);
  });

  it('keep their numbers, columns and cells after every change that breaks nothing', async () => {
    let harmless = 0;
    for (let seed = 0; harmless < 12; seed += 1) {
      const random = createRandom(`insights ${seed}`);
      const fields = randomFields(random);
      const next = changedFields(random, fields);
      if (refusals(sent({ fields: next })).length > 0) continue;
      const changes = changesBetween(givenDefinition({ fields }), givenDefinition({ fields: next }));
      if (changes.length === 0 || changes.some(({ breaks }) => breaks.length > 0)) continue;
      const { formId, owner } = await rpc.givenOwner();
      await publish(formId, fields);
      const given = randomAnswers(random, fields as Parameters<typeof randomAnswers>[1]);
      await rpc.submissions.createSubmission({ formId, answers: given as JsonObject }).catch(() => undefined);
      const before = await owner.getOwnedFormStatistics({ formId });
      const [head = '', row = ''] = await exported(formId, owner);
      await publish(formId, next);
      harmless += 1;

      const after = await owner.getOwnedFormStatistics({ formId });
      const [newHead = '', newRow = ''] = await exported(formId, owner);

      const about = JSON.stringify({ seed, fields, next });
      const numbers = ({ choices }: typeof before) =>
        choices
          .filter(({ answeredCount }) => answeredCount > 0)
          .map(({ fieldId, average, options }) => {
            const counts = options.flatMap(({ count }) => (count > 0 ? [count] : []));
            return `${fieldId} ${average} ${counts.join()}`;
          })
          .toSorted((one, other) => one.localeCompare(other));
      expect(numbers(after), about).toEqual(numbers(before));
      const cells = new Map(newHead.split(',').map((name, at) => [name, newRow.split(',')[at]]));
      if (row !== '' && !row.includes('"'))
        head.split(',').forEach((name, at) => {
          expect(cells.get(name), `${about} ${name}`).toBe(row.split(',')[at]);
        });
    }
  }, 120_000);
});

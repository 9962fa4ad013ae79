import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ExportFormat, SubmissionStatus } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { confirmOwner } from '../../../src/store/owners/owners.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, readAll, startOwnersServices } from './given.ts';

describe.each(engines)('submissions of an owned form on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  it('are listed newest first, by status, time and page, with words instead of values', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const started = rpc.clock.ms;
    const ids: string[] = [];
    for (const colour of ['r', undefined, 'r']) {
      rpc.clock.ms += 1000;
      ids.unshift(
        await rpc.givenSubmission(formId, colour === undefined ? { note: 'n'.repeat(5000) } : { colour }),
      );
    }
    const inputs = [{ name: 'email', values: ['a@example.com'] }];
    const { submissionId: spamId } = await rpc.hosted.submitPostedForm({ formId, inputs, honeypot: 'x' });
    const listed = async (request: object) =>
      (await owner.listOwnedSubmissions({ formId, ...request })).submissions.map(
        ({ submission }) => submission?.id,
      );

    const first = await owner.listOwnedSubmissions({ formId, pageSize: 2 });
    const second = await owner.listOwnedSubmissions({
      formId,
      pageSize: 2,
      pageToken: first.nextPageToken,
    });

    expect([...first.submissions, ...second.submissions].map(({ submission }) => submission?.id)).toEqual(
      ids,
    );
    expect(second.nextPageToken).toBe('');
    expect(first.submissions[0]?.texts.map(({ fieldId, text }) => [fieldId, text])).toEqual([
      ['email', 'ada@example.com'],
      ['colour', 'Deep red'],
    ]);
    expect(first.submissions[1]?.texts.at(-1)?.text).toHaveLength(301);
    expect(await listed({ filter: { status: SubmissionStatus.SPAM } })).toEqual([spamId]);
    const createdAfter = timestampFromMs(started + 2000);
    const createdBefore = timestampFromMs(started + 3000);
    expect(await listed({ filter: { createdAfter, createdBefore } })).toEqual([ids[1]]);
    const { form } = await owner.getOwnedForm({ formId });
    expect(form).toMatchObject({ acceptedCount: 3, spamCount: 1, confirmed: true });
    expect(form?.definition?.fields.map(({ id }) => id)).toEqual(['email', 'colour', 'note', 'cv']);
    expect(form?.definition?.delivery).toBeUndefined();
  });

  it('are marked as read up to one, each page leads to those around it, and each answer to its neighbours', async () => {
    const { formId, owner, address } = await rpc.givenOwner();
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      rpc.clock.ms += 1000;
      ids.unshift(await rpc.givenSubmission(formId));
    }
    const read = async () => {
      const { form } = await owner.getOwnedForm({ formId });
      return [form?.unreadCount, form?.readSubmissionId];
    };
    const tokens = async (pageToken: string) => {
      const page = await owner.listOwnedSubmissions({ formId, pageSize: 2, pageToken });
      return [page.submissions[0]?.submission?.id, page.previousPageToken, page.nextPageToken];
    };
    const neighbours = async (submissionId = '') => {
      const shown = await owner.getOwnedSubmission({ submissionId });
      return [shown.newerSubmissionId, shown.olderSubmissionId];
    };

    expect(await read()).toEqual([5, '']);
    await owner.markOwnedSubmissionsRead({ formId, submissionId: ids[1] ?? '' });
    await owner.markOwnedSubmissionsRead({ formId, submissionId: ids[3] ?? '' });
    expect(await read()).toEqual([1, ids[1]]);
    expect(await failureOf(owner.markOwnedSubmissionsRead({ formId, submissionId: 'x' }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(await tokens('')).toEqual([ids[0], '', ids[1]]);
    expect(await tokens(ids[1] ?? '')).toEqual([ids[2], '', ids[3]]);
    expect(await tokens(ids[3] ?? '')).toEqual([ids[4], ids[1], '']);
    expect(await neighbours(ids[0])).toEqual(['', ids[1]]);
    expect(await neighbours(ids[4])).toEqual([ids[3], '']);

    // Who takes the form over has read none of them.
    const next = `${crypto.randomUUID()}@example.com`;
    await owner.offerOwnedForm({ formId, email: next });
    await confirmOwner(rpc.database, formId, next);
    const listed = await (await rpc.signedIn(next)).listOwnedForms({});
    expect(listed.forms).toMatchObject([{ id: formId, unreadCount: 5, readSubmissionId: '' }]);
    expect(address).not.toBe(next);
  });

  it('are found by a text in an answer or a label, in any case, page by page', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const ids: string[] = [];
    for (const note of ['Needle', 'hay', 'needles', 'hay', 'NEEDLE']) {
      rpc.clock.ms += 1;
      ids.unshift(await rpc.givenSubmission(formId, { note, ...(note === 'hay' && { colour: 'r' }) }));
    }
    const search = (text: string, more: object = {}) =>
      owner.searchOwnedSubmissions({ formId, text, ...more });
    const idsOf = ({ submissions }: Awaited<ReturnType<typeof search>>) =>
      submissions.map(({ submission }) => submission?.id);

    const first = await search(' needle ', { pageSize: 2 });
    const second = await search('needle', { pageSize: 2, pageToken: first.nextPageToken });

    expect(idsOf(first)).toEqual([ids[0], ids[2]]);
    expect(first).toMatchObject({ searchedCount: 3, truncated: false });
    expect(idsOf(second)).toEqual([ids[4]]);
    expect(second).toMatchObject({ searchedCount: 5, truncated: false, nextPageToken: '' });
    expect(idsOf(await search('deep'))).toEqual([ids[1], ids[3]]);
    expect(idsOf(await search('note'))).toEqual([]);
    for (const text of ['', ' ', 'x'.repeat(201), 'a\0'])
      expect(await failureOf(search(text))).toMatchObject({ reason: 'INVALID' });
    for (const pageToken of ['x', 'sub_x.1', `${ids[0]}.x`])
      expect(await failureOf(search('a', { pageToken }))).toMatchObject({ reason: 'BAD_REQUEST' });
  });

  it('are counted by day, and by what was chosen', async () => {
    const { formId, owner } = await rpc.givenOwner();
    await rpc.givenSubmission(formId, { colour: 'r' });
    await rpc.givenSubmission(formId);

    const counted = await owner.getOwnedFormStatistics({ formId });

    expect(counted).toMatchObject({ countedCount: 2, truncated: false });
    expect(counted.days).toHaveLength(30);
    expect(counted.days.at(-1)).toMatchObject({
      date: new Date(rpc.clock.ms).toISOString().slice(0, 10),
      count: 2,
    });
    expect(counted.choices).toMatchObject([
      { fieldId: 'colour', answeredCount: 1, otherCount: 0, options: [{ label: 'Deep red', count: 1 }] },
    ]);
  });

  it('are counted by the days of the time zone that is asked for, if there is one of that name', async () => {
    const { formId, owner } = await rpc.givenOwner();
    await rpc.givenSubmission(formId);
    const daysOf = async (timeZone: string) =>
      (await owner.getOwnedFormStatistics({ formId, timeZone })).days;

    // At any time one of them is on another day than UTC.
    for (const timeZone of ['Pacific/Kiritimati', 'Pacific/Niue']) {
      const today = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' }).format(rpc.clock.ms);
      expect((await daysOf(timeZone)).at(-1)).toMatchObject({ date: today, count: 1 });
    }
    expect(await failureOf(daysOf('Mars/Olympus'))).toMatchObject({ reason: 'BAD_REQUEST' });
  });

  it('are counted for every type that is no text, with averages, ranges, places and rows', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const [a, b] = [
      { value: 'a', label: 'A' },
      { value: 'b', label: 'B' },
    ];
    await rpc.forms.publishFormVersion(
      {
        formId,
        definition: definitionOf([
          { id: 'email', type: 'email' },
          { id: 'laptop', type: 'boolean' },
          { id: 'stars', type: 'rating' },
          { id: 'again', type: 'scale', min: 0, max: 10 },
          { id: 'age', type: 'number' },
          { id: 'order', type: 'ranking', options: [a, b] },
          { id: 'grid', type: 'matrix', rows: [{ value: 'x', label: 'X' }], options: [a, b] },
          { id: 'terms', type: 'checkbox' },
        ]),
      },
      rpc.owner,
    );
    for (let n = 0; n < 12; n += 1) {
      await rpc.givenSubmission(formId, {
        laptop: n < 3,
        stars: 1 + (n % 2),
        again: n < 9 ? 10 : 0,
        age: n * 10,
        order: n < 3 ? ['a', 'b'] : ['b', 'a'],
        grid: { x: 'b' },
      });
    }

    const { choices } = await owner.getOwnedFormStatistics({ formId });

    const counts = (id: string) =>
      choices.find(({ fieldId }) => fieldId === id)?.options.map(({ label, count }) => [label, count]);
    const only = (id: string) => choices.find(({ fieldId }) => fieldId === id);
    expect(choices.map(({ fieldId }) => fieldId)).toEqual([
      'laptop',
      'stars',
      'again',
      'age',
      'order',
      'grid',
      'terms',
    ]);
    expect(counts('laptop')).toEqual([
      ['Yes', 3],
      ['No', 9],
    ]);
    expect(counts('stars')?.slice(0, 3)).toEqual([
      ['1', 6],
      ['2', 6],
      ['3', 0],
    ]);
    expect([only('stars')?.average, only('stars')?.netPromoterScore]).toEqual([1.5, undefined]);
    expect(only('again')).toMatchObject({ average: 7.5, netPromoterScore: 50 });
    expect(only('age')).toMatchObject({ average: 55, answeredCount: 12, otherCount: 0 });
    expect(counts('age')).toHaveLength(10);
    expect(counts('age')?.[0]).toEqual(['0 – 11', 2]);
    expect(counts('age')?.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(12);
    expect(only('order')?.options.map(({ averagePlace }) => averagePlace)).toEqual([1.75, 1.25]);
    expect(only('grid')).toMatchObject({ label: 'Grid: X', options: [{ count: 0 }, { count: 12 }] });
    expect([only('terms')?.answeredCount, only('terms')?.average]).toEqual([0, undefined]);
  });

  it('are shown whole, with files, origins and deliveries', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const { submissionId, uploadId } = await rpc.givenFile(formId);

    const shown = await owner.getOwnedSubmission({ submissionId });
    const pieces: string[] = [];
    for await (const { content } of owner.getOwnedUpload({ uploadId }))
      pieces.push(Buffer.from(content).toString());

    expect(shown).toMatchObject({ formName: 'Contact', files: [{ id: uploadId, filename: 'cv.txt' }] });
    expect(shown.submission?.texts.map(({ text }) => text)).toEqual(['ada@example.com', 'cv.txt']);
    expect(Object.keys(shown.submission?.submission?.provenance ?? {})).toEqual(['email', 'cv']);
    expect(pieces.join('')).toBe('my life');
  });

  it('are deleted with their files, for good', async () => {
    const { formId, owner } = await rpc.givenOwner();
    const { submissionId, uploadId } = await rpc.givenFile(formId);

    await owner.deleteOwnedSubmission({ submissionId });

    expect(await failureOf(owner.getOwnedSubmission({ submissionId }))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect(await failureOf(readAll(owner.getOwnedUpload({ uploadId })))).toMatchObject({
      reason: 'NOT_FOUND',
    });
    expect((await owner.getOwnedForm({ formId })).form?.acceptedCount).toBe(0);
  });

  it.each([',', ';'])('are exported for people, parted by %s', async (delimiter) => {
    const { formId, owner } = await rpc.givenOwner();
    const submissionId = await rpc.givenSubmission(formId, { colour: 'r', note: '=1+1' });
    const people = { delimiter, language: 'en', received: 'Received', reference: 'Reference' };

    const exported = async (headings: object) => {
      let text = '';
      const request = { formId, format: ExportFormat.CSV, people: { ...people, ...headings } };
      for await (const { data } of owner.exportOwnedSubmissions(request))
        text += Buffer.from(data).toString('utf8');
      return text
        .slice(1)
        .split('\r\n')
        .map((line) => line.split(delimiter));
    };

    const [head, line] = await exported({});
    expect(head).toEqual(['Received', 'Email', 'Colour', 'Note', 'Cv', 'Reference']);
    expect(line).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d$/),
      'ada@example.com',
      'Deep red',
      "'=1+1",
      '',
      submissionId,
    ]);
    const [alike] = await exported({ reference: 'Note' });
    expect(alike).toEqual(['Received', 'Email', 'Colour', 'Note (note)', 'Cv', 'Note']);
    const refused = { formId, format: ExportFormat.CSV, people: { ...people, delimiter: '\t' } };
    expect(await failureOf(readAll(owner.exportOwnedSubmissions(refused)))).toMatchObject({
      reason: 'BAD_REQUEST',
    });
  });

  it('are exported like those of a key', async () => {
    const { formId, owner } = await rpc.givenOwner();
    await rpc.givenSubmission(formId, { note: '=1+1' });
    const exported = async (messages: AsyncIterable<{ data: Uint8Array }>) => {
      let text = '';
      for await (const { data } of messages) text += Buffer.from(data).toString('utf8');
      return text;
    };

    for (const format of [ExportFormat.CSV, ExportFormat.NDJSON]) {
      const own = await exported(owner.exportOwnedSubmissions({ formId, format }));
      expect(own).toBe(await exported(rpc.submissions.exportSubmissions({ formId, format }, rpc.owner)));
      expect(own).toContain('=1+1');
    }
    expect(
      await failureOf(exported(owner.exportOwnedSubmissions({ formId, format: ExportFormat.UNSPECIFIED }))),
    ).toMatchObject({ reason: 'BAD_REQUEST' });
  });
});

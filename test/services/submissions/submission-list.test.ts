import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { ExportFormat, SubmissionStatus } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { newId } from '../../../src/domain/ids.ts';
import { engines } from '../../support/database.ts';
import { definitionOf } from '../../support/definitions.ts';
import { expectFailure } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const fields = [{ id: 'n', type: 'text' }];

async function givenSubmissions(services: TestServices, formId: string, count: number) {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    services.clock.ms += 10;
    const { submissionId } = await services.submissions.createSubmission({ formId, answers: { n: `${n}` } });
    ids.push(submissionId);
  }
  return ids;
}

describe.each(engines)('ListSubmissions on %s', (engine) => {
  it('lets nobody list without the scope, or the form of another project', async () => {
    await using services = await startServices(engine, { settings: { requireApiKey: false } });
    const formId = await services.givenFormOf(fields);
    const { listSubmissions } = services.submissions;

    await expectFailure(listSubmissions({ formId }), Reason.MISSING_KEY);
    await expectFailure(
      listSubmissions({ formId }, await services.givenCaller(['forms:read'])),
      Reason.INSUFFICIENT_SCOPE,
    );
    await expectFailure(
      listSubmissions({ formId }, await services.givenCaller(['*'], 'other')),
      Reason.NOT_FOUND,
    );
    await expectFailure(listSubmissions({ formId: newId('form', 0) }, services.owner), Reason.NOT_FOUND);
  });

  it('pages through all, newest first, by token and by skipping', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const newestFirst = (await givenSubmissions(services, formId, 25)).reverse();
    const list = (request: object) =>
      services.submissions.listSubmissions({ formId, ...request }, services.owner);

    const first = await list({});
    const rest = await list({ pageToken: first.nextPageToken });
    const skipped = await list({ pageSize: 1000, skip: 3 });

    expect([...first.submissions, ...rest.submissions].map(({ id }) => id)).toEqual(newestFirst);
    expect(first.submissions).toHaveLength(20);
    expect(rest.nextPageToken).toBe('');
    expect(skipped.submissions.map(({ id }) => id)).toEqual(newestFirst.slice(3));
  });

  it('filters by source, session, status and time', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const { session } = await services.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      services.owner,
    );
    const sessionId = session?.id ?? '';
    const ofSession = await services.sessions.submitSession({ sessionId }, services.owner);
    services.clock.ms += 1000;
    const middle = services.clock.ms;
    const site = await services.submissions.createSubmission({ formId, answers: {}, source: 'site' });
    const spam = await services.hosted.submitPostedForm({ formId, inputs: [{ name: 'x' }], honeypot: 'x' });
    const list = async (request: object) => {
      const page = await services.submissions.listSubmissions({ formId, ...request }, services.owner);
      return page.submissions.map(({ id }) => id);
    };

    const early = ofSession.submission?.id ?? '';
    expect(await list({})).toEqual([site.submissionId, early]);
    expect(await list({ sessionId })).toEqual([early]);
    expect(await list({ sessionId: '\0' })).toEqual([]);
    expect(await list({ source: 'site' })).toEqual([site.submissionId]);
    expect(await list({ status: SubmissionStatus.SPAM })).toEqual([spam.submissionId]);
    expect(await list({ createdAfter: timestampFromMs(middle) })).toEqual([site.submissionId]);
    expect(await list({ createdBefore: timestampFromMs(middle) })).toEqual([early]);
  });

  it.each([
    ['page_size: too_small', { pageSize: -1 }],
    ['page_token: invalid_string', { pageToken: 'x' }],
    ['skip: custom', { skip: -1 }],
    ['source: custom', { source: '\0' }],
    ['source: too_big', { source: 'x'.repeat(1_001) }],
    ['status: invalid_enum_value', { status: 99 }],
  ])('refuses %s', async (violation, request) => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);

    const call = services.submissions.listSubmissions({ formId, ...request }, services.owner);

    expect((await expectFailure(call, Reason.BAD_REQUEST)).violations).toEqual([violation]);
  });
});

describe.each(engines)('ExportSubmissions on %s', (engine) => {
  async function exported(
    services: TestServices,
    formId: string,
    format: ExportFormat,
    options = services.owner,
  ) {
    const pieces: string[] = [];
    for await (const { data } of services.submissions.exportSubmissions({ formId, format }, options)) {
      pieces.push(Buffer.from(data).toString());
    }
    return pieces;
  }

  it('lets nobody export what is not theirs, and knows its formats', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    const other = await services.givenCaller(['*'], 'other');

    await expectFailure(
      exported(services, formId, ExportFormat.CSV, { headers: { authorization: '' } }),
      Reason.MISSING_KEY,
    );
    await expectFailure(exported(services, formId, ExportFormat.CSV, other), Reason.NOT_FOUND);
    await expectFailure(exported(services, formId, ExportFormat.UNSPECIFIED), Reason.BAD_REQUEST);
  });

  it('streams every accepted submission once, oldest first, in pieces that end with a line', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf(fields);
    await services.hosted.submitPostedForm({
      formId,
      inputs: [{ name: 'n', values: ['spam'] }],
      honeypot: 'x',
    });
    const ids = await givenSubmissions(services, formId, 45);

    const csv = await exported(services, formId, ExportFormat.CSV);
    const ndjson = await exported(services, formId, ExportFormat.NDJSON);

    const lines = csv.join('').split('\r\n');
    expect(lines[0]).toBe('\uFEFFid,created_at,status,source,session_id,n,_version,_metadata');
    expect(lines.slice(1, -1).map((line) => line.split(',')[0])).toEqual(ids);
    expect(csv.every((piece) => piece.endsWith('\r\n'))).toBe(true);
    expect(ndjson.length).toBeGreaterThan(1);
    expect(
      ndjson
        .join('')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ).toEqual(ids);
  });

  it('has the columns of older versions last', async () => {
    await using services = await startServices(engine);
    const formId = await services.givenFormOf([
      { id: 'old', type: 'text' },
      { id: 'both', type: 'text' },
    ]);
    await services.submissions.createSubmission({ formId, answers: { old: '1', both: '=2' } });
    const definition = definitionOf([
      { id: 'both', type: 'text' },
      { id: 'fresh', type: 'text' },
    ]);
    await services.forms.publishFormVersion({ formId, definition }, services.owner);
    services.clock.ms += 10;
    await services.submissions.createSubmission({ formId, answers: { fresh: '3' } });

    const [head, first, second] = (await exported(services, formId, ExportFormat.CSV)).join('').split('\r\n');

    expect(head).toMatch(/,both,fresh,old,_version,_metadata$/);
    expect(first).toMatch(/,'=2,,1,1,$/);
    expect(second).toMatch(/,,3,,2,$/);
  });
});

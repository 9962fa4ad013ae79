import { toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  ListSubmissionsResponseSchema,
  SubmissionStatus,
  SubmissionsService,
} from '../../gen/headlessforms/v1/submissions_pb.js';
import { createSubmissionWriter } from '../../src/store/submissions/submission-writer.ts';
import { aSubmission } from '../store/given.ts';
import { oneEngine } from '../support/database.ts';
import { protocols, startService, type TestService } from '../support/server.ts';
import { startGateway } from './given.ts';

/** What gRPC clients take unless they are told otherwise. */
const DEFAULT_CLIENT_BYTES = 4 * 1024 * 1024;

const LARGE_BYTES = 250_000;

describe.each(oneEngine('postgres'))('lists of large submissions on %s', (engine) => {
  it('are as long by REST as was asked for, by offset and by cursor', async () => {
    await using service = await startService({ engine });
    const { formId, newestFirst } = await givenLargeSubmissions(service, 12);
    const list = async (query: string) => {
      const { status, json } = await service.get(`/v1/forms/${formId}/submissions?${query}`);
      expect(status).toBe(200);
      const ids = json.submissions.map(({ id }: { id: string }) => id);
      return { ids, next: json.next_cursor };
    };

    const all = await list('limit=100');
    const some = await list('limit=9&offset=2');
    const rest = await list(`limit=9&cursor=${some.next}`);

    expect(all).toEqual({ ids: newestFirst, next: null });
    expect(some).toEqual({ ids: newestFirst.slice(2, 11), next: newestFirst[10] });
    expect(rest).toEqual({ ids: newestFirst.slice(11), next: null });
  });

  it('have no body for HEAD', async () => {
    await using service = await startService({ engine });
    const { formId } = await givenLargeSubmissions(service, 10);

    const reply = await service.call('HEAD', `/v1/forms/${formId}/submissions`);

    expect([reply.status, reply.text]).toEqual([200, '']);
  });

  it('come by every protocol in pages that default clients take', async () => {
    await using service = await startService({ engine });
    const { formId, newestFirst } = await givenLargeSubmissions(service, 10);

    for (const protocol of protocols) {
      const client = service.client(SubmissionsService, protocol);
      const ids: string[] = [];
      for (let pageToken = ''; ; ) {
        const page = await client.listSubmissions({ formId, pageSize: 100, pageToken });
        expect(toBinary(ListSubmissionsResponseSchema, page).length).toBeLessThan(DEFAULT_CLIENT_BYTES);
        ids.push(...page.submissions.map(({ id }) => id));
        pageToken = page.nextPageToken;
        if (pageToken === '') break;
      }
      expect(ids).toEqual(newestFirst);
    }
  });

  it('count as one call', async () => {
    await using service = await startService({ engine, env: { RATE_LIMIT: 'on', RATE_LIMIT_KEY: '4' } });
    const { formId, newestFirst } = await givenLargeSubmissions(service, 18);

    const list = await service.get(`/v1/forms/${formId}/submissions?limit=100`);

    expect(list.json.submissions).toHaveLength(newestFirst.length);
    expect(list.headers.get('ratelimit')).toContain('r=1;');
  });
});

describe('a list of several pages', () => {
  it('passes filters on to each, and skips once', async () => {
    const asked: object[] = [];
    await using gateway = await startGateway((router) =>
      router.service(SubmissionsService, {
        listSubmissions: ({ formId, pageSize, pageToken, skip, status }) => {
          asked.push({ formId, pageSize, pageToken, skip, status });
          return { submissions: [{ id: `sub_${asked.length}` }], nextPageToken: `after_${asked.length}` };
        },
      }),
    );

    const { json } = await gateway.call('GET', '/v1/forms/f/submissions?limit=3&offset=7&status=spam');

    expect(json).toMatchObject({
      submissions: [{ id: 'sub_1' }, { id: 'sub_2' }, { id: 'sub_3' }],
      next_cursor: 'after_3',
    });
    const spam = { formId: 'f', status: SubmissionStatus.SPAM };
    expect(asked).toEqual([
      { ...spam, pageSize: 3, pageToken: '', skip: 7 },
      { ...spam, pageSize: 2, pageToken: 'after_1', skip: 0 },
      { ...spam, pageSize: 1, pageToken: 'after_2', skip: 0 },
    ]);
  });

  it('goes on after a page that has become empty', async () => {
    const pages = [
      { submissions: [], nextPageToken: 'a' },
      { submissions: [], nextPageToken: 'b' },
      { submissions: [{ id: 'sub_1' }] },
    ];
    await using gateway = await startGateway((router) =>
      router.service(SubmissionsService, { listSubmissions: () => pages.shift() ?? {} }),
    );

    const { json } = await gateway.call('GET', '/v1/forms/f/submissions');

    expect(json).toMatchObject({ submissions: [{ id: 'sub_1' }], next_cursor: null });
  });

  it('breaks off if one fails, so that nobody takes it for whole', async () => {
    let calls = 0;
    await using gateway = await startGateway((router) =>
      router.service(SubmissionsService, {
        listSubmissions: () => {
          calls += 1;
          if (calls === 2) throw new Error('The database is away');
          return { submissions: [{ id: 'sub_1' }], nextPageToken: 'next' };
        },
      }),
    );

    await expect(gateway.call('GET', '/v1/forms/f/submissions')).rejects.toThrow(/terminated|fetch failed/);
  });
});

/** Stores so many submissions that are nearly as large as any can be. */
async function givenLargeSubmissions(service: TestService, count: number) {
  const { database } = service;
  const { id: formId } = await service.givenPublishedForm();
  const [form] = await database.select('select project_id from forms where id = $1', [formId]);
  const writer = createSubmissionWriter(database);
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const answers = { message: String(n).padEnd(LARGE_BYTES, 'x') };
    const row = aSubmission({ formId, projectId: String(form?.project_id), answers });
    await writer.write(row);
    ids.push(row.id);
  }
  return { formId, newestFirst: ids.sort().reverse() };
}

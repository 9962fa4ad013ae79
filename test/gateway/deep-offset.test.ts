import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneEngine } from '../support/database.ts';
import { seededId, seedSubmissions } from '../support/seed.ts';
import { startService, type TestService } from '../support/server.ts';

const COUNT = 10_050;

describe.each(oneEngine('postgres'))('an offset beyond 10,000 on %s', (engine) => {
  let service: TestService;
  let path: string;

  beforeAll(async () => {
    service = await startService({ engine });
    const { id } = await service.givenPublishedForm();
    await seedSubmissions((...statement) => service.database.execute(...statement), id, COUNT);
    path = `/v1/forms/${id}/submissions`;
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('leads on by Link with the cursor, through every submission once', async () => {
    const seen: string[] = [];
    let query: string | undefined = '?limit=20&offset=10005&utm_source=x';
    for (let pages = 0; query !== undefined && pages < 5; pages += 1) {
      const { json, headers } = await service.get(path + query);
      seen.push(...json.submissions.map(({ id }: { id: string }) => id));
      const link = headers.get('link');
      expect(link).toEqual(json.next_cursor === null ? null : expect.stringContaining(json.next_cursor));
      query = link === null ? undefined : /^<(\?[^>]*)>; rel="next"$/.exec(link)?.[1];
      expect(query ?? '').not.toContain('offset');
    }

    expect(seen).toEqual(Array.from({ length: COUNT - 10_005 }, (_, n) => seededId(COUNT - 10_005 - n)));
  });

  it('is an empty list past the last one, without a Link', async () => {
    const { status, json, headers } = await service.get(`${path}?offset=${COUNT}`);

    expect([status, json, headers.get('link')]).toEqual([200, { submissions: [], next_cursor: null }, null]);
  });
});

import { expect, it } from 'vitest';
import { startService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

it('marks exports of answers that are personal, in the file and in the audit log', async () => {
  await using service = await startService();
  const fields = [{ id: 'city', type: 'text' }];
  const plain = await service.givenPublishedForm({ fields });
  const personal = await service.givenPublishedForm({
    fields: [...fields, { id: 'pin', type: 'text', personal: true }],
  });

  const heads = [];
  for (const { id } of [plain, personal]) {
    const { text } = await service.get(`/v1/forms/${id}/submissions/export?format=csv`);
    heads.push(text.trim().split(',').slice(5));
  }
  await service.get(`/v1/forms/${personal.id}/submissions/export?format=ndjson`);
  const details = async () => {
    const { json } = await service.get('/v1/audit?action=submission.exported');
    return json.entries.map(({ detail }: { detail: string }) => detail).sort();
  };

  expect(heads).toEqual([['city'], ['city', 'pin (personal)']]);
  await until(async () => (await details()).length === 3);
  expect(await details()).toEqual(['csv', 'csv with personal answers', 'ndjson with personal answers']);
});

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
    heads.push(text.trim().split(',').slice(5, -2));
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

it('marks personal answers where one submission or session is read, and in each line of an export', async () => {
  await using service = await startService();
  const form = await service.givenPublishedForm({
    fields: [
      { id: 'city', type: 'text' },
      { id: 'pin', type: 'text', personal: true },
      { id: 'other', type: 'text', personal: true },
    ],
  });
  const made = await service.post(`/v1/forms/${form.id}/sessions`);
  const { id } = made.json.session;
  const submitted = await service.post(`/v1/sessions/${id}/submit`, {
    answers: { city: 'Rome', pin: '1234' },
  });
  await service.post(`/v1/forms/${form.id}/submissions`, { answers: { city: 'Rome' } });

  const alone = await service.get(`/v1/submissions/${submitted.json.submission_id}`);
  const ofSession = await service.get(`/v1/sessions/${id}`);
  const exported = await service.get(`/v1/forms/${form.id}/submissions/export?format=ndjson`);

  expect(alone.json.submission.personal).toEqual(['pin']);
  expect(ofSession.json.submission.personal).toEqual(['pin']);
  const lines = exported.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).personal);
  expect(lines).toEqual([['pin'], undefined]);
  const entries = await until(async () => {
    const { json } = await service.get('/v1/audit?action=submission.read');
    return json.entries.length > 0 && json.entries;
  });
  expect(entries.map(({ detail }: { detail: string }) => detail)).toEqual(
    entries.map(() => 'with personal answers'),
  );
});

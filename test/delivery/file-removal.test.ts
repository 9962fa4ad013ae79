import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { localUploadStore } from '../../src/services/uploads/upload-store.ts';
import { engines } from '../support/database.ts';
import { startDelivery } from '../support/delivery.ts';
import { startServices, type TestServices } from '../support/services.ts';
import { until } from '../support/until.ts';

const cvField = [
  { id: 'email', type: 'email' },
  { id: 'cv', type: 'file' },
];

describe.each(engines)('the bytes of a file on %s, while the upload store is away', (engine) => {
  const removals: [string, (services: TestServices, given: Given) => Promise<unknown>][] = [
    [
      'DeleteSubmission',
      ({ submissions, owner }, { submissionId }) => submissions.deleteSubmission({ submissionId }, owner),
    ],
    [
      'EraseSubmissions',
      ({ submissions, owner }, { email: value }) => submissions.eraseSubmissions({ value }, owner),
    ],
    [
      'DeleteForm',
      async ({ forms, owner }, { formId }) => {
        await forms.archiveForm({ formId }, owner);
        await forms.deleteForm({ formId }, owner);
      },
    ],
  ];

  it.each(removals)('stay for a while after %s, which answers ok, and go later', async (_, remove) => {
    await using services = await startServices(engine);
    const { database, folder } = services;
    const given = await givenFile(services);
    await rename(folder, `${folder}.away`);
    await writeFile(folder, 'No folder, so that the store fails.');
    await using _delivery = startDelivery(database, {
      removeUpload: (id) => localUploadStore(folder).remove(id),
    });

    await remove(services, given);

    await until(async () => (await waiting(services)).some(({ error }) => error !== null));
    await rm(folder);
    await rename(`${folder}.away`, folder);
    expect(await filesIn(folder)).toEqual([given.uploadId]);
    await database.execute('update removals set due_at = now()');
    await until(async () => (await waiting(services)).length === 0);
    expect(await filesIn(folder)).toEqual([]);
  });
});

type Given = Awaited<ReturnType<typeof givenFile>>;

/** A submission with a file. */
async function givenFile(services: TestServices) {
  const email = 'ada@example.com';
  const formId = await services.givenFormOf(cvField);
  const file = {
    target: { case: 'formId', value: formId } as const,
    fieldId: 'cv',
    content: Buffer.from('A file.'),
  };
  const uploadId = (await services.uploads.createUpload(file)).upload?.id ?? '';
  const answers = { email, cv: { upload_id: uploadId } };
  const { submissionId } = await services.submissions.createSubmission({ formId, answers });
  return { email, formId, uploadId, submissionId };
}

function waiting({ database }: TestServices) {
  return database.select('select subject, error from removals');
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

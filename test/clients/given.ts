import type { TestService } from '../support/server.ts';

/** More than clients take in one reply, 4 MiB, unless told otherwise. */
const SUBMISSIONS = 24;
const FILE_BYTES = 10 * 1024 * 1024;

const long = 'x'.repeat(100_000);

/** What the checks of all languages work on: a form, one with 4.8 MB of answers, and a file of the largest size. */
export async function givenLargeForm(service: TestService): Promise<Given> {
  const note = { id: 'note', type: 'textarea', maxLength: long.length };
  const email = { id: 'email', type: 'email', required: true };
  const form = await service.givenPublishedForm({ fields: [email, note] });
  const more = { ...note, id: 'more' };
  const large = await service.givenPublishedForm({ fields: [email, note, more, { id: 'cv', type: 'file' }] });
  const uploaded = await service.post(`/api/forms/${large.id}/uploads?field=cv`, new Uint8Array(FILE_BYTES), {
    headers: { 'content-type': 'application/octet-stream' },
  });
  const { upload_id: uploadId } = uploaded.json.upload;
  const cv = { upload_id: uploadId };
  const submit = async (_: unknown, index: number) => {
    const answers = { email: 'ada@example.com', note: long, more: long, ...(index === 0 && { cv }) };
    const { status, text } = await service.post(`/v1/forms/${large.id}/submissions`, { answers });
    if (status !== 201) throw new Error(`Not submitted: ${text}`);
  };
  await Promise.all(Array.from({ length: SUBMISSIONS }, submit));
  return { formId: form.id, largeFormId: large.id, uploadId };
}

/** What the check of each language prints. */
export const expectedOutput = [
  'grpc gzip 20000',
  'grpc deadline DEADLINE_EXCEEDED',
  `grpc listed ${SUBMISSIONS}`,
  `grpc exported ${SUBMISSIONS}`,
  'grpc uploaded 2000000',
  `grpc downloaded ${FILE_BYTES}`,
  'grpc retried',
  'grpc filtered 1',
  'grpc watched by token',
  'connect activated 200',
  'connect submitted 200',
  'connect refused 400 invalid_argument answers.email VIOLATION_CODE_INVALID_STRING',
  'connect refused 400 invalid_argument answers.phone VIOLATION_CODE_UNRECOGNIZED_KEYS',
  'connect answers ada@example.com',
  'connect session SESSION_STATUS_SUBMITTED',
  'connect gzip 20000',
  'connect deadline deadline_exceeded',
  `connect listed ${SUBMISSIONS}`,
  `connect exported ${SUBMISSIONS}`,
  'connect uploaded 2000000',
  `connect downloaded ${FILE_BYTES}`,
  'connect retried',
  'connect filtered 1',
  'connect watched by token',
  '',
];

/** What comes to a proxy that loses every other reply, of clients that submit through it once. */
export function repeated(clients: number): Record<string, number> {
  return { '/headlessforms.v1.SubmissionsService/CreateSubmission': 2 * clients };
}

export type Given = { formId: string; largeFormId: string; uploadId: string };

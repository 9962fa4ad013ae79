import { client } from './hey-api/client.gen.js';
import {
  activateForm,
  createForm,
  createSession,
  createUpload,
  createWebhook,
  exportSubmissions,
  getForm,
  listSubmissions,
  submit,
  submitSession,
} from './hey-api/index.js';
import type { SubmissionCreatedEvent } from './hey-api/types.gen.js';

// What a new user would write with the defaults of @hey-api/openapi-ts.

const { SERVICE = '', KEY = '', HOOK = '' } = process.env;
client.setConfig({ baseUrl: SERVICE, auth: KEY });

const created = await createForm({
  body: {
    name: 'Contact',
    slug: 'contact',
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'message', type: 'textarea' },
      { id: 'cv', type: 'file' },
    ],
    delivery: { type: 'email' },
    settings: { allowPartial: true },
  },
  throwOnError: true,
});
const { id, activate_url } = created.data.form;

const token = new URL(activate_url, SERVICE).searchParams.get('token') ?? '';
const activated = await activateForm({
  path: { id },
  query: { token },
  body: { email: 'owner@example.com' },
  throwOnError: true,
});
const status: 'draft' | 'published' | 'archived' = activated.data.form.status;

const { form } = (await getForm({ path: { id }, throwOnError: true })).data;
const required: boolean[] = form.definition.fields.map((field) => field.required);
const theme: 'light' | 'dark' | 'auto' = form.definition.settings.theme.mode;

const webhook = await createWebhook({
  body: { url: HOOK, events: ['submission.created'], form_id: id },
  throwOnError: true,
});
const { secret } = webhook.data;

const uploaded = await createUpload({
  path: { id },
  body: { field: 'cv', file: new File(['text of a CV'], 'cv.txt') },
  throwOnError: true,
});
const { upload_id } = uploaded.data.upload;

const send = (answers: Record<string, unknown>) =>
  submit({
    path: { id },
    headers: { 'Idempotency-Key': JSON.stringify(answers).slice(0, 255) },
    body: { answers, source: 'hey-api' },
  });
const accepted = await send({ email: 'ada@example.com', cv: { upload_id } });
const again = await send({ email: 'ada@example.com', cv: { upload_id } });
const refused = await send({ phone: 1 });
const problems = refused.error?.error.details.map(({ path, code }) => `${path}: ${code}`);

const listed = await listSubmissions({ path: { id }, query: { limit: 10 }, throwOnError: true });
const { submissions, next_cursor } = listed.data;

const opened = await createSession({
  path: { id },
  body: { expires_in: 60, prefill: { email: 'grace@example.com' } },
  throwOnError: true,
});
const submitted = await submitSession({
  path: { id: opened.data.session.id },
  body: { answers: { message: 'Hello' } },
  throwOnError: true,
});

const exported = await exportSubmissions({ path: { id }, query: { format: 'ndjson' }, parseAs: 'text' });

console.log(
  JSON.stringify({
    status,
    required,
    theme,
    secret: secret?.slice(0, 6),
    repeated: again.data?.submission_id === accepted.data?.submission_id,
    problems,
    listed: submissions.map(({ source }) => source),
    next_cursor,
    session: submitted.data.session.status,
    exported: String(exported.data).trim().split('\n').length,
    requestId: listed.response.headers.has('x-request-id'),
  }),
);

/** What a webhook receives has a type, too. */
export type Received = SubmissionCreatedEvent['data']['answers'];

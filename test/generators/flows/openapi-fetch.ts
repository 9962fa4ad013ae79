import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

// What a new user would write with openapi-typescript's and openapi-fetch's defaults.

const { SERVICE = '', KEY = '', HOOK = '' } = process.env;
const options = { baseUrl: SERVICE, headers: { authorization: `Bearer ${KEY}` } };
// Of the routes that answer HTML forms with pages, too, the JSON is meant.
const client = createClient<paths, 'application/json'>(options);
const files = createClient<paths>(options);

const created = await client.POST('/api/forms/create', {
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
});
const { id, activate_url } = dataOf(created).form;

const token = new URL(activate_url, SERVICE).searchParams.get('token') ?? '';
const activated = await client.POST('/api/forms/{id}/activate', {
  params: { path: { id }, query: { token } },
  body: { email: 'owner@example.com' },
});
const status: 'draft' | 'published' | 'archived' = dataOf(activated).form.status;

const form = dataOf(await client.GET('/v1/forms/{id}', { params: { path: { id } } })).form;
const required: boolean[] = form.definition.fields.map((field) => field.required);
const theme: 'light' | 'dark' | 'auto' = form.definition.settings.theme.mode;

const webhook = await client.POST('/v1/webhooks', {
  body: { url: HOOK, events: ['submission.created'], form_id: id },
});
const { secret } = dataOf(webhook);

const parts = new FormData();
parts.set('field', 'cv');
parts.set('file', new Blob(['text of a CV']), 'cv.txt');
const uploaded = await files.POST('/api/forms/{id}/uploads', {
  params: { path: { id } },
  body: { field: 'cv', file: '' },
  bodySerializer: () => parts,
});
const { upload_id } = dataOf(uploaded).upload;

const submit = (answers: Record<string, unknown>) =>
  client.POST('/api/forms/{id}/submissions', {
    params: { path: { id }, header: { 'Idempotency-Key': JSON.stringify(answers).slice(0, 255) } },
    body: { answers, source: 'openapi-fetch' },
  });
const accepted = dataOf(await submit({ email: 'ada@example.com', cv: { upload_id } }));
const again = dataOf(await submit({ email: 'ada@example.com', cv: { upload_id } }));
const refused = await submit({ phone: 1 });
const problems = errorOf(refused).details.map(({ path, code }) => `${path}: ${code}`);

const listed = await client.GET('/v1/forms/{id}/submissions', {
  params: { path: { id }, query: { limit: 10 } },
});
const { submissions, next_cursor } = dataOf(listed);

const opened = await client.POST('/v1/forms/{id}/sessions', {
  params: { path: { id } },
  body: { expires_in: 60, prefill: { email: 'grace@example.com' } },
});
const { session } = dataOf(opened);
const submitted = await client.POST('/v1/sessions/{id}/submit', {
  params: { path: { id: session.id } },
  body: { answers: { message: 'Hello' } },
});

const exported = await client.GET('/v1/forms/{id}/submissions/export', {
  params: { path: { id }, query: { format: 'ndjson' } },
  parseAs: 'text',
});

console.log(
  JSON.stringify({
    status,
    required,
    theme,
    secret: secret?.slice(0, 6),
    repeated: again.submission_id === accepted.submission_id,
    problems,
    listed: submissions.map(({ source }) => source),
    next_cursor,
    session: dataOf(submitted).session.status,
    exported: String(exported.data).trim().split('\n').length,
    requestId: listed.response.headers.has('x-request-id'),
  }),
);

function dataOf<T>({ data, error }: { data?: T; error?: components['schemas']['Error'] }): T {
  if (data === undefined) throw new Error(error?.error.message ?? 'No answer');
  return data;
}

function errorOf({ error }: { error?: components['schemas']['Error'] }) {
  if (error === undefined) throw new Error('This was expected to be refused');
  return error.error;
}

/** What a webhook receives has a type, too. */
export type Received = components['schemas']['SubmissionCreatedEvent']['data']['answers'];

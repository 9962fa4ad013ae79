import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhookEvent, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { definitionMessage } from '../support/definitions.ts';
import { failureOf } from '../support/failures.ts';
import { contactForm, protocols, startService, type TestService } from '../support/server.ts';

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  const fields = [...contactForm.fields, { id: 'cv', type: 'file', accept: ['.pdf'] }];
  formId = (await service.givenPublishedForm({ fields })).id;
});

afterAll(() => service?.[Symbol.asyncDispose]());

describe.each(protocols)('the violations of a call by %s', (protocol) => {
  async function pathsOf(call: Promise<unknown>): Promise<string[]> {
    const { message, violations } = await failureOf(call);
    const paths = violations.map(([path]) => path);
    expect(message).toContain(paths[0]);
    return paths;
  }

  it('are at the fields of the request', async () => {
    const forms = service.client(FormsService, protocol);
    const submissions = service.client(SubmissionsService, protocol);
    const sessions = service.client(SessionsService, protocol);
    const webhooks = service.client(WebhooksService, protocol);
    const uploads = service.client(UploadsService, protocol);
    const definition = definitionMessage({
      fields: [{ id: '1st', type: FormFieldType.TEXT, maxLength: 0 }],
      delivery: { channel: { case: 'webhook', value: { url: 'ftp://example.com' } } },
      settings: { theme: { accentColor: 'red' } },
    });
    const created = WebhookEvent.SUBMISSION_CREATED;

    const paths = await Promise.all([
      pathsOf(forms.createForm({ definition })),
      pathsOf(forms.createForm({})),
      pathsOf(forms.listForms({ pageSize: -1 })),
      pathsOf(forms.listForms({ pageToken: 'x' })),
      pathsOf(submissions.listSubmissions({ formId, skip: -1 })),
      pathsOf(submissions.createSubmission({ formId, answers: { 'a[0].b': 1 } })),
      pathsOf(submissions.createSubmission({ formId, answers: {}, idempotencyKey: 'k'.repeat(256) })),
      pathsOf(
        sessions.createSession({
          subject: { case: 'formId', value: formId },
          expiresIn: { seconds: 0n },
          prefill: { email: 1 },
        }),
      ),
      pathsOf(webhooks.createWebhook({ url: 'https://example.com', events: [created, created] })),
      pathsOf(
        uploads.createUpload({
          target: { case: 'formId', value: formId },
          fieldId: 'cv',
          filename: 'a.txt',
          content: new TextEncoder().encode('text'),
        }),
      ),
    ]);

    expect(paths).toEqual([
      [
        'definition.fields[0].id',
        'definition.fields[0].max_length',
        'definition.settings.theme.accent_color',
        'definition.delivery.webhook.url',
      ],
      ['definition'],
      ['page_size'],
      ['page_token'],
      ['skip'],
      ['answers.email', 'answers.a[0].b'],
      ['idempotency_key'],
      ['expires_in', 'prefill.email'],
      ['events[1]'],
      ['content'],
    ]);
  });
});

describe('the violations of a REST request', () => {
  async function pathsOf(reply: ReturnType<TestService['get']>): Promise<string[]> {
    const { error } = (await reply).json;
    const paths = error.details.map(({ path }: { path: string }) => path);
    expect(error.message).toContain(`${paths[0]}: `);
    return paths;
  }

  it('are at the places of the body, the parameters and the headers', async () => {
    const { post, get } = service;
    const definition = {
      ...contactForm,
      fields: [{ id: '1st', type: 'text', maxLength: 0 }],
      delivery: { type: 'webhook', url: 'ftp://example.com' },
    };
    const file = new FormData();
    file.set('field', 'cv');
    file.set('file', new Blob(['text']), 'a.txt');
    const events = ['submission.created', 'submission.created'];
    const twice = { url: 'https://example.com', events };

    const paths = await Promise.all([
      pathsOf(post('/api/forms/create', definition)),
      pathsOf(get('/v1/forms?limit=-1')),
      pathsOf(get('/v1/forms?cursor=x')),
      pathsOf(get(`/v1/forms/${formId}/submissions?offset=-1`)),
      pathsOf(post(`/api/forms/${formId}/submissions`, { answers: { 'a[0].b': 1 } })),
      pathsOf(
        post(
          `/api/forms/${formId}/submissions`,
          { answers: {} },
          { headers: { 'idempotency-key': 'k'.repeat(256) } },
        ),
      ),
      pathsOf(post(`/v1/forms/${formId}/sessions`, { expires_in: 0, prefill: { email: 1 } })),
      pathsOf(post('/v1/webhooks', twice)),
      pathsOf(post(`/api/forms/${formId}/uploads`, file)),
      pathsOf(post(`/api/forms/${formId}/uploads?field=email`, new Uint8Array([1]))),
    ]);

    expect(paths).toEqual([
      ['fields.0.id', 'fields.0.maxLength', 'delivery.url'],
      ['limit'],
      ['cursor'],
      ['offset'],
      ['answers.email', 'answers.a[0].b'],
      ['Idempotency-Key'],
      ['expires_in', 'prefill.email'],
      ['events.1'],
      ['answers.cv'],
      ['field'],
    ]);
  });
});

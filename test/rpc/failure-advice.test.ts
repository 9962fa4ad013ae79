import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../gen/headlessforms/v1/definition_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { routes } from '../../src/gateway/router.ts';
import { nextInWords } from '../../src/http/errors.ts';
import { startAgent } from '../mcp/agent.ts';
import { definitionMessage } from '../support/definitions.ts';
import { failureOf } from '../support/failures.ts';
import { contactForm, protocols, startService, type TestService } from '../support/server.ts';

const person = { id: 'consent', type: 'checkbox', required: true, answeredBy: 'human' };

let service: TestService;
let formId: string;

beforeAll(async () => {
  service = await startService();
  formId = (await service.givenPublishedForm({ fields: [...contactForm.fields, person] })).id;
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe.each(protocols)('a failure by %s', (protocol) => {
  it('says what came at each field of the request, but no secret', async () => {
    const forms = service.client(FormsService, protocol);
    const submissions = service.client(SubmissionsService, protocol);
    const sessions = service.client(SessionsService, protocol);
    const webhooks = service.client(WebhooksService, protocol);
    const definition = definitionMessage({
      fields: [{ id: '1st', type: FormFieldType.TEXT, maxLength: 0 }],
      delivery: { channel: { case: 'webhook', value: { url: 'ftp://example.com', secret: 'short' } } },
    });
    const answers = { email: 'x'.repeat(100), age: 0, 'a.b': 1 };

    const told = await Promise.all(
      [
        forms.createForm({ definition }),
        forms.listForms({ pageSize: -1 }),
        submissions.createSubmission({ formId, answers }),
        sessions.createSession({ subject: { case: 'formId', value: formId }, expiresIn: { seconds: -5n } }),
        webhooks.createWebhook({ url: 'https://me:secret@example.com', secret: 'short' }),
      ].map(async (call) => {
        const { violations, received } = await failureOf(call);
        return violations.map(([path], index) => `${path} ${received[index]}`);
      }),
    );

    expect(told).toEqual([
      expect.arrayContaining([
        'definition.fields[0].id "1st"',
        'definition.fields[0].max_length 0',
        'definition.delivery.webhook.url "ftp://example.com"',
        'definition.delivery.webhook.secret string',
      ]),
      ['page_size -1'],
      [
        `answers.email "${'x'.repeat(60)}…" (string of 100 characters)`,
        'answers.consent ',
        'answers.age 0',
        'answers.a.b ',
      ],
      ['expires_in -5'],
      expect.arrayContaining(['url string', 'secret string', 'events ']),
    ]);
    expect(JSON.stringify(told)).not.toMatch(/me:secret|short/);
  });

  it('says whether a repeat can help, and what to call next', async () => {
    const forms = service.client(FormsService, protocol);
    const submissions = service.client(SubmissionsService, protocol);
    const sessions = service.client(SessionsService, protocol);
    const { form: draft } = await forms.createForm({ definition: definitionMessage() });
    const { session } = await sessions.createSession({ subject: { case: 'formId', value: formId } });
    await sessions.cancelSession({ sessionId: session?.id ?? '' });
    const keyless = service.client(FormsService, protocol, null);
    const email = 'ada@example.com';

    const told = await Promise.all(
      [
        submissions.createManagedSubmission({ formId, answers: { email: 7 } }),
        forms.getForm({ formId: 'form_none' }),
        forms.publishFormVersion({ formId: draft?.id ?? '', definition: definitionMessage() }),
        sessions
          .getSession({ sessionId: session?.id ?? '' })
          .then(() => sessions.submitSession({ sessionId: session?.id ?? '' })),
        keyless.listForms({}),
        forms.activateForm({ formId: draft?.id ?? '', activationToken: 'wrong', email }),
      ].map(async (call) => {
        const { reason, nextCall, retryable, retryAfter } = await failureOf(call);
        return [reason, nextCall, retryable, retryAfter];
      }),
    );

    expect(told).toEqual([
      ['INVALID', 'CREATE_SESSION', false, undefined],
      ['NOT_FOUND', 'LIST', false, undefined],
      ['CONFLICT', 'ACTIVATE_FORM', false, undefined],
      ['CANCELLED', 'CREATE_SESSION', false, undefined],
      ['MISSING_KEY', 'WITH_KEY', false, undefined],
      ['INVALID_TOKEN', 'CREATE_FORM', false, undefined],
    ]);
  });
});

describe('a failure by REST and by MCP', () => {
  it('says the same of what came and of what to do as the RPC', async () => {
    await using agent = await startAgent(service);
    const answers = { email: 7, consent: true, token: 'abc', note: 'x'.repeat(99) };

    const byRest = await service.post(`/v1/forms/${formId}/submissions`, { answers });
    const byMcp = await agent.use('submit_answers', { form_id: formId, answers });

    const { details, ...error } = byRest.json.error;
    const received = Object.fromEntries(
      details.map((detail: { path: string; received?: string }) => [detail.path, detail.received]),
    );
    expect(received).toEqual({
      'answers.email': '7',
      'answers.consent': 'true',
      'answers.token': 'string',
      'answers.note': `"${'x'.repeat(60)}…" (string of 99 characters)`,
    });
    expect(error).toMatchObject({
      retryable: false,
      next_call: 'create_session',
      next: expect.stringContaining('POST /v1/forms/:id/sessions'),
    });
    expect(byMcp.failure).toMatchObject({ retryable: false, next: expect.stringContaining('ask_person') });
    expect(
      byMcp.failure.problems.map((problem: { field: string; received?: string }) => [
        problem.field,
        problem.received,
      ]),
    ).toEqual(Object.entries(received));
  });

  it('names only routes that there are', () => {
    const named = Object.values(nextInWords).flatMap((words) => words.match(/(?:GET|POST) \/[\w:/]+/g) ?? []);
    const served = routes.map(({ method, path }) => `${method.toUpperCase()} ${path}`);

    expect(named.length).toBeGreaterThan(6);
    expect(named.filter((route) => !served.includes(route))).toEqual([]);
  });
});

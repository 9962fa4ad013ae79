import { timestampDate } from '@bufbuild/protobuf/wkt';
import { Code, createClient, type Transport } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormStatus, FormsService } from '../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../gen/headlessforms/v1/keys_pb.js';
import { SessionsService } from '../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../gen/headlessforms/v1/submissions_pb.js';
import { WebhooksService } from '../gen/headlessforms/v1/webhooks_pb.js';
import { definitionFromMessage } from '../src/domain/definition/definition-proto.ts';
import { isMatrixFull } from './support/covering.ts';
import { engines } from './support/database.ts';
import { definitionMessage } from './support/definitions.ts';
import { failureOf } from './support/failures.ts';
import {
  type CallOptions,
  contactForm,
  protocols,
  startService,
  type TestService,
} from './support/server.ts';

/** The database has no part in how calls come in. */
const protocolsOn = { pglite: protocols, postgres: isMatrixFull ? protocols : (['grpc'] as const) };

describe.each(engines)('on %s', (engine) => {
  let service: TestService;
  const answers = { email: 'ann@example.com' };

  beforeAll(async () => {
    service = await startService({ engine });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  describe.each(protocolsOn[engine])('over %s', (protocol) => {
    const at = ({ key, headers }: CallOptions = {}) => service.transport(protocol, key, headers);

    it('a form that REST made is read, published and submitted to', async () => {
      const draft = await service.givenDraft();
      const forms = createClient(FormsService, at());
      const token = new URL(draft.activate_url, service.url).searchParams.get('token') ?? '';

      const { form: published } = await forms.activateForm({
        formId: draft.id,
        activationToken: token,
        email: 'o@example.com',
      });
      const { form } = await forms.getForm({ formId: draft.id });
      const { submissionId } = await createClient(SubmissionsService, at()).createSubmission({
        formId: draft.id,
        answers,
      });

      expect(published?.status).toBe(FormStatus.PUBLISHED);
      expect(form).toMatchObject({ id: draft.id, name: 'Contact', ownerEmail: 'o@example.com' });
      const rest = (await service.get(`/v1/forms/${draft.id}`)).json.form;
      expect(form?.definition && definitionFromMessage(form.definition)).toEqual(rest.definition);
      expect(form?.createTime && timestampDate(form.createTime).toISOString()).toBe(rest.created_at);
      expect((await service.get(`/v1/submissions/${submissionId}`)).json.submission).toMatchObject({
        form_id: draft.id,
        answers,
      });
    });

    it('a form and a session that RPC made are read and submitted by REST', async () => {
      const forms = createClient(FormsService, at());
      const { form, activationToken } = await forms.createForm({ definition: definitionMessage() });
      const formId = form?.id ?? '';

      const activated = await service.post(`/api/forms/${formId}/activate?token=${activationToken}`, {
        email: 'owner@example.com',
      });
      const sessions = createClient(SessionsService, at());
      const { session } = await sessions.createSession({
        subject: { case: 'formId', value: formId },
        prefill: answers,
      });
      const submitted = await service.post(`/v1/sessions/${session?.id}/submit`);

      expect(activated.json.form).toMatchObject({ id: formId, status: 'published' });
      expect(submitted.status).toBe(201);
      const read = await createClient(SubmissionsService, at()).getSubmission({
        submissionId: submitted.json.submission_id,
      });
      expect(read.submission).toMatchObject({ formId, sessionId: session?.id, answers });
      expect((await service.get(`/v1/forms/${formId}/agent-schema`)).json.form.slug).toBe('contact');
    });

    it('a failure is the one that REST tells, whatever its reason', async () => {
      const failures = await givenFailures(service);

      const byRest: object[] = [];
      const byRpc: object[] = [];
      for (const { reason, code, caller, rest, rpc } of failures) {
        const { json, headers } = await rest();
        const { message, details, retryable, next_call } = json.error;
        byRest.push({
          code,
          reason,
          // Each interface names the places by its own names, also in the message.
          message: details.length === 0 ? message : '',
          submissionId: json.error.submission_id ?? '',
          sessionId: json.error.session_id ?? '',
          retryable,
          retryAfter: json.error.retry_after,
          nextCall: next_call.toUpperCase(),
          changes: [],
          violations: details.map(({ code: detail }: Detail) => detail),
          challenge: headers.get('www-authenticate'),
        });
        expect(json.error.reason).toBe(reason.toLowerCase());
        const { header, requiredScope: _, received: __, ...failure } = await failureOf(rpc(at(caller)));
        const violations = failure.violations.map(([, detail]) => detail);
        byRpc.push({
          ...failure,
          message: violations.length === 0 ? failure.message : '',
          violations,
          challenge: header.get('www-authenticate'),
        });
      }

      expect(byRpc).toEqual(byRest);
    });

    it('a fault shows nothing but the id that is in the log', async () => {
      await service.database.execute('alter table webhooks rename to lost');
      try {
        const failure = await failureOf(createClient(WebhooksService, at()).listWebhooks({}));
        const told = await service.get('/v1/webhooks');

        expect([failure.code, failure.reason]).toEqual([Code.Internal, 'INTERNAL']);
        expect([told.status, told.json.error.reason]).toEqual([500, 'internal']);
        expect(withoutId(failure.message)).toBe(withoutId(told.json.error.message));
        expect(failure.message).not.toMatch(/webhooks|relation|select/i);
      } finally {
        await service.database.execute('alter table lost rename to webhooks');
      }
    });

    it('an export streams the same bytes', async () => {
      const form = await service.givenPublishedForm();
      for (let count = 0; count < 3; count += 1) {
        await service.post(`/api/forms/${form.id}/submissions`, { answers });
      }

      const pieces: Uint8Array[] = [];
      const submissions = createClient(SubmissionsService, at());
      for await (const { data } of submissions.exportSubmissions({ formId: form.id, format: 1 }))
        pieces.push(data);

      const file = await service.get(`/v1/forms/${form.id}/submissions/export`);
      expect(new TextDecoder().decode(Buffer.concat(pieces))).toBe(file.text);
    });
  });

  it('a caller who calls too often is told the same, and when to call again', async () => {
    await using limited = await startService({ engine, env: { RATE_LIMIT: 'on' } });
    const draft = await limited.givenDraft();
    const path = `/api/forms/${draft.id}/activate?token=wrong`;
    const call = () => limited.post(path, { email: 'o@example.com' }, { key: null });
    for (let count = 0; count < 30; count += 1) expect((await call()).status).toBe(401);

    const told = await call();
    const forms = createClient(FormsService, limited.transport('grpc', null));
    const failure = await failureOf(
      forms.activateForm({ formId: draft.id, activationToken: 'wrong', email: 'o@example.com' }),
    );

    expect([told.status, told.json.error.code, told.json.error.reason]).toEqual([
      429,
      'validation_failed',
      'rate_limited',
    ]);
    expect([failure.code, failure.reason, failure.message]).toEqual([
      Code.ResourceExhausted,
      'RATE_LIMITED',
      told.json.error.message,
    ]);
    for (const headers of [told.headers, failure.header]) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect(headers.get('ratelimit-policy')).toBe('"activate";q=30;w=3600');
    }
  });

  it('names every reply by a request id: the one that came if it is well-formed, else a new one', async () => {
    const paths = [
      '/health',
      '/v1/none',
      '/f/sess_none',
      '/openapi.json',
      '/headlessforms.v1.FormsService/GetForm',
    ];
    const idOf = async (path: string, sent: string) => {
      const init = { method: path.includes('Service') ? 'POST' : 'GET', headers: { 'x-request-id': sent } };
      return (await fetch(service.url + path, init)).headers.get('x-request-id');
    };

    for (const path of paths) {
      expect([path, await idOf(path, 'order-1.a:b')]).toEqual([path, 'order-1.a:b']);
      expect([path, await idOf(path, 'two words')]).toEqual([path, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    }
  });
});

/** One failure for each reason that a call can be brought to, by REST and by RPC. */
async function givenFailures(service: TestService): Promise<Failure[]> {
  const form = await service.givenPublishedForm();
  const draft = await service.givenDraft();
  const spent = await service.givenDraft();
  await service.post(spent.activate_url, { email: 'o@example.com' });
  const archived = await service.givenPublishedForm();
  const closed = await service.givenPublishedForm({ settings: { closesAt: '2020-01-01T00:00:00Z' } });
  const choosy = await service.givenPublishedForm({ settings: { allowedOrigins: ['https://site.example'] } });
  const strangers = await service.givenPublishedForm({}, { key: null });
  await service.post(`/v1/forms/${archived.id}/archive`);
  const session = async () => (await service.post(`/v1/forms/${form.id}/sessions`)).json.session.id;
  const [submitted, expired] = [await session(), await session()];
  await service.post(`/v1/sessions/${submitted}/submit`, { answers: { email: 'ann@example.com' } });
  await service.database.execute(
    "update sessions set expires_at = now() - interval '1 second' where id = $1",
    [expired],
  );
  const weak = await service.givenKey(['submissions:read']);
  const anyone = { key: null };
  const evil = { key: null, headers: { origin: 'https://evil.example' } };
  const answers = { email: 'ann@example.com' };
  const keyed = { headers: { 'idempotency-key': 'same' } };
  await service.post(`/api/forms/${form.id}/submissions`, { answers }, keyed);

  const listForms = (transport: Transport) => createClient(FormsService, transport).listForms({});
  const submit =
    (formId: string, request: object = { answers }) =>
    (transport: Transport) =>
      createClient(SubmissionsService, transport).createSubmission({ formId, ...request });
  const activate = (formId: string, token: string) => (transport: Transport) =>
    createClient(FormsService, transport).activateForm({
      formId,
      activationToken: token,
      email: 'o@example.com',
    });
  const post = (path: string, body: object, caller?: CallOptions) => () => service.post(path, body, caller);
  const wide = { ...answers, message: 'x'.repeat(65 * 1024) };
  const wrongDefinition = { name: '', fields: [{ id: '1st', type: 3 }] };

  return [
    {
      reason: 'BAD_REQUEST',
      code: Code.InvalidArgument,
      rest: () => service.get('/v1/forms?cursor=garbage'),
      rpc: (to) => createClient(FormsService, to).listForms({ pageToken: 'garbage' }),
    },
    {
      reason: 'BAD_REQUEST',
      code: Code.InvalidArgument,
      rest: post(`/api/forms/${draft.id}/activate`, { email: 'o@example.com' }),
      rpc: activate(draft.id, ''),
    },
    {
      reason: 'MISSING_KEY',
      code: Code.Unauthenticated,
      caller: anyone,
      rest: () => service.get('/v1/forms', anyone),
      rpc: listForms,
    },
    {
      reason: 'INVALID_KEY',
      code: Code.Unauthenticated,
      caller: { key: 'hfs_wrong' },
      rest: () => service.get('/v1/forms', { key: 'hfs_wrong' }),
      rpc: listForms,
    },
    {
      reason: 'INSUFFICIENT_SCOPE',
      code: Code.PermissionDenied,
      caller: { key: weak },
      rest: () => service.get('/v1/forms', { key: weak }),
      rpc: listForms,
    },
    {
      reason: 'INVALID_TOKEN',
      code: Code.Unauthenticated,
      rest: post(`/api/forms/${draft.id}/activate?token=wrong`, { email: 'o@example.com' }),
      rpc: activate(draft.id, 'wrong'),
    },
    {
      reason: 'TOKEN_USED',
      code: Code.Unauthenticated,
      rest: post(spent.activate_url, { email: 'o@example.com' }),
      rpc: activate(spent.id, new URL(spent.activate_url, service.url).searchParams.get('token') ?? ''),
    },
    {
      reason: 'ORIGIN_NOT_ALLOWED',
      code: Code.PermissionDenied,
      caller: evil,
      rest: post(`/api/forms/${choosy.id}/submissions`, { answers }, evil),
      rpc: submit(choosy.id),
    },
    {
      reason: 'NOT_FOUND',
      code: Code.NotFound,
      rest: post(`/api/forms/${draft.id}/submissions`, { answers }),
      rpc: submit(draft.id),
    },
    {
      reason: 'CONFLICT',
      code: Code.FailedPrecondition,
      rest: post(`/v1/sessions/${submitted}/submit`, { answers }),
      rpc: (to) => createClient(SessionsService, to).submitSession({ sessionId: submitted, answers }),
    },
    {
      reason: 'CONFLICT',
      code: Code.FailedPrecondition,
      rest: post(`/v1/forms/${draft.id}/versions`, contactForm),
      rpc: (to) =>
        createClient(FormsService, to).publishFormVersion({
          formId: draft.id,
          definition: definitionMessage(),
        }),
    },
    {
      reason: 'CONFLICT',
      code: Code.AlreadyExists,
      rest: post(`/api/forms/${form.id}/submissions`, { answers, source: 'other' }, keyed),
      rpc: submit(form.id, { answers, source: 'other', idempotencyKey: 'same' }),
    },
    {
      reason: 'EXPIRED',
      code: Code.FailedPrecondition,
      rest: () => service.patch(`/v1/sessions/${expired}`, { extend_by: 60 }),
      rpc: (to) => createClient(SessionsService, to).updateSession({ sessionId: expired }),
    },
    {
      reason: 'CLOSED',
      code: Code.FailedPrecondition,
      rest: post(`/api/forms/${closed.id}/submissions`, { answers }),
      rpc: submit(closed.id),
    },
    {
      reason: 'ARCHIVED',
      code: Code.FailedPrecondition,
      rest: post(`/api/forms/${archived.id}/submissions`, { answers }),
      rpc: submit(archived.id),
    },
    {
      reason: 'TOO_LARGE',
      code: Code.ResourceExhausted,
      rest: post(`/api/forms/${strangers.id}/submissions`, { answers: wide }),
      rpc: submit(strangers.id, { answers: wide }),
    },
    {
      reason: 'INVALID',
      code: Code.InvalidArgument,
      rest: post(`/api/forms/${form.id}/submissions`, { answers: { email: 'x', phone: 1 } }),
      rpc: submit(form.id, { answers: { email: 'x', phone: 1 } }),
    },
    {
      reason: 'INVALID',
      code: Code.InvalidArgument,
      rest: post('/api/forms/create', { ...contactForm, name: '', fields: [{ id: '1st', type: 'email' }] }),
      rpc: (to) =>
        createClient(FormsService, to).createForm({ definition: definitionMessage(wrongDefinition) }),
    },
    {
      reason: 'INVALID',
      code: Code.InvalidArgument,
      rest: post(`/v1/forms/${form.id}/sessions`, { expires_in: 0, prefill: { nobody: 1 } }),
      rpc: (to) =>
        createClient(SessionsService, to).createSession({
          subject: { case: 'formId', value: form.id },
          expiresIn: { seconds: 0n },
          prefill: { nobody: 1 },
        }),
    },
    {
      reason: 'INVALID',
      code: Code.InvalidArgument,
      rest: post('/v1/webhooks', { url: 'nowhere', events: [] }),
      rpc: (to) => createClient(WebhooksService, to).createWebhook({ url: 'nowhere' }),
    },
    {
      reason: 'INVALID',
      code: Code.InvalidArgument,
      rest: post('/v1/keys', { name: 'k', scopes: ['all'], expires_in: 0 }),
      rpc: (to) =>
        createClient(KeysService, to).createKey({ name: 'k', scopes: ['all'], expiresIn: { seconds: 0n } }),
    },
  ];
}

const withoutId = (message: string) => message.replace(/[0-9a-f-]{36}/, '…');

type Detail = { path: string; code: string };
type Failure = {
  reason: string;
  code: Code;
  caller?: CallOptions;
  rest: () => ReturnType<TestService['call']>;
  rpc: (transport: Transport) => Promise<unknown>;
};

import { readdir } from 'node:fs/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { CreateSessionRequestSchema } from '../../gen/headlessforms/v1/sessions_pb.js';
import { WebhookEvent } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { fingerprint } from '../../src/domain/json/json-text.ts';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import { pseudonymOf } from '../../src/domain/secrets/secret-key.ts';
import { removeOutdated } from '../../src/store/removal/removals.ts';
import { engines } from '../support/database.ts';
import { definitionMessage, definitionOf } from '../support/definitions.ts';
import { expectFailure } from '../support/failures.ts';
import { startServices, type TestServices, withKey } from '../support/services.ts';

const hook = { url: 'https://example.com/hook', events: [WebhookEvent.SUBMISSION_CREATED] };
const cvField = [{ id: 'cv', type: 'file' }];

const upload = (formId: string) => ({
  target: { case: 'formId' as const, value: formId },
  fieldId: 'cv',
  filename: 'cv.txt',
  content: Buffer.from('mine'),
});

/** What the version before kept of the calls whose replies it made anew, and what made two requests the same. */
const kept = [
  keptBy({
    name: 'a draft',
    call: ({ services: { forms, owner }, key }, change) =>
      forms.createForm({ definition: definitionOf(cvField, change), idempotencyKey: key }, owner),
    // All that the definition says, and no default.
    content: () => ({
      definition: { name: 'Test', slug: 'test', fields: cvField, delivery: { type: 'email' }, settings: {} },
      secret: null,
    }),
    id: ({ form }) => form?.id,
    secret: ({ activationToken }) => activationToken,
    other: { review: true },
  }),
  keptBy({
    name: 'a version',
    call: ({ services: { forms, owner }, formId, key }, change) =>
      forms.publishFormVersion(
        { formId, definition: definitionOf(cvField, { review: true, ...change }), idempotencyKey: key },
        owner,
      ),
    content: ({ formId }) => ({
      form_id: formId,
      definition: {
        name: 'Test',
        slug: 'test',
        fields: cvField,
        delivery: { type: 'email' },
        settings: { review: true },
      },
      secret: null,
    }),
    id: ({ version }) => version?.id,
    secret: () => '',
    other: { allowPartial: true },
  }),
  keptBy({
    name: 'a webhook',
    call: ({ services: { webhooks, owner }, key }, change) =>
      webhooks.createWebhook({ ...hook, ...change, idempotencyKey: key }, owner),
    content: () => ({ url: hook.url, events: ['submission.created'], secret: null, form_id: null }),
    id: ({ webhook }) => webhook?.id,
    secret: ({ secret }) => secret,
    other: { ed25519: true },
  }),
  keptBy({
    name: 'a key',
    call: ({ services: { keys, owner }, key }, change) =>
      keys.createKey({ name: 'kept', scopes: ['forms:read'], ...change, idempotencyKey: key }, owner),
    content: () => ({ name: 'kept', scopes: ['forms:read'], project: 'default', expires_in: null }),
    id: ({ key }) => key?.id,
    secret: ({ secret }) => secret,
    other: { name: 'other' },
  }),
  keptBy({
    name: 'a file',
    call: ({ services: { uploads }, formId, key }, change) =>
      uploads.createUpload({ ...upload(formId), ...change, idempotencyKey: key }),
    content: ({ formId }) => ({
      form_id: formId,
      field: 'cv',
      filename: 'cv.txt',
      sha256: hashSecret('mine'),
    }),
    id: ({ upload }) => upload?.id,
    other: { filename: 'other.txt' },
  }),
];

type GivenKept = { services: TestServices; formId: string; key: string };

type Kept<Reply> = {
  name: string;
  call: (given: GivenKept, change: object) => Promise<Reply>;
  content: (given: GivenKept) => object;
  id: (reply: Reply) => string | undefined;
  secret?: (reply: Reply) => string;
  other: object;
};

/** A row whose reply only it knows. */
function keptBy<Reply>({ call, id, secret, ...row }: Kept<Reply>) {
  const send = async (given: GivenKept, change: object) => {
    const reply = await call(given, change);
    return { reply, id: id(reply), secret: secret?.(reply) };
  };
  return { ...row, send };
}

describe.each(engines)('an idempotency key, on %s,', (engine) => {
  let services: TestServices;
  let formId: string;

  beforeAll(async () => {
    services = await startServices(engine);
    formId = await services.givenFormOf(cvField);
  });

  afterAll(() => services?.[Symbol.asyncDispose]());

  async function count(table: string): Promise<number> {
    const [row] = await services.database.select(`select count(*)::int as count from ${table}`);
    return Number(row?.count);
  }

  it('makes one webhook of any number of calls, and gives its secret to each', async () => {
    const { createWebhook } = services.webhooks;
    const before = await count('webhooks');

    const replies = await Promise.all(
      Array.from({ length: 5 }, () => createWebhook({ ...hook, idempotencyKey: 'hook' }, services.owner)),
    );
    const later = await createWebhook({ ...hook, idempotencyKey: 'hook' }, services.owner);

    expect(later.secret).toMatch(/^whsec_/);
    expect(replies).toEqual(Array(5).fill(later));
    expect(await count('webhooks')).toBe(before + 1);
  });

  it('is refused with another content, a secret of its own included, and none of that is stored', async () => {
    const { createWebhook } = services.webhooks;
    const own = { ...hook, secret: 'a secret of mine', idempotencyKey: 'own secret' };
    await createWebhook(own, services.owner);

    const other = await expectFailure(
      createWebhook({ ...own, secret: 'another secret' }, services.owner),
      Reason.CONFLICT,
    );
    const repeated = await createWebhook(own, services.owner);

    expect(other.code).toBe(6);
    expect(repeated.secret).toBe('');
    const rows = await services.database.select('select * from idempotency_keys');
    expect(JSON.stringify(rows)).not.toMatch(/a secret of mine|own secret/);
  });

  it('gives an API key with its secret again, to the same caller alone', async () => {
    const { createKey } = services.keys;
    const request = { name: 'ci', scopes: ['forms:read'], idempotencyKey: 'ci' };

    const first = await createKey(request, services.owner);
    const second = await createKey(request, services.owner);
    const others = await createKey(request, await services.givenCaller(['*']));

    expect(second).toEqual(first);
    expect(others.key?.id).not.toBe(first.key?.id);
  });

  it('gives a draft with its token again, with a key and without', async () => {
    const { createForm, activateForm } = services.forms;
    const request = { definition: definitionMessage(), idempotencyKey: 'draft' };

    const first = await createForm(request);
    const second = await createForm(request);
    const keyed = await createForm(request, services.owner);
    await expectFailure(
      createForm({ ...request, definition: definitionMessage({ name: 'Other' }) }),
      Reason.CONFLICT,
    );

    expect(second).toEqual(first);
    expect(keyed.form?.id).not.toBe(first.form?.id);
    const token = second.activationToken;
    await activateForm({ formId: first.form?.id ?? '', activationToken: token, email: 'owner@example.com' });
  });

  it('gives the secret of a webhook that a new definition introduced again', async () => {
    const published = await services.givenFormOf();
    const delivery = { channel: { case: 'webhook', value: { url: 'https://example.com/form' } } } as const;
    const definition = definitionMessage({ delivery });
    const request = { formId: published, definition, idempotencyKey: 'second version' };

    const first = await services.forms.publishFormVersion(request, services.owner);
    const second = await services.forms.publishFormVersion(request, services.owner);
    const third = await services.forms.publishFormVersion({ formId: published, definition }, services.owner);

    expect(first.webhookSecret).toMatch(/^whsec_/);
    expect(second).toEqual(first);
    expect(third.webhookSecret).toBe('');
  });

  it('stores one file of several calls, and refuses another file', async () => {
    const target = { case: 'formId', value: formId } as const;
    const file = { target, fieldId: 'cv', filename: 'cv.txt', idempotencyKey: 'cv' };
    const before = await count('uploads');
    const send = (content: string) =>
      services.uploads.createUpload({ ...file, content: Buffer.from(content) });

    const [first, second] = await Promise.all([send('mine'), send('mine')]);
    const third = await send('mine');
    await expectFailure(send('yours'), Reason.CONFLICT);

    expect([second, third]).toEqual([first, first]);
    expect(await count('uploads')).toBe(before + 1);
    // An hour later.
    await services.database.execute("update removals set due_at = now() - interval '1 second'");
    await services.removeFiles();
    const kept = await readdir(services.folder, { recursive: true });
    expect(kept.filter((name) => name.includes('upl_'))).toHaveLength(1);
  });

  it('makes one demo submission', async () => {
    const request = {
      answers: { name: 'Ann', email: 'ann@example.com', message: 'Hi' },
      idempotencyKey: 'demo',
    };

    const first = await services.submissions.createDemoSubmission(request);
    const second = await services.submissions.createDemoSubmission(request);

    expect(second).toEqual(first);
  });

  it('must be one', async () => {
    const { violations } = await expectFailure(
      services.webhooks.createWebhook({ ...hook, idempotencyKey: 'k'.repeat(256) }, services.owner),
      Reason.BAD_REQUEST,
    );

    expect(violations).toEqual(['idempotency_key: invalid_string']);
  });

  it.each(kept)('counts as the version before stored it: $name', async ({ name, send, content, other }) => {
    const given = { services, formId: await services.givenFormOf(cvField), key: `kept of ${name}` };
    const first = await send(given, {});
    const secret = first.secret === undefined ? null : services.secrets.seal(first.secret);
    await services.database.execute(
      `update idempotency_keys set request_fingerprint = $1, made_id = $2, secret = $3
       where created_at = (select max(created_at) from idempotency_keys)`,
      [fingerprint(content(given)), first.id, secret],
    );

    const second = await send(given, {});
    await expectFailure(send(given, other), Reason.CONFLICT);

    expect(second).toEqual(first);
  });

  it('of a session counts as the version before stored it, for the key that made it', async () => {
    const { createSession } = services.sessions;
    const request = {
      subject: { case: 'schema', value: { type: 'object', properties: { ok: { type: 'boolean' } } } },
      metadata: { n: 1 },
      callback: { url: 'https://example.com/', secret: 'a secret of mine' },
      notify: { email: 'ann@example.com', remindAfter: [{ seconds: 60n }] },
      idempotencyKey: 'kept of a session',
    } satisfies MessageInitShape<typeof CreateSessionRequestSchema>;
    const first = await createSession(request, services.owner);
    const secretInIt = pseudonymOf(services.secretKey, 'idempotency-secret', 'a secret of mine');
    const content = {
      expires_in: 3600,
      prefill: {},
      metadata: { n: 1 },
      callback: { url: 'https://example.com/', secret: secretInIt },
      notify: { email: 'ann@example.com', webhookId: '', message: '', remindAfter: [60] },
    };
    await services.database.execute(
      `update sessions set request_fingerprint = $1, request_key = null, idempotency_key = $2 where id = $3`,
      [fingerprint(content), request.idempotencyKey, first.session?.id],
    );

    const second = await createSession(request, services.owner);
    const other = await expectFailure(
      createSession({ ...request, metadata: { n: 2 } }, services.owner),
      Reason.CONFLICT,
    );
    const key = await services.givenKey({ project: 'default' });
    const others = await createSession(request, withKey(key));

    expect(second).toEqual(first);
    expect(other.sessionId).toBe(first.session?.id);
    expect(others.session?.id).not.toBe(first.session?.id);
  });

  it('is forgotten after a day', async () => {
    const request = { ...hook, idempotencyKey: 'old' };
    const first = await services.webhooks.createWebhook(request, services.owner);
    await services.database.execute(
      `update idempotency_keys set created_at = now() - interval '24 hours 1 second'
       where created_at = (select max(created_at) from idempotency_keys)`,
    );

    const { idempotency_keys: removed } = await removeOutdated(services.database, 100);
    const second = await services.webhooks.createWebhook(request, services.owner);

    expect(removed).toBe(1);
    expect(second.webhook?.id).not.toBe(first.webhook?.id);
  });
});

import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { WebhookEvent } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { fingerprint } from '../../src/domain/json/json-text.ts';
import { removeOutdated } from '../../src/store/removal/removals.ts';
import { engines } from '../support/database.ts';
import { definitionMessage, definitionOf } from '../support/definitions.ts';
import { expectFailure } from '../support/failures.ts';
import { startServices, type TestServices } from '../support/services.ts';

const hook = { url: 'https://example.com/hook', events: [WebhookEvent.SUBMISSION_CREATED] };
const cvField = [{ id: 'cv', type: 'file' }];

/** All that `definitionOf(cvField)` says. */
const withoutAnyDefault = {
  name: 'Test',
  slug: 'test',
  fields: cvField,
  delivery: { type: 'email' },
  settings: {},
};

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
    const [stored] = await services.database.select(
      'select secret from idempotency_keys where made_id = $1',
      [later.webhook?.id],
    );
    expect(services.secrets.open(String(stored?.secret))).toBe(later.secret);
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
    await services.keys.deleteKey({ keyId: first.key?.id ?? '' }, services.owner);
    await expectFailure(createKey(request, services.owner), Reason.NOT_FOUND);
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

  it('gives a draft again whose request was stored without some of the defaults', async () => {
    const { createForm } = services.forms;
    const request = { definition: definitionOf(cvField), idempotencyKey: 'stored' };
    const first = await createForm(request, services.owner);
    await services.database.execute(
      'update idempotency_keys set request_fingerprint = $2 where made_id = $1',
      [first.form?.id, fingerprint({ definition: withoutAnyDefault, secret: null })],
    );

    const second = await createForm(request, services.owner);
    const other = { ...request, definition: definitionOf(cvField, { review: true }) };
    await expectFailure(createForm(other, services.owner), Reason.CONFLICT);

    expect(second).toEqual(first);
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

  it('is forgotten after a day', async () => {
    const request = { ...hook, idempotencyKey: 'old' };
    const first = await services.webhooks.createWebhook(request, services.owner);
    await services.database.execute(
      "update idempotency_keys set created_at = now() - interval '24 hours 1 second' where made_id = $1",
      [first.webhook?.id],
    );

    const { idempotency_keys: removed } = await removeOutdated(services.database, 100);
    const second = await services.webhooks.createWebhook(request, services.owner);

    expect(removed).toBe(1);
    expect(second.webhook?.id).not.toBe(first.webhook?.id);
  });
});

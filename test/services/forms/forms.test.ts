import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import { CreatorType, FormStatus, FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { engines } from '../../support/database.ts';
import { definitionMessage } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const unknownForm = 'form_00000000000000000000000000';

describe.each(engines)('FormsService on %s', (engine) => {
  let services: TestServices;
  let now = Date.now();

  beforeAll(async () => {
    services = await startServices(engine, { now: () => now });
  });

  afterAll(() => services[Symbol.asyncDispose]());

  const forms = (key?: string) => createClient(FormsService, services.as(key));

  describe('ValidateForm', () => {
    it('fills in every default and gives back no secret', async () => {
      const definition = definitionMessage({
        delivery: {
          channel: { case: 'webhook', value: { url: 'https://example.com/hook', secret: 'eight chars' } },
        },
      });

      const { definition: normal } = await forms(services.key).validateForm({ definition });

      expect(normal?.fields[0]).toMatchObject({ id: 'email', label: 'Email', required: true, page: 1 });
      expect(normal?.delivery?.channel.value).toMatchObject({ url: 'https://example.com/hook', secret: '' });
      expect(normal?.settings).toMatchObject({ allowPartial: false });
    });

    it('names every problem at once', async () => {
      const definition = definitionMessage({ name: '', fields: [{ id: '1st', type: FormFieldType.SELECT }] });

      const failure = await failureOf(forms(services.key).validateForm({ definition }));

      expect(failure.reason).toBe('INVALID');
      expect(failure.violations).toEqual(
        expect.arrayContaining([
          ['definition.name', 'too_small'],
          ['definition.fields[0].id', 'invalid_string'],
          ['definition.fields[0].options', 'invalid_type'],
        ]),
      );
    });

    it('says that the definition is required', async () => {
      const failure = await failureOf(forms(services.key).validateForm({}));

      expect(failure.violations).toEqual([['definition', 'invalid_type']]);
    });

    it('refuses strangers, and keys without the scope', async () => {
      const weak = await services.givenKey({ scopes: ['submissions:read'] });

      expect(await failureOf(forms().validateForm({}))).toMatchObject({ reason: 'MISSING_KEY' });
      expect(await failureOf(forms(weak).validateForm({}))).toMatchObject({
        reason: 'INSUFFICIENT_SCOPE',
        requiredScope: 'forms:read',
      });
    });
  });

  describe('CreateForm', () => {
    it('makes a draft in the public project without a key', async () => {
      const { form, activationToken } = await forms().createForm({ definition: definitionMessage() });

      expect(form).toMatchObject({
        name: 'Contact',
        slug: 'contact',
        status: FormStatus.DRAFT,
        createdBy: { type: CreatorType.PUBLIC, keyId: '' },
        currentVersionId: '',
      });
      expect(activationToken).toMatch(/^[0-9A-Za-z]{43}$/);
      const { form: seen } = await forms(services.key).getForm({ formId: form?.id ?? '' });
      expect(seen?.createdBy?.type).toBe(CreatorType.PUBLIC);
    });

    it('keeps of the client without a key only a name that the secret key gives its network', async () => {
      await using network = await services.openNetwork();
      const anyone = createClient(FormsService, network.transport);
      const madeFrom = async (formId = '') => {
        const rows = await services.database.select('select created_from from forms where id = $1', [formId]);
        return rows[0]?.created_from;
      };

      const first = await anyone.createForm({ definition: definitionMessage() });
      const second = await anyone.createForm({ definition: definitionMessage() });
      const elsewhere = await forms().createForm({ definition: definitionMessage() });
      const { id } = await services.givenDraft(services.key);

      const name = await madeFrom(first.form?.id);
      expect(name).toMatch(/^[\w-]{22}$/);
      expect(await madeFrom(second.form?.id)).toBe(name);
      expect(await madeFrom(elsewhere.form?.id)).not.toBe(name);
      expect(await madeFrom(id)).toBeNull();
    });

    it('makes a draft in the project of the key', async () => {
      const key = await services.givenKey();

      const { id } = await services.givenDraft(key);

      const { form } = await forms(key).getForm({ formId: id });
      expect(form?.createdBy?.keyId).toMatch(/^key_/);
      expect(await failureOf(forms(services.key).getForm({ formId: id }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
    });

    it('stores only the hash of the token and the sealed secret', async () => {
      const secret = 'a secret of the author';
      const channel = { case: 'webhook', value: { url: 'https://example.com/', secret } } as const;

      const { id, token } = await services.givenDraft(services.key, { delivery: { channel } });

      const [row] = await services.database.select(
        'select row_to_json(f)::text as text from forms f where id = $1',
        [id],
      );
      expect(String(row?.text)).not.toContain(token);
      expect(String(row?.text)).not.toContain(secret);
    });

    it('mails nobody but the owner, and takes no files, without a key', async () => {
      const definition = definitionMessage({
        fields: [{ id: 'cv', type: FormFieldType.FILE }],
        delivery: { channel: { case: 'email', value: { to: ['someone@example.com'] } } },
      });

      const failure = await failureOf(forms().createForm({ definition }));

      expect(failure.violations.map(([path]) => path)).toEqual(
        expect.arrayContaining(['definition.fields[0].type', 'definition.delivery.email.to']),
      );
      await forms(services.key).createForm({ definition });
    });

    it('refuses a key that may not write forms, and one that is none', async () => {
      const weak = await services.givenKey({ scopes: ['forms:read'] });
      const request = { definition: definitionMessage() };

      expect(await failureOf(forms(weak).createForm(request))).toMatchObject({
        reason: 'INSUFFICIENT_SCOPE',
        requiredScope: 'forms:write',
      });
      expect(await failureOf(forms('hfs_nonsense').createForm(request))).toMatchObject({
        reason: 'INVALID_KEY',
      });
    });
  });

  describe('ActivateForm', () => {
    const email = 'owner@example.com';

    it('publishes the draft as its first version, once', async () => {
      const { id, token } = await services.givenDraft(services.key);

      const { form, webhookSecret } = await forms().activateForm({
        formId: id,
        activationToken: token,
        email,
      });
      const again = await failureOf(forms().activateForm({ formId: id, activationToken: token, email }));

      expect(form).toMatchObject({ id, status: FormStatus.PUBLISHED, ownerEmail: email });
      expect(form?.currentVersionId).toMatch(/^ver_/);
      expect(webhookSecret).toBe('');
      expect(again.reason).toBe('TOKEN_USED');
      expect(await eventsOf(id)).toEqual([['form.activated', { address: email }]]);
    });

    it('lets one of several that come at once publish', async () => {
      const { id, token } = await services.givenDraft(services.key);

      const calls = ['a', 'b', 'c', 'd'].map((who) =>
        forms().activateForm({ formId: id, activationToken: token, email: `${who}@example.com` }),
      );
      const outcomes = await Promise.allSettled(calls);

      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await eventsOf(id)).toHaveLength(1);
    });

    it('tells a wrong, a missing and a used token, an unknown form and a bad address apart', async () => {
      const { id, token } = await services.givenDraft(services.key);
      const activate = (formId: string, given: string, address = email) =>
        failureOf(forms().activateForm({ formId, activationToken: given, email: address }));

      expect(await activate(unknownForm, token)).toMatchObject({ reason: 'NOT_FOUND' });
      expect(await activate('slug', token)).toMatchObject({ reason: 'NOT_FOUND' });
      expect(await activate(id, '')).toMatchObject({
        reason: 'BAD_REQUEST',
        violations: [['activation_token', 'invalid_type']],
      });
      expect(await activate(id, 'wrong')).toMatchObject({ reason: 'INVALID_TOKEN' });
      expect(await activate(id, token, '')).toMatchObject({ violations: [['email', 'invalid_type']] });
      expect(await activate(id, token, 'a@b@c')).toMatchObject({ violations: [['email', 'invalid_string']] });
      expect(await eventsOf(id)).toEqual([]);
      await forms().activateForm({ formId: id, activationToken: token, email });
    });

    it('refuses a token after seven days', async () => {
      const before = now;
      now -= 7 * 86_400_000 + 1;
      const { id, token } = await services.givenDraft(services.key);
      now = before;

      expect(
        await failureOf(forms().activateForm({ formId: id, activationToken: token, email })),
      ).toMatchObject({
        reason: 'INVALID_TOKEN',
      });
      expect(await failureOf(forms().getActivation({ formId: id, activationToken: token }))).toMatchObject({
        reason: 'INVALID_TOKEN',
      });
    });

    it('asks further recipients to confirm', async () => {
      const to = ['b@example.com', 'c@example.com'];
      const delivery = { channel: { case: 'email', value: { to } } } as const;
      const { id, token } = await services.givenDraft(services.key, { delivery });

      await forms().activateForm({ formId: id, activationToken: token, email });

      expect(await eventsOf(id)).toContainEqual(['recipients.added', { addresses: to }]);
    });

    it('turns delivery by webhook into a webhook of the form, and shows a secret made for it once', async () => {
      const key = await services.givenKey();
      const { id, webhookSecret } = await services.givenForm(key, webhookTo('https://example.com/a'));

      const { webhooks } = await createClient(WebhooksService, services.as(key)).listWebhooks({});
      expect(webhookSecret).toMatch(/^whsec_/);
      expect(webhooks).toMatchObject([{ url: 'https://example.com/a', formId: id, active: true }]);
    });

    it('does not show a secret that the author gave', async () => {
      const { webhookSecret } = await services.givenForm(
        services.key,
        webhookTo('https://example.com/a', 'given secret'),
      );

      expect(webhookSecret).toBe('');
    });

    it('marks the webhook of a form made without a key', async () => {
      const form = await services.givenForm(undefined, webhookTo('https://example.com/a'));

      const rows = await services.database.select('select keyless from webhooks where form_id = $1', [
        form.id,
      ]);
      expect(rows).toEqual([{ keyless: true }]);
    });
  });

  describe('GetActivation', () => {
    it('names the draft to whoever has its token, and changes nothing', async () => {
      const { id, token } = await services.givenDraft(services.key);

      await forms().getActivation({ formId: id, activationToken: token });
      const { formName } = await forms().getActivation({ formId: id, activationToken: token });

      expect(formName).toBe('Contact');
      expect(await failureOf(forms().getActivation({ formId: id, activationToken: 'wrong' }))).toMatchObject({
        reason: 'INVALID_TOKEN',
      });
    });
  });

  describe('ListForms', () => {
    it('lists the forms of the project page by page, newest first, without definitions', async () => {
      const key = await services.givenKey();
      const ids: string[] = [];
      for (const _ of [1, 2, 3]) {
        now += 1;
        ids.unshift((await services.givenDraft(key)).id);
      }

      const first = await forms(key).listForms({ pageSize: 2 });
      const second = await forms(key).listForms({ pageSize: 2, pageToken: first.nextPageToken });

      expect([...first.forms, ...second.forms].map(({ id }) => id)).toEqual(ids);
      expect(second.nextPageToken).toBe('');
      expect(first.forms[0]?.definition).toBeUndefined();
    });

    it('refuses a negative size, a made-up token and a filter that nothing fits', async () => {
      const list = (request: object) => failureOf(forms(services.key).listForms(request));

      expect(await list({ pageSize: -1 })).toMatchObject({
        reason: 'BAD_REQUEST',
        violations: [['page_size', 'too_small']],
      });
      expect(await list({ pageToken: 'x\0' })).toMatchObject({
        reason: 'BAD_REQUEST',
        violations: [['page_token', 'invalid_string']],
      });
      expect(await list({ slug: 'x'.repeat(1_001) })).toMatchObject({
        reason: 'BAD_REQUEST',
        violations: [['slug', 'too_big']],
      });
      expect(await failureOf(forms().listForms({}))).toMatchObject({ reason: 'MISSING_KEY' });
    });
  });

  describe('PublishFormVersion', () => {
    it('makes the next version, and reuses one that had the same definition', async () => {
      const form = await services.givenForm(services.key);
      const formId = form.id;
      const publish = (name: string) =>
        forms(services.key).publishFormVersion({ formId, definition: definitionMessage({ name }) });

      const second = await publish('Second');
      const again = await publish('Second');
      const first = await publish('Contact');

      expect(second.version?.number).toBe(2);
      expect(second.form).toMatchObject({ name: 'Second', currentVersionId: second.version?.id });
      expect(again.version?.id).toBe(second.version?.id);
      expect(first.version).toMatchObject({ number: 1, id: form.versionId });
      const { form: read } = await forms(services.key).getForm({ formId });
      expect(read).toMatchObject({ name: 'Contact', definition: { name: 'Contact' } });
    });

    it('closes the circuit breaker of its webhook by another URL only', async () => {
      const { id: formId } = await services.givenForm(services.key, webhookTo('https://example.com/a'));
      await services.database.execute(
        `update webhooks set failures_in_row = 9, failing_since = now(), open_until = now() + interval '1 hour'
         where form_id = $1`,
        [formId],
      );
      const publish = async (name: string, url: string) => {
        const definition = definitionMessage({ name, ...webhookTo(url) });
        await forms(services.key).publishFormVersion({ formId, definition });
        const [row] = await services.database.select(
          'select url, failures_in_row, open_until > now() as open from webhooks where form_id = $1',
          [formId],
        );
        return row;
      };

      const same = await publish('Same', 'https://example.com/a');
      const other = await publish('Other', 'https://example.com/b');

      expect(same).toEqual({ url: 'https://example.com/a', failures_in_row: 9, open: true });
      expect(other).toEqual({ url: 'https://example.com/b', failures_in_row: 0, open: false });
    });

    it('lets the webhook follow the definition', async () => {
      const key = await services.givenKey();
      const webhooks = createClient(WebhooksService, services.as(key));
      const form = await services.givenForm(key, webhookTo('https://example.com/a'));
      const publish = (definition: object) =>
        forms(key).publishFormVersion({ formId: form.id, definition: definitionMessage(definition) });

      const moved = await publish(webhookTo('https://example.com/b', 'another secret'));
      const [webhook] = (await webhooks.listWebhooks({})).webhooks;
      await publish({});
      const [off] = (await webhooks.listWebhooks({})).webhooks;
      await publish(webhookTo('https://example.com/c'));
      const [on] = (await webhooks.listWebhooks({})).webhooks;

      expect(moved.webhookSecret).toBe('');
      expect(webhook).toMatchObject({ url: 'https://example.com/b', active: true });
      expect(off).toMatchObject({ id: webhook?.id, active: false });
      expect(on).toMatchObject({ id: webhook?.id, url: 'https://example.com/c', active: true });
      const [row] = await services.database.select('select secret from webhooks where id = $1', [
        webhook?.id,
      ]);
      expect(services.secrets.open(String(row?.secret))).toBe('another secret');
    });

    it('shows the secret of a webhook that a new definition brings', async () => {
      const form = await services.givenForm(services.key);

      const { webhookSecret } = await forms(services.key).publishFormVersion({
        formId: form.id,
        definition: definitionMessage(webhookTo('https://example.com/new')),
      });

      expect(webhookSecret).toMatch(/^whsec_/);
    });

    it('asks only the recipients that a definition adds', async () => {
      const to = (...addresses: string[]) => ({
        delivery: { channel: { case: 'email' as const, value: { to: addresses } } },
      });
      const form = await services.givenForm(services.key, to('b@example.com'));
      const formId = form.id;

      const definition = definitionMessage(to('b@example.com', 'c@example.com'));
      await forms(services.key).publishFormVersion({ formId, definition });

      expect(await eventsOf(formId)).toContainEqual(['recipients.added', { addresses: ['c@example.com'] }]);
    });

    it('keeps a form made without a key to its limits', async () => {
      const form = await services.givenForm(undefined);
      const definition = definitionMessage({ fields: [{ id: 'cv', type: FormFieldType.FILE }] });

      const failure = await failureOf(
        forms(services.key).publishFormVersion({ formId: form.id, definition }),
      );

      expect(failure.violations.map(([path]) => path)).toEqual(['definition.fields[0].type']);
    });

    it('refuses drafts, archived forms, other projects, bad definitions and weak keys', async () => {
      const { id: draft } = await services.givenDraft(services.key);
      const form = await services.givenForm(services.key);
      const formId = form.id;
      const definition = definitionMessage();
      const publish = (id: string, key = services.key) =>
        failureOf(forms(key).publishFormVersion({ formId: id, definition }));

      expect(await publish(draft)).toMatchObject({ reason: 'CONFLICT' });
      expect(await publish(formId, await services.givenKey())).toMatchObject({ reason: 'NOT_FOUND' });
      expect(await publish(formId, await services.givenKey({ scopes: ['forms:read'] }))).toMatchObject({
        reason: 'INSUFFICIENT_SCOPE',
      });
      expect(await failureOf(forms(services.key).publishFormVersion({ formId }))).toMatchObject({
        reason: 'INVALID',
      });
      await forms(services.key).archiveForm({ formId });
      expect(await publish(formId)).toMatchObject({ reason: 'ARCHIVED' });
    });
  });

  describe('ArchiveForm', () => {
    it('ends the form, again without change', async () => {
      const form = await services.givenForm(services.key);

      const first = await forms(services.key).archiveForm({ formId: form.id });
      const second = await forms(services.key).archiveForm({ formId: form.id });

      expect(first.form?.status).toBe(FormStatus.ARCHIVED);
      expect(second.form?.archiveTime).toEqual(first.form?.archiveTime);
    });

    it('refuses strangers and forms of other projects', async () => {
      const form = await services.givenForm(services.key);
      const formId = form.id;

      expect(await failureOf(forms().archiveForm({ formId }))).toMatchObject({ reason: 'MISSING_KEY' });
      expect(await failureOf(forms(await services.givenKey()).archiveForm({ formId }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
      const { form: read } = await forms(services.key).getForm({ formId });
      expect(read?.status).toBe(FormStatus.PUBLISHED);
    });
  });

  describe('ChangeFormOwner', () => {
    it('asks the address, and leaves the owner as it is', async () => {
      const form = await services.givenForm(services.key);
      const formId = form.id;

      const changed = await forms(services.key).changeFormOwner({ formId, email: 'next@example.com' });

      expect(changed.form?.ownerEmail).toBe('owner@example.com');
      expect(await eventsOf(formId)).toContainEqual([
        'owner.change_requested',
        { address: 'next@example.com' },
      ]);
    });

    it('refuses a bad address, a draft and the form of another project', async () => {
      const form = await services.givenForm(services.key);
      const { id: draft } = await services.givenDraft(services.key);
      const change = (formId: string, email: string, key = services.key) =>
        failureOf(forms(key).changeFormOwner({ formId, email }));

      expect(await change(form.id, 'a@b\r\nBcc: c@d')).toMatchObject({
        violations: [['email', 'invalid_string']],
      });
      expect(await change(draft, 'next@example.com')).toMatchObject({ reason: 'CONFLICT' });
      expect(await change(form.id, 'next@example.com', await services.givenKey())).toMatchObject({
        reason: 'NOT_FOUND',
      });
    });
  });

  describe('GetAgentSchema', () => {
    it('describes a draft and a published form', async () => {
      const { id } = await services.givenDraft(services.key);
      const form = await services.givenForm(services.key);

      const draft = await forms(services.key).getAgentSchema({ formId: id, includeDefinition: true });
      const published = await forms(services.key).getAgentSchema({
        formId: form.id,
        includeDefinition: true,
      });

      expect(draft.form).toMatchObject({ currentVersionId: '', definition: { name: 'Contact' } });
      expect(published.form?.currentVersionId).toBe(form.versionId);
      expect(published.jsonSchema).toMatchObject({ type: 'object', required: ['email'] });
    });

    it('shows nothing of owner, maker and receivers to callers without a key', async () => {
      await using open = await startServices(engine, { settings: { requireApiKey: false } });
      const form = await open.givenForm(open.key);
      const withKey = await createClient(FormsService, open.as(open.key)).getAgentSchema({
        formId: form.id,
        includeDefinition: true,
      });

      const { form: shown, jsonSchema } = await createClient(FormsService, open.as()).getAgentSchema({
        formId: form.id,
        includeDefinition: true,
      });

      expect(shown).toMatchObject({ id: form.id, ownerEmail: '' });
      expect(shown?.createdBy).toBeUndefined();
      expect(shown?.createTime).toBeUndefined();
      expect(shown?.definition?.delivery).toBeUndefined();
      expect(shown?.definition?.fields).toEqual(withKey.form?.definition?.fields);
      expect(jsonSchema).toEqual(withKey.jsonSchema);
      expect(withKey.form?.createdBy?.keyId).toMatch(/^key_/);
    });

    it('does not describe the form of another project', async () => {
      const { id } = await services.givenDraft(services.key);

      expect(await failureOf(forms(await services.givenKey()).getAgentSchema({ formId: id }))).toMatchObject({
        reason: 'NOT_FOUND',
      });
    });
  });

  async function eventsOf(formId: string): Promise<[unknown, unknown][]> {
    const rows = await services.database.select(
      'select type, body from events where form_id = $1 order by id, type',
      [formId],
    );
    return rows.map(({ type, body }) => [type, JSON.parse(String(body))]);
  }
});

function webhookTo(url: string, secret = '') {
  return { delivery: { channel: { case: 'webhook' as const, value: { url, secret } } } };
}

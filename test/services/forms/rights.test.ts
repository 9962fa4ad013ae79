import { createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { oneEngine } from '../../support/database.ts';
import { type DefinitionInit, definitionMessage } from '../../support/definitions.ts';
import { failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';

const project = 'rights';
const days = (retentionDays: number): DefinitionInit => ({ settings: { retentionDays } });
const toWebhook = (url: string, secret = ''): DefinitionInit => ({
  delivery: { channel: { case: 'webhook', value: { url, secret } } },
});
const toMailbox = (address: string): DefinitionInit => ({
  delivery: { channel: { case: 'email', value: { to: [address] } } },
});
const hook = 'https://hooks.example.com/services/T0/secret';

describe.each(oneEngine('pglite'))(
  'who may give rights over the answers of a published form, on %s',
  (engine) => {
    let services: TestServices;

    beforeAll(async () => {
      services = await startServices(engine);
    });
    afterAll(() => services[Symbol.asyncDispose]());

    const formsOf = async (...scopes: string[]) => {
      const key = await services.givenKey({ scopes, project });
      return createClient(FormsService, services.as(key));
    };
    const givenForm = async (definition?: DefinitionInit) =>
      (await services.givenForm(await services.givenKey({ project }), definition)).id;
    /** What a key lacks to publish a definition; `published` if nothing. */
    const lackedToPublish = async (formId: string, definition: DefinitionInit, ...scopes: string[]) => {
      const forms = await formsOf('forms:write', ...scopes);
      const published = forms.publishFormVersion({ formId, definition: definitionMessage(definition) });
      return published.then(
        () => 'published',
        async () => (await failureOf(published)).requiredScope,
      );
    };

    it('an owner is changed by keys that read and delete answers', async () => {
      const formId = await givenForm();
      const change = async (...scopes: string[]) =>
        (await formsOf('forms:write', ...scopes)).changeFormOwner({ formId, email: 'eve@example.com' });

      expect(await failureOf(change())).toMatchObject({
        reason: 'INSUFFICIENT_SCOPE',
        requiredScope: 'submissions:read',
        message:
          'The API key lacks the scope submissions:read, which is needed to change who owns the answers of a published form',
      });
      expect(await failureOf(change('submissions:read'))).toMatchObject({
        requiredScope: 'submissions:delete',
      });
      expect((await change('submissions:read', 'submissions:delete')).form?.id).toBe(formId);
    });

    it('where answers go is changed by keys that read answers or manage webhooks', async () => {
      const formId = await givenForm();

      expect(await lackedToPublish(formId, toWebhook(hook))).toBe('webhooks:write');
      expect(await lackedToPublish(formId, toMailbox('eve@example.com'))).toBe('webhooks:write');
      expect(await lackedToPublish(formId, { description: 'New' })).toBe('published');
      expect(await lackedToPublish(formId, toMailbox('ann@example.com'), 'submissions:read')).toBe(
        'published',
      );
      expect(await lackedToPublish(formId, toWebhook(hook, 'a secret of mine'), 'webhooks:write')).toBe(
        'published',
      );
      expect(await lackedToPublish(formId, toWebhook('https://eve.example.com'))).toBe('webhooks:write');
      expect(await lackedToPublish(formId, toWebhook(hook, 'a secret of others'))).toBe('webhooks:write');
      expect(await lackedToPublish(formId, toWebhook(hook, 'a secret of mine'))).toBe('published');
    });

    it('answers that are there are kept less long by keys that delete them', async () => {
      const formId = await givenForm(days(30));
      expect(await lackedToPublish(formId, days(20))).toBe('published');
      await services.submissions.createSubmission({
        formId,
        answers: { email: 'ann@example.com' },
      });

      expect(await lackedToPublish(formId, days(1))).toBe('submissions:delete');
      expect(await lackedToPublish(formId, days(21))).toBe('published');
      expect(await lackedToPublish(formId, {})).toBe('published');
      expect(await lackedToPublish(formId, days(3650))).toBe('submissions:delete');
      expect(await lackedToPublish(formId, days(1), 'submissions:delete')).toBe('published');
    });

    it('a URL is read by keys that read webhooks, and kept by a version without it', async () => {
      const formId = await givenForm(toWebhook(hook));
      const forms = await formsOf('forms:write', 'forms:read');
      const delivery = async () =>
        (await forms.getForm({ formId })).form?.definition?.delivery?.channel.value;

      const { form } = await forms.getForm({ formId });
      expect(form?.definition?.delivery?.channel.value).toMatchObject({
        url: '',
        urlHost: 'hooks.example.com',
      });
      const { version } = await forms.getFormVersion({ formId, number: 1 });
      expect(JSON.stringify(version?.definition)).not.toContain(hook);
      const { form: described } = await forms.getAgentSchema({ formId, includeDefinition: true });
      expect(JSON.stringify(described?.definition)).not.toContain(hook);

      const edited = { ...form?.definition, description: 'Edited' } as DefinitionInit;
      const { form: published } = await forms.publishFormVersion({
        formId,
        definition: definitionMessage(edited),
      });

      expect(published?.definition).toMatchObject({ description: 'Edited' });
      expect(JSON.stringify(published?.definition)).not.toContain(hook);
      expect(await delivery()).toMatchObject({ url: '', urlHost: 'hooks.example.com' });
      const reader = await formsOf('forms:read', 'webhooks:read');
      const shown = (await reader.getForm({ formId })).form?.definition?.delivery?.channel.value;
      expect(shown).toMatchObject({ url: hook, urlHost: '' });
    });

    it('a new form, and one that goes to mailboxes, needs the URL', async () => {
      const formId = await givenForm();
      const forms = await formsOf('*');
      const definition = definitionMessage(toWebhook(''));

      for (const call of [forms.createForm({ definition }), forms.publishFormVersion({ formId, definition })])
        expect((await failureOf(call)).violations).toEqual([
          ['definition.delivery.webhook.url', 'invalid_type'],
        ]);
    });
  },
);

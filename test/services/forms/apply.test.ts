import { ConnectError, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChangeKind, Compatibility } from '../../../gen/headlessforms/v1/changes_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { ApplyOutcome, FormStatus, FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { WebhooksService } from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { lockForm } from '../../../src/store/forms/forms.ts';
import { engines } from '../../support/database.ts';
import { type DefinitionInit, definitionMessage } from '../../support/definitions.ts';
import { expectFailure, failureOf } from '../../support/failures.ts';
import { startServices, type TestServices } from '../../support/services.ts';
import { until } from '../../support/until.ts';

const owner = 'owner@example.com';
const hook = (secret = ''): DefinitionInit => ({
  delivery: { channel: { case: 'webhook', value: { url: 'https://hooks.example.com/in', secret } } },
});

describe.each(engines)('a form as a file has it, on %s', (engine) => {
  let services: TestServices;
  let project: string;
  let publisher: string;
  let keys = 0;

  beforeAll(async () => {
    services = await startServices(engine);
    project = 'files';
    publisher = await services.givenKey({ scopes: ['forms:publish'], project });
  });
  afterAll(() => services[Symbol.asyncDispose]());

  const formsOf = (key: string | undefined) => createClient(FormsService, services.as(key));
  const newKey = () => {
    keys += 1;
    return `form-${keys}`;
  };
  const apply = (key: string, definition: DefinitionInit = {}, options: object = {}, as = publisher) =>
    formsOf(as).applyForm({ key, definition: definitionMessage(definition), owner, ...options });
  const everything = () => services.givenKey({ project });

  /**
   * Calls at once, which get the form's row in this order: another transaction holds it until both wait for it. The
   * embedded database runs one transaction after the other.
   */
  async function oneAfterTheOther<A, B>(formId: string, first: () => Promise<A>, second: () => Promise<B>) {
    const { database } = services;
    if (engine === 'pglite') return Promise.allSettled([first(), second()]);
    const waiting = (count: number) =>
      until(async () => {
        const [row] = await database.select(
          `select count(*)::int as waiting from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return row?.waiting === count;
      });
    const calls = await database.transaction(async (tx) => {
      await lockForm(tx, formId);
      const one = first();
      await waiting(1);
      const other = second();
      await waiting(2);
      return [one, other] as const;
    });
    return Promise.allSettled(calls);
  }

  it('is made and published, once, without an activation mail', async () => {
    const key = newKey();

    const made = await apply(key, {}, { managedBy: 'forms/' });
    const again = await apply(key, {}, { managedBy: 'forms/' });

    expect(made).toMatchObject({
      outcome: ApplyOutcome.CREATED,
      form: { key, managedBy: 'forms/', status: FormStatus.PUBLISHED, ownerEmail: owner },
      version: { number: 1, current: true },
    });
    expect(again).toMatchObject({ outcome: ApplyOutcome.UNCHANGED, version: { id: made.version?.id } });
    const asAll = formsOf(await everything());
    expect((await asAll.listForms({ key })).forms.map(({ id }) => id)).toEqual([made.form?.id]);
    expect((await asAll.listForms({ managedBy: 'elsewhere/' })).forms).toEqual([]);
  });

  it('gets a new version where it differs, and says what changed', async () => {
    const key = newKey();
    const made = await apply(key);

    const changed = await apply(key, { name: 'Other' });

    expect(changed).toMatchObject({
      outcome: ApplyOutcome.UPDATED,
      form: { id: made.form?.id, name: 'Other' },
      version: { number: 2 },
      changes: [{ path: 'name', kind: ChangeKind.TEXT_CHANGED }],
    });
  });

  it('is one form with one version when it is applied by several at once', async () => {
    const key = newKey();

    const applied = await Promise.all(Array.from({ length: 5 }, () => apply(key)));

    const outcomes = applied.map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === ApplyOutcome.CREATED)).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === ApplyOutcome.UNCHANGED)).toHaveLength(4);
    expect(new Set(applied.map(({ version }) => version?.id)).size).toBe(1);
  });

  it('is published once when its token is used at the same time', async () => {
    const key = newKey();
    const all = formsOf(await everything());
    const { form, activationToken } = await all.createForm({ definition: definitionMessage(), key });
    const formId = form?.id ?? '';

    const [activated, applied] = await oneAfterTheOther(
      formId,
      () => all.activateForm({ formId, activationToken, email: owner }),
      () => apply(key),
    );

    const isActivated = activated.status === 'fulfilled';
    const outcome = isActivated ? ApplyOutcome.UNCHANGED : ApplyOutcome.PUBLISHED;
    expect(applied).toMatchObject({ value: { outcome, version: { number: 1 } } });
    if (!isActivated) expect(ConnectError.from(activated.reason).message).toContain('has been used');
    expect(isActivated || engine === 'pglite').toBe(true);
    expect((await all.listFormVersions({ formId })).versions).toHaveLength(1);
  });

  it('is what the later call wants when it is published otherwise at the same time', async () => {
    const key = newKey();
    const all = formsOf(await everything());
    const formId = (await apply(key, { name: 'First' })).form?.id ?? '';

    const [published, applied] = await oneAfterTheOther(
      formId,
      () => all.publishFormVersion({ formId, definition: definitionMessage({ name: 'Other' }) }),
      () => apply(key, { name: 'First' }),
    );

    expect([published.status, applied.status]).toEqual(['fulfilled', 'fulfilled']);
    const isLast = applied.status === 'fulfilled' && applied.value.outcome === ApplyOutcome.UPDATED;
    expect((await all.getForm({ formId })).form?.name).toBe(isLast ? 'First' : 'Other');
    expect(isLast || engine === 'pglite').toBe(true);
  });

  it('publishes a draft, whose token is void from then on', async () => {
    const key = newKey();
    const all = formsOf(await everything());
    const { form, activationToken } = await all.createForm({ definition: definitionMessage(), key });

    const applied = await apply(key);

    expect(applied).toMatchObject({ outcome: ApplyOutcome.PUBLISHED, form: { id: form?.id } });
    const activation = services.forms.activateForm({
      formId: form?.id ?? '',
      activationToken,
      email: owner,
    });
    expect((await failureOf(activation)).reason).toBe('TOKEN_USED');
  });

  it('says where the mails of a new form would go to nobody', async () => {
    const refused = await expectFailure(apply(newKey(), {}, { owner: '' }), Reason.INVALID);
    const to: DefinitionInit = {
      delivery: { channel: { case: 'email', value: { to: ['team@example.com'] } } },
    };
    const mailed = await apply(newKey(), to, { owner: '' });
    const hooked = await apply(newKey(), hook(), { owner: '' });

    expect(refused.violations).toEqual(['owner: invalid_type']);
    expect([mailed.form?.ownerEmail, hooked.form?.ownerEmail]).toEqual(['', '']);
    expect(hooked.webhookSecret).toMatch(/^whsec_/);
  });

  it('keeps a secret that the file leaves out, and rotates another', async () => {
    const key = newKey();
    const all = await everything();
    const made = await apply(key, hook('a secret of mine'));
    const secretsOf = async () => {
      const { webhooks } = await createClient(WebhooksService, services.as(all)).listWebhooks({});
      return webhooks.filter(({ formId }) => formId === made.form?.id).length;
    };

    const without = await apply(key, hook());
    const same = await apply(key, hook('a secret of mine'));
    const other = await apply(key, hook('another secret'), {}, all);

    expect([without, same, other].map(({ outcome }) => outcome)).toEqual([
      ApplyOutcome.UNCHANGED,
      ApplyOutcome.UNCHANGED,
      ApplyOutcome.UPDATED,
    ]);
    expect(await secretsOf()).toBe(1);
  });

  it('gives no right over answers that the key lacks', async () => {
    const key = newKey();
    const made = await apply(key, { settings: { retentionDays: 30 } });
    await services.submissions.createSubmission({
      formId: made.form?.id ?? '',
      answers: { email: 'ada@example.com' },
    });
    const lacked = async (definition: DefinitionInit, options = {}) =>
      (await failureOf(apply(key, definition, options))).requiredScope;
    const settings = { retentionDays: 30 };

    expect(await lacked(hook())).toBe('webhooks:write');
    expect(await lacked({ settings: { retentionDays: 1 } })).toBe('submissions:delete');
    expect(await lacked({ settings }, { owner: 'eve@example.com' })).toBe('submissions:read');
    const { form } = await formsOf(await everything()).getForm({ formId: made.form?.id ?? '' });
    expect(form?.currentVersionId).toBe(made.version?.id);
  });

  it('keeps what its current version promises', async () => {
    const key = newKey();
    const settings = { compatibility: Compatibility.BACKWARD };
    await apply(key, { settings });
    const broken: DefinitionInit = { settings, fields: [{ id: 'other', type: 1 }] };

    expect((await failureOf(apply(key, broken))).reason).toBe('BREAKING_CHANGE');
    expect((await apply(key, broken, { allowBreaking: true })).version?.breaking).toBe(true);
  });

  it('ends with its form', async () => {
    const key = newKey();
    const all = formsOf(await everything());
    const made = await apply(key);
    await all.archiveForm({ formId: made.form?.id ?? '' });

    expect((await failureOf(apply(key))).reason).toBe('ARCHIVED');
    await all.deleteForm({ formId: made.form?.id ?? '' });
    expect((await apply(key)).outcome).toBe(ApplyOutcome.CREATED);
  });

  it('is named once, by whoever has a key, and by nobody else', async () => {
    const all = formsOf(await everything());
    const [taken, key] = [newKey(), newKey()];
    await apply(taken);
    const { id } = await services.givenForm(await everything());
    const keyless = await services.givenForm(undefined);
    const byStranger = services.forms.createForm({ definition: definitionMessage(), key: 'mine' });
    const asDefault = formsOf(services.key);

    expect((await expectFailure(byStranger, Reason.INVALID)).violations).toEqual(['key: invalid_string']);
    expect(
      (await expectFailure(all.updateForm({ formId: id, key: 'Not a key' }), Reason.INVALID)).violations,
    ).toEqual(['key: invalid_string']);
    expect((await failureOf(all.updateForm({ formId: id, key: taken }))).reason).toBe('CONFLICT');
    expect((await all.updateForm({ formId: id, key })).form?.key).toBe(key);
    expect((await all.updateForm({ formId: id, key, managedBy: 'forms/' })).form?.managedBy).toBe('forms/');
    expect((await failureOf(all.updateForm({ formId: id, key: newKey() }))).reason).toBe('CONFLICT');
    expect((await failureOf(asDefault.updateForm({ formId: keyless.id, key }))).reason).toBe('CONFLICT');
    expect((await failureOf(all.updateForm({ formId: 'a\0b', key }))).reason).toBe('NOT_FOUND');
    const another = all.createForm({ definition: definitionMessage(), key: taken });
    expect((await failureOf(another)).reason).toBe('CONFLICT');
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  deleteWebhook,
  findDefinitionWebhook,
  findWebhook,
  listWebhooks,
  rotateWebhookSecret,
  secretsAt,
  updateWebhook,
} from '../../../src/store/webhooks/webhooks.ts';
import { engines, openTestDatabase, type TestDatabase } from '../../support/database.ts';
import { givenWebhook } from '../given.ts';

const DAY_MS = 86_400_000;

describe.each(engines)('webhooks on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('are seen and changed by their own project alone', async () => {
    const webhook = await givenWebhook(database, { projectId: 'prj_seen', events: ['session.expired', 'a'] });

    expect({ ...(await findWebhook(database, 'prj_seen', webhook.id)) }).toEqual(webhook);
    expect(await findWebhook(database, 'prj_two', webhook.id)).toBeNull();
    expect(await updateWebhook(database, 'prj_two', webhook.id, { active: false })).toBeNull();
    expect(await deleteWebhook(database, 'prj_two', webhook.id)).toBe(false);
    expect((await listWebhooks(database, 'prj_two', { limit: 5 })).items).toEqual([]);
    expect((await listWebhooks(database, 'prj_seen', { limit: 5 })).items).toMatchObject([{ active: true }]);
  });

  it('keep what a change does not name', async () => {
    const webhook = await givenWebhook(database);

    const changed = await updateWebhook(database, 'prj_one', webhook.id, {
      events: ['b'],
      disabledReason: 'gone',
    });

    expect({ ...changed }).toEqual({ ...webhook, events: ['b'], disabledReason: 'gone' });
  });

  it('are gone for every reader once deleted, and make room for another of the definition', async () => {
    const webhook = await givenWebhook(database, { formId: 'form_own', fromDefinition: true });
    expect(await findDefinitionWebhook(database, 'form_own')).toMatchObject({ id: webhook.id });
    await expect(givenWebhook(database, { formId: 'form_own', fromDefinition: true })).rejects.toThrow();

    expect(await deleteWebhook(database, 'prj_one', webhook.id)).toBe(true);

    expect(await findWebhook(database, 'prj_one', webhook.id)).toBeNull();
    expect(await findDefinitionWebhook(database, 'form_own')).toBeNull();
    expect(await deleteWebhook(database, 'prj_one', webhook.id)).toBe(false);
    await expect(givenWebhook(database, { formId: 'form_own', fromDefinition: true })).resolves.toBeDefined();
  });

  it('sign with a new secret at once and name the old one for a day', async () => {
    const webhook = await givenWebhook(database, { secret: 'old' });
    const now = new Date();

    const rotated = await rotate(webhook.id, 'new', now, now);

    expect(rotated && secretsAt(rotated, now)).toMatchObject({ secret: 'new', previousSecret: 'old' });
    const after = new Date(now.getTime() + DAY_MS);
    expect(rotated && secretsAt(rotated, after)).toMatchObject({ secret: 'new', previousSecret: null });
  });

  it('change over to a planned secret at its time, and go on from there', async () => {
    const webhook = await givenWebhook(database, { secret: 'old' });
    const now = new Date();
    const then = new Date(now.getTime() + 3_600_000);

    await rotate(webhook.id, 'dropped', then, now);
    const planned = await rotate(webhook.id, 'planned', then, now);
    const next = await rotate(webhook.id, 'next', then, then);

    expect(planned && secretsAt(planned, now)).toMatchObject({ secret: 'old', previousSecret: null });
    expect(planned && secretsAt(planned, then)).toMatchObject({ secret: 'planned', previousSecret: 'old' });
    expect(planned && secretsAt(planned, new Date(then.getTime() + DAY_MS))).toMatchObject({
      previousSecret: null,
    });
    expect(next && secretsAt(next, then)).toMatchObject({ secret: 'next', previousSecret: 'planned' });
  });

  function rotate(webhookId: string, secret: string, effectiveAt: Date, now: Date) {
    const rotation = { projectId: 'prj_one', webhookId, secret, effectiveAt, now };
    return database.transaction((tx) => rotateWebhookSecret(tx, rotation));
  }
});

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createDelivery, type DeliverySettings } from '../../src/delivery/index.ts';
import type { DeliveryOptions } from '../../src/delivery/options.ts';
import type { StoredOrigin } from '../../src/domain/answers/provenance.ts';
import type { FormDefinition } from '../../src/domain/definition/definition.ts';
import { eventTypes } from '../../src/domain/events/index.ts';
import { newId } from '../../src/domain/ids.ts';
import type { JsonObject } from '../../src/domain/json/json.ts';
import { parseSecretKey, SecretBox } from '../../src/domain/secrets/secret-key.ts';
import { AuditWriter } from '../../src/store/audit/audit-writer.ts';
import type { Database } from '../../src/store/database/database.ts';
import { type LoggedDelivery, listDeliveries } from '../../src/store/deliveries/log.ts';
import { settleDeliveries } from '../../src/store/deliveries/settle.ts';
import { insertEvents } from '../../src/store/events.ts';
import { type Form, FormEntity } from '../../src/store/forms/forms.ts';
import { VersionEntity } from '../../src/store/forms/versions.ts';
import { createSubmissionWriter, type WriterOptions } from '../../src/store/submissions/submission-writer.ts';
import { type Webhook, WebhookEntity } from '../../src/store/webhooks/webhooks.ts';
import { until } from './until.ts';

/** Runs delivery on a database until the end of the scope. */
export function startDelivery(database: Database, given: GivenDelivery = {}) {
  const { settings, ...rest } = given;
  const log = pino({ level: process.env.TEST_LOG ?? 'silent' });
  const options: DeliveryOptions = {
    database,
    auditWriter: new AuditWriter({ database, now: given.now ?? Date.now, log }),
    secrets: testBox,
    secretKey: testKey,
    now: Date.now,
    random: () => 0,
    log,
    settings: {
      schedule: [0, 0.05, 0.05],
      concurrency: 64,
      allowPrivate: true,
      baseUrl: 'https://forms.example.com',
      hostedUrl: 'https://forms.example.com',
      mailFrom: 'forms@example.com',
      ownerConfirmation: true,
      mailDir: mkdtempSync(join(tmpdir(), 'forms-mail-')),
      notifyMailboxesPerKey: 50,
      retentionDays: 90,
      auditRetentionDays: 365,
      ...settings,
    },
    ...rest,
  };
  const delivery = createDelivery(options);
  delivery.start();
  return { ...delivery, options, [Symbol.asyncDispose]: () => delivery.stop(5_000) };
}

/** Always the same, so that processes of a test can read each other's rows. */
export const testKey = parseSecretKey('07'.repeat(32));
const testBox = new SecretBox(testKey);

/** The secret of every webhook of `givenWebhook`. */
export const testSecret = `whsec_${Buffer.from('a secret of 24 bytes ...').toString('base64')}`;

/** A published form with one text and one email field. */
export async function givenForm(
  database: Database,
  given: Partial<Form> & { definition?: Partial<FormDefinition> } = {},
) {
  const at = new Date();
  const { definition: changes, ...rest } = given;
  const definition: FormDefinition = { ...plainDefinition, ...changes };
  const versionId = newId('ver', Date.now());
  const form: Form = {
    id: newId('form', Date.now()),
    projectId: newId('prj', Date.now()),
    name: definition.name,
    slug: definition.slug,
    status: 'published',
    createdBy: 'key_1',
    createdFrom: null,
    draftDefinition: null,
    draftSecret: null,
    currentVersionId: versionId,
    retentionDays: definition.settings.retentionDays ?? null,
    activationHash: 'none',
    activationExpiresAt: at,
    activatedAt: at,
    ownerEmail: 'owner@example.com',
    ownerConfirmedAt: at,
    pendingOwnerEmail: null,
    ownerEpoch: 0,
    questionChecksum: null,
    questionDueAt: null,
    archivedAt: null,
    closedAt: null,
    deletedAt: null,
    key: null,
    managedBy: null,
    readUpTo: null,
    ignoredNames: null,
    createdAt: at,
    updatedAt: at,
    ...rest,
  };
  await database.write(async (em) => {
    await em.insert(FormEntity, form);
    await em.insert(VersionEntity, {
      id: versionId,
      formId: form.id,
      number: 1,
      definition,
      checksum: 'x',
      createdAt: at,
    });
  });
  return { ...form, versionId };
}

const common = { required: false, hidden: false, answeredBy: 'anyone' as const, page: 1 };

export const plainDefinition: FormDefinition = {
  name: 'Contact',
  slug: 'contact',
  fields: [
    { ...common, id: 'name', type: 'text', label: 'Your name' },
    { ...common, id: 'email', type: 'email', label: 'Your email' },
  ],
  delivery: { type: 'email' },
  settings: {
    allowPartial: false,
    allowedOrigins: [],
    embedOrigins: [],
    publicPage: true,
    review: false,
    locale: 'en',
    theme: { mode: 'auto' },
    spam: {},
  },
};

/** For `givenForm`: a form whose answers are not mailed. */
export const deliveredByWebhook: { definition: Partial<FormDefinition> } = {
  definition: { delivery: { type: 'webhook', url: 'https://example.com/' } },
};

/** An active webhook that receives everything of the form's project. */
export async function givenWebhook(
  database: Database,
  form: Form,
  given: Partial<Webhook> = {},
): Promise<Webhook> {
  const webhook: Webhook = {
    id: newId('wh', Date.now()),
    projectId: form.projectId,
    formId: null,
    url: 'http://127.0.0.1:1/',
    events: ['submission.created', 'session.expired'],
    secret: testBox.seal(testSecret),
    nextSecret: null,
    nextSecretAt: null,
    previousSecret: null,
    previousSecretUntil: null,
    keyless: false,
    fromDefinition: false,
    active: true,
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
    lastSuccessAt: null,
    failuresBeforeSuccess: 0,
    failuresInRow: 0,
    sendsTraceparent: false,
    headers: null,
    filter: null,
    signingKey: null,
    announcedFailing: false,
    announcedBy: null,
    template: null,
    openUntil: null,
    createdAt: new Date(),
    deletedAt: null,
    ...given,
  };
  await database.write((em) => em.insert(WebhookEntity, webhook));
  return webhook;
}

/**
 * Submissions with their events, in one commit: by a process that delivers nothing, unless `delivery` is
 * that process's. Returns the events' ids in order.
 */
export async function givenSubmissions(
  database: Database,
  form: Form & { versionId: string },
  answers: JsonObject[],
  delivery: WriterOptions = {},
): Promise<string[]> {
  const writer = createSubmissionWriter(database, delivery);
  const rows = answers.map((each) => aSubmissionTo(form, each));
  await Promise.all(rows.map((row) => writer.write(row)));
  return rows.map(({ event }) => event.id);
}

/** A submission with its event, to be written. */
export function aSubmissionTo(form: Form & { versionId: string }, answers: JsonObject) {
  const createdAt = new Date();
  const instant = createdAt.toISOString();
  const event = { id: newId('evt', createdAt.getTime()), at: instant };
  const type = 'submission.created';
  const facts = {
    id: newId('sub', createdAt.getTime()),
    formId: form.id,
    sessionId: null,
    source: 'api',
    metadata: {},
    createdAt,
  };
  const announced = {
    ...facts,
    createdAt: instant,
    formVersionId: form.versionId,
    formCreatedBy: form.createdBy,
  };
  const provenance: StoredOrigin[] = [{ by: 'api' }];
  const body = eventTypes[type].body(event, {
    ...announced,
    provenance,
  });
  return {
    ...facts,
    answers,
    provenance,
    projectId: form.projectId,
    versionId: form.versionId,
    status: 'accepted' as const,
    idempotencyKey: null,
    requestFingerprint: null,
    respondent: null,
    respondentKey: null,
    replaces: null,
    replacedBy: null,
    event: { id: event.id, type, body },
  };
}

/** An event of another kind. */
export async function givenEvent(
  database: Database,
  form: Form,
  type: string,
  payload: object,
): Promise<void> {
  const createdAt = new Date();
  const id = newId('evt', createdAt.getTime());
  await insertEvents(database, [
    { id, projectId: form.projectId, formId: form.id, type, body: JSON.stringify(payload), createdAt },
  ]);
}

/** Waits until the form has so many deliveries and none is pending, and returns them, oldest first. */
export async function expectFinished(
  database: Database,
  form: Form,
  count: number,
): Promise<LoggedDelivery[]> {
  let deliveries: LoggedDelivery[] = [];
  const states = () =>
    JSON.stringify(deliveries.map(({ delivery }) => [delivery.kind, delivery.status, delivery.error]));
  await until(
    async () => {
      deliveries = (await listDeliveries(database, { formId: form.id }, { limit: 100 })).items;
      return deliveries.length >= count && deliveries.every(({ delivery }) => delivery.status !== 'pending');
    },
    undefined,
    states,
  );
  return deliveries.reverse();
}

/**
 * Ends the leases of processes that are gone at once, which otherwise takes a minute. A second ago, since
 * columns keep milliseconds: `now()` is rounded, and lies in the future half of the time.
 */
export async function endLeases(database: Database): Promise<void> {
  await database.execute(
    `update delivery_queue set leased_until = case when leased_until is not null then now() - interval '1 second' end,
       first_lease_until = case when first_lease_until is not null then now() - interval '1 second' end`,
  );
}

/** Moves a pending delivery to the log, as settling does. */
export async function endDelivery(database: Database, id: string, status: string): Promise<void> {
  await database.execute(
    `update delivery_queue set leased_until = now() + interval '1 minute' where id = $1`,
    [id],
  );
  const [row] = await database.select('select leased_until from delivery_queue where id = $1', [id]);
  const lease = String(row?.leased_until);
  await settleDeliveries(database, [{ id, lease, status: status === 'failed' ? 'failed' : 'delivered' }]);
}

export type GivenDelivery = Partial<Omit<DeliveryOptions, 'settings'>> & {
  settings?: Partial<DeliverySettings>;
};

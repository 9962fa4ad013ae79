import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CallOptions, type ContextValues, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { type Api, createApi } from '../../src/compose.ts';
import {
  newSecretKey,
  parseSecretKey,
  SecretBox,
  type SecretKey,
} from '../../src/domain/secrets/secret-key.ts';
import { contextOf } from '../../src/rpc/context.ts';
import { createRpcHandler } from '../../src/rpc/network/server.ts';
import type { ServiceSettings } from '../../src/services/context.ts';
import { createEventFeed } from '../../src/services/events/event-feed.ts';
import { createKeylessStorage } from '../../src/services/limits/keyless-storage.ts';
import { createSpool } from '../../src/services/uploads/spool.ts';
import { localUploadStore } from '../../src/services/uploads/upload-store.ts';
import { AuditWriter } from '../../src/store/audit/audit-writer.ts';
import type { Database } from '../../src/store/database/database.ts';
import { removeDueFiles } from '../../src/store/removal/removals.ts';
import { createSubmissionWriter } from '../../src/store/submissions/submission-writer.ts';
import { type EngineName, openTestDatabase } from './database.ts';
import { type DefinitionInit, definitionMessage, definitionOf, emailField } from './definitions.ts';

/**
 * Runs all services behind their interceptors, without servers and delivery, on an empty database of
 * their own. Rates are not limited. `clock.ms` can be set forward.
 */
export async function startServices(engine: EngineName, options: ServicesOptions = {}) {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await openTestDatabase(engine));
  const services = opened.adopt(await servicesOn(database, options), (running) => running.close());
  const owned = opened.move();
  return { ...services, database, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** As `startServices`, on a database that is open already: another process, as it were. */
export async function servicesOn(database: Database, options: ServicesOptions = {}) {
  const clock = { ms: Date.now() };
  const { now = () => clock.ms, settings, secretKey = parseSecretKey(newSecretKey()) } = options;
  const folder = await mkdtemp(join(tmpdir(), 'uploads-'));
  const store = localUploadStore(folder);
  const logged: string[] = [];
  const secrets = new SecretBox(secretKey);
  let notifications = 0;
  const log = pino({ level: 'debug' }, { write: (line) => logged.push(line) });
  const events = createEventFeed({ database, now, log });
  const writer = createSubmissionWriter(database, { onCommitted: () => events.announce() });
  const auditWriter = new AuditWriter({ database, now, log });
  let isDiskLow = false;
  const keylessStorage = createKeylessStorage({
    database,
    now,
    hourlyBytes: options.keylessBytes?.hourly,
    projectBytes: options.keylessBytes?.project ?? 1024 ** 3,
  });
  const services = createApi({
    database,
    writer,
    auditWriter,
    secrets,
    secretKey,
    verifyingKeys: [secretKey, ...(options.formerKey === undefined ? [] : [options.formerKey])],
    settings: { ...defaultSettings, ...settings },
    now,
    log,
    notifyWorkers: () => {
      notifications += 1;
      events.announce();
    },
    events,
    uploads: store,
    keylessStorage,
    disk: { isLow: () => isDiskLow },
    spool: createSpool(join(folder, 'spool')),
  });
  await services.prepare(FIRST_KEY);
  const local = withHeaders(services.transport(), undefined, {});
  const as = (key?: string, headers: Record<string, string> = {}) => withHeaders(local, key, headers);
  const owner = withKey(FIRST_KEY);
  const clients = clientsOf(local);

  /** Makes a key with every scope, in a project of its own, unless told otherwise. */
  async function givenKey({ scopes = ['*'], project = `p-${crypto.randomUUID().slice(0, 8)}` } = {}) {
    return (await clients.keys.createKey({ name: 'test', scopes, project }, owner)).secret;
  }

  async function givenDraft(key: string | undefined, definition: DefinitionInit = {}) {
    const forms = createClient(FormsService, as(key));
    const { form, activationToken } = await forms.createForm({ definition: definitionMessage(definition) });
    return { id: form?.id ?? '', token: activationToken };
  }

  async function givenForm(key: string | undefined, definition?: DefinitionInit) {
    const { id, token } = await givenDraft(key, definition);
    const email = 'owner@example.com';
    const { form, webhookSecret } = await clients.forms.activateForm({
      formId: id,
      activationToken: token,
      email,
    });
    return { id, versionId: form?.currentVersionId ?? '', webhookSecret };
  }

  return {
    /** Calls without a key. */
    ...clients,
    /** A `*` key of the default project, and a call's options with it. */
    key: FIRST_KEY,
    owner,
    /** What the process does before it listens. */
    prepare: () => services.prepare(),
    /** The local transport, calling with this key (or none) and these headers. */
    as,
    clock,
    folder,
    /** Removes the files whose rows are gone, as the sweeps do. */
    async removeFiles() {
      while ((await removeDueFiles(database, (id) => store.remove(id), 100)).more);
    },
    /** The lines of the log. */
    logged,
    secrets,
    secretKey,
    auditWriter,
    /** How often the delivery loop was to be woken. */
    notifications: () => notifications,
    /** Makes the disk seem almost full, or not any more. */
    setDiskLow: (low: boolean) => {
      isDiskLow = low;
    },
    givenKey,
    givenDraft,
    givenForm,
    /** A call's options with a key that has these scopes. */
    async givenCaller(scopes: string[], project = 'default') {
      return withKey(await givenKey({ scopes, project }));
    },
    /** The id of a published form with these fields; `caller: {}` makes one without a key. */
    async givenFormOf(fields: object[] = emailField, formSettings: object = {}, caller: CallOptions = owner) {
      const definition = definitionOf(fields, formSettings);
      const { form, activationToken } = await clients.forms.createForm({ definition }, caller);
      const formId = form?.id ?? '';
      await clients.forms.activateForm({ formId, activationToken, email: 'owner@example.com' });
      return formId;
    },
    /** Serves the RPCs on a port, for as long as the result is in use. */
    openNetwork: (key?: string) => openNetwork(services, key),
    async close() {
      await auditWriter.close();
      await writer.close();
      await events.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function openNetwork(services: Api, key?: string) {
  const handler = createRpcHandler({
    served: services.served,
    contextValues: (request) => contextOf({ clientAddress: request.socket.remoteAddress ?? '' }),
    fallback: (_request, response) => response.destroy(),
    allowedOrigins: [],
    log: pino({ level: 'silent' }),
  });
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    transport: withHeaders(createConnectTransport({ baseUrl, httpVersion: '1.1' }), key, {}),
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function clientsOf(transport: Transport) {
  return {
    forms: createClient(FormsService, transport),
    submissions: createClient(SubmissionsService, transport),
    sessions: createClient(SessionsService, transport),
    hosted: createClient(HostedService, transport),
    uploads: createClient(UploadsService, transport),
    keys: createClient(KeysService, transport),
    audit: createClient(AuditService, transport),
    webhooks: createClient(WebhooksService, transport),
  };
}

export function withKey(key: string): CallOptions {
  return { headers: { authorization: `Bearer ${key}` } };
}

/** Believes the header `x-forwarded-for`, as the listeners do behind a proxy. */
function withHeaders(transport: Transport, key: string | undefined, more: Record<string, string>): Transport {
  const headersFor = (init: ConstructorParameters<typeof Headers>[0]) => {
    const headers = new Headers(init);
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    for (const [name, value] of Object.entries(more)) headers.set(name, value);
    return headers;
  };
  const valuesFor = (headers: Headers, values?: ContextValues) =>
    values ?? contextOf({ clientAddress: headers.get('x-forwarded-for') ?? 'unknown' });
  return {
    unary(method, signal, timeoutMs, header, input, values) {
      const headers = headersFor(header);
      return transport.unary(method, signal, timeoutMs, headers, input, valuesFor(headers, values));
    },
    stream(method, signal, timeoutMs, header, input, values) {
      const headers = headersFor(header);
      return transport.stream(method, signal, timeoutMs, headers, input, valuesFor(headers, values));
    },
  };
}

/** Registered as the first key of each test installation: `*` in the default project. */
const FIRST_KEY = 'hfs_the-first-key-of-every-test-installation';

const defaultSettings: ServiceSettings = {
  requireApiKey: true,
  allowPublicCreate: true,
  ownerConfirmation: true,
  reflection: true,
  demo: true,
  publicProject: 'default',
  baseUrl: 'https://api.test',
  hostedUrl: 'https://forms.test',
  allowPrivateWebhooks: false,
  maxWebhooks: 100,
  retrySchedule: [0],
  deliveryRetentionDays: 90,
  rateLimit: false,
  rateLimitPerKey: undefined,
  maxStreams: 60,
  maxStreamsPerKey: 20,
  maxStreamsTotal: 200,
  maxWaitsPerKey: 1_000,
  maxWaitsTotal: 10_000,
  notifyMailboxesPerKey: 50,
};

export type ServicesOptions = {
  settings?: Partial<ServiceSettings>;
  /** The budgets of what comes without a key; none a default, one GiB a project. */
  keylessBytes?: { hourly?: number; project?: number };
  /** Milliseconds since 1970; absent: what `clock` says. */
  now?: () => number;
  secretKey?: SecretKey;
  /** The secret key that was in use before. */
  formerKey?: SecretKey;
};

export type TestServices = Awaited<ReturnType<typeof startServices>>;

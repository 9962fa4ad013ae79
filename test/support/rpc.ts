import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { connectNodeAdapter, createConnectTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { type FieldSchema, FieldType, FormDefinitionSchema } from '../../gen/forms/v1/definition_pb.js';
import { FailureSchema, Reason } from '../../gen/forms/v1/errors_pb.js';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { newSecretKey, parseSecretKey, SecretBox, type SecretKey } from '../../src/domain/secrets.ts';
import { contextOfClient } from '../../src/services/context.ts';
import type { ServiceSettings } from '../../src/services/deps.ts';
import { createServices } from '../../src/services/registry.ts';
import { localUploadStore } from '../../src/services/upload-store.ts';
import type { Database } from '../../src/store/database.ts';
import { createSubmissionWriter } from '../../src/store/submission-writer.ts';
import type { EngineName, TestDatabase } from './database.ts';
import { borrowDatabase } from './shared-database.ts';

/** Runs all services behind their interceptors, without doors and delivery, on a database of their own. */
export async function openRpc(engine: EngineName, options: RpcOptions = {}): Promise<TestRpc> {
  const database = await borrowDatabase(engine);
  const rpc = await rpcOn(database, options);
  return {
    ...rpc,
    database,
    async [Symbol.asyncDispose]() {
      await rpc.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** As `openRpc`, on a database that is open already: another process, as it were. */
export async function rpcOn(database: Database, options: RpcOptions = {}): Promise<RunningRpc> {
  const { now = Date.now, settings, secretKey = parseSecretKey(newSecretKey()) } = options;
  const logged: string[] = [];
  const secrets = new SecretBox(secretKey);
  const writer = createSubmissionWriter(database);
  let nudges = 0;
  const services = createServices({
    database,
    writer,
    secrets,
    secretKey,
    settings: { ...defaultSettings, ...settings },
    now,
    log: pino({ level: 'debug' }, { write: (line) => logged.push(line) }),
    nudge: () => {
      nudges += 1;
    },
    uploads: localUploadStore(join(tmpdir(), `uploads-${crypto.randomUUID()}`)),
  });
  await services.prepare(FIRST_KEY);
  const local = services.transport();
  const as = (key?: string, headers: Record<string, string> = {}) => withHeaders(local, key, headers);

  async function givenDraft(key: string | undefined, definition: DefinitionInit = {}) {
    const forms = createClient(FormsService, as(key));
    const { form, activationToken } = await forms.createForm({ definition: definitionMessage(definition) });
    return { id: form?.id ?? '', token: activationToken };
  }

  return {
    key: FIRST_KEY,
    as,
    logged,
    secrets,
    secretKey,
    nudges: () => nudges,
    givenDraft,
    async givenKey({ scopes = ['*'], project = `p-${crypto.randomUUID().slice(0, 8)}` } = {}) {
      const keys = createClient(KeysService, as(FIRST_KEY));
      return (await keys.createKey({ name: 'test', scopes, project })).secret;
    },
    async givenForm(key, definition) {
      const { id, token } = await givenDraft(key, definition);
      const forms = createClient(FormsService, as(key));
      const { form, webhookSecret } = await forms.activateForm({
        formId: id,
        token,
        email: 'owner@example.com',
      });
      return { id, versionId: form?.currentVersionId ?? '', webhookSecret };
    },
    async openNetwork(key) {
      const handler = connectNodeAdapter({
        routes: (router) => services.routes(router),
        contextValues: (req) => contextOfClient(req.socket.remoteAddress ?? ''),
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
    },
    close: () => writer.close(),
  };
}

/** What a call failed with, in the words of `errors.proto`. Fails the test if it did not fail so. */
export async function failureOf(call: Promise<unknown>): Promise<FailureFacts> {
  const error = await call.then(
    () => new Error('The call was expected to fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConnectError)) throw error;
  const [failure] = error.findDetails(FailureSchema);
  if (failure === undefined) throw error;
  const { violations, reason, requiredScope, submissionId } = failure;
  return {
    code: error.code,
    reason: Reason[reason] ?? '',
    message: error.rawMessage,
    violations: violations.map(({ path, code }) => [path, code]),
    requiredScope,
    submissionId,
    header: error.metadata,
  };
}

/** A valid definition, one e-mail field delivered by e-mail, with what is given instead. */
export function definitionMessage(overrides: DefinitionInit = {}) {
  const email: MessageInitShape<typeof FieldSchema> = { id: 'email', type: FieldType.EMAIL, required: true };
  const init: DefinitionInit = {
    name: 'Contact',
    slug: 'contact',
    fields: [email],
    delivery: { channel: { case: 'email', value: {} } },
  };
  return create(FormDefinitionSchema, { ...init, ...overrides } as MessageInitShape<
    typeof FormDefinitionSchema
  >);
}

function withHeaders(transport: Transport, key: string | undefined, more: Record<string, string>): Transport {
  const headersFor = (init: ConstructorParameters<typeof Headers>[0]) => {
    const headers = new Headers(init);
    if (key !== undefined) headers.set('authorization', `Bearer ${key}`);
    for (const [name, value] of Object.entries(more)) headers.set(name, value);
    return headers;
  };
  return {
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs, headersFor(header), input, values),
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, headersFor(header), input, values),
  };
}

/** Registered as the first key of each test installation: `*` in the default project. */
const FIRST_KEY = 'hfs_the-first-key-of-every-test-installation';

const defaultSettings: ServiceSettings = {
  requireApiKey: true,
  allowPublicCreate: true,
  publicProject: 'default',
  baseUrl: 'http://api.test',
  hostedUrl: 'http://forms.test',
  allowPrivateWebhooks: false,
  rateLimit: false,
  rateLimitPerKey: undefined,
};

export type RpcOptions = { settings?: Partial<ServiceSettings>; now?: () => number; secretKey?: SecretKey };

export type RunningRpc = {
  /** A `*` key of the default project. */
  key: string;
  /** The local transport, calling with this key (or none) and these headers. */
  as(key?: string, headers?: Record<string, string>): Transport;
  /** The lines of the log. */
  logged: string[];
  secrets: SecretBox;
  secretKey: SecretKey;
  /** How often the delivery loop was to be woken. */
  nudges(): number;
  /** Makes a key with every scope, in a new project, unless told otherwise. */
  givenKey(options?: { scopes?: string[]; project?: string }): Promise<string>;
  givenDraft(key: string | undefined, definition?: DefinitionInit): Promise<{ id: string; token: string }>;
  givenForm(
    key: string | undefined,
    definition?: DefinitionInit,
  ): Promise<{ id: string; versionId: string; webhookSecret: string }>;
  /** Serves the RPCs on a port, for as long as the result is in use. */
  openNetwork(key?: string): Promise<AsyncDisposable & { transport: Transport }>;
  close(): Promise<void>;
};

export type TestRpc = RunningRpc & AsyncDisposable & { database: TestDatabase };

export type DefinitionInit = Partial<MessageInitShape<typeof FormDefinitionSchema>>;

export type FailureFacts = {
  code: number;
  reason: string;
  message: string;
  /** Path and code of each. */
  violations: [string, string][];
  requiredScope: string;
  submissionId: string;
  header: Headers;
};

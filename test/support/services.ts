import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { pino } from 'pino';
import { expect } from 'vitest';
import { FailureSchema, Reason } from '../../gen/forms/v1/errors_pb.js';
import { FormsService } from '../../gen/forms/v1/forms_pb.js';
import { HostedService } from '../../gen/forms/v1/hosted_pb.js';
import { KeysService } from '../../gen/forms/v1/keys_pb.js';
import { SessionsService } from '../../gen/forms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/forms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/forms/v1/uploads_pb.js';
import { checkDefinition } from '../../src/domain/definition.ts';
import { definitionToMessage } from '../../src/domain/definition-message.ts';
import { SecretBox } from '../../src/domain/secrets.ts';
import type { ServiceSettings } from '../../src/services/deps.ts';
import { createServices } from '../../src/services/registry.ts';
import { localUploadStore } from '../../src/services/upload-store.ts';
import { createSubmissionWriter } from '../../src/store/submission-writer.ts';
import type { EngineName } from './database.ts';
import { borrowDatabase } from './shared-database.ts';

/**
 * The services in this process on an empty database of their own, called through the local
 * transport. Rates are not limited. `clock.ms` can be set forward.
 */
export async function startServices(engine: EngineName, settings: Partial<ServiceSettings> = {}) {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'services-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const database = opened.use(await borrowDatabase(engine));
  const writer = opened.adopt(createSubmissionWriter(database), (open) => open.close());
  const clock = { ms: Date.now() };
  const secretKey = Buffer.alloc(32, 7);
  const services = createServices({
    database,
    writer,
    secrets: new SecretBox(secretKey),
    secretKey,
    settings: { ...testSettings, ...settings },
    now: () => clock.ms,
    log: pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' }),
    nudge() {},
    uploads: localUploadStore(folder),
  });
  const key = await services.prepare();
  if (key === undefined) throw new Error('An empty installation made no key');
  const owned = opened.move();
  const clients = clientsOf(services.transport());
  return {
    ...clients,
    database,
    clock,
    folder,
    /** The headers of a `*` key of the default project. */
    key: bearer(key),
    /** The headers of a key with these scopes, in this project. */
    async givenKey(scopes: string[], project = 'default') {
      const made = await clients.keys.createKey({ name: 'test', scopes, project }, bearer(key));
      return bearer(made.secret);
    },
    /** The id of a published form of the default project; `headers: {}` makes one without a key. */
    async givenForm(fields: object[] = emailField, settings: object = {}, options = bearer(key)) {
      const definition = definitionMessage(fields, settings);
      const { form, activationToken } = await clients.forms.createForm({ definition }, options);
      const formId = form?.id ?? '';
      await clients.forms.activateForm({ formId, token: activationToken, email: 'owner@example.com' });
      return formId;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A definition delivered by mail, as the RPCs take it. */
export function definitionMessage(fields: object[], settings: object = {}) {
  const input = { name: 'Test', slug: 'test', fields, delivery: { type: 'email' }, settings };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: true });
  if (!checked.ok) throw new Error(`No definition: ${JSON.stringify(checked.violations)}`);
  return definitionToMessage(checked.definition);
}

/** Expects a call to fail with a reason, and gives its details: violations as `path: code`. */
export async function expectFailure(call: Promise<unknown>, reason: Reason) {
  const error = await call.then(
    (reply) => expect.unreachable(`The call did not fail: ${JSON.stringify(reply)}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw error;
  const [failure] = error.findDetails(FailureSchema);
  expect(Reason[failure?.reason ?? 0], error.message).toBe(Reason[reason]);
  return {
    code: error.code,
    submissionId: failure?.submissionId,
    violations: failure?.violations.map(({ path, code }) => `${path}: ${code}`) ?? [],
  };
}

/** One required e-mail field. */
export const emailField = [{ id: 'email', type: 'email', required: true }];

function clientsOf(transport: Transport): Clients {
  return {
    forms: createClient(FormsService, transport),
    submissions: createClient(SubmissionsService, transport),
    sessions: createClient(SessionsService, transport),
    hosted: createClient(HostedService, transport),
    uploads: createClient(UploadsService, transport),
    keys: createClient(KeysService, transport),
  };
}

function bearer(key: string) {
  return { headers: { authorization: `Bearer ${key}` } };
}

const testSettings: ServiceSettings = {
  requireApiKey: true,
  allowPublicCreate: true,
  publicProject: 'default',
  baseUrl: 'https://api.test',
  hostedUrl: 'https://forms.test',
  allowPrivateWebhooks: false,
  rateLimit: false,
  rateLimitPerKey: undefined,
};

export type TestServices = Awaited<ReturnType<typeof startServices>>;

type Clients = {
  forms: Client<typeof FormsService>;
  submissions: Client<typeof SubmissionsService>;
  sessions: Client<typeof SessionsService>;
  hosted: Client<typeof HostedService>;
  uploads: Client<typeof UploadsService>;
  keys: Client<typeof KeysService>;
};

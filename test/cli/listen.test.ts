import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { SessionStatus } from '../../gen/headlessforms/v1/sessions_pb.js';
import { AnswerChannel, SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { EventType, type ListenResponse, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { createServerDatabase, engines } from '../support/database.ts';
import { program } from '../support/programs.ts';
import { startReceiver } from '../support/receiver.ts';
import { contactForm, startService, type TestService } from '../support/server.ts';
import { freePort, spawnService, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { verifySignature } from '../support/verify-signature.ts';

describe.each(engines)('listening on %s', (engine) => {
  it("streams the project's events from now on, with the bodies that webhooks get", async () => {
    await using service = await startService({ engine });
    await using receiver = await startReceiver();
    const form = await service.givenPublishedForm();
    await service.post('/v1/webhooks', { url: receiver.url, events: ['submission.created'] });
    await givenSubmission(service, form.id, 'before@example.com');
    await using stream = await startListening(service, {}, 'grpc');

    await givenSubmission(service, form.id, 'after@example.com');

    const [event] = await stream.expectEvents(1);
    const sent = await receiver.expectRequests(2);
    const same = sent.find(({ headers }) => headers['webhook-id'] === event?.id);
    expect(event?.type).toBe(EventType.SUBMISSION_CREATED);
    expect(event?.body).toContain('after@example.com');
    expect(event?.body).toBe(same?.body);
    expect(stream.events()).toHaveLength(1);
  });

  it('carries what happened as a message, beside the body', async () => {
    await using service = await startService({ engine });
    const settings = { allowPartial: true };
    const form = await service.givenPublishedForm({ fields: [{ id: 'email', type: 'email' }], settings });
    const hook = { url: 'https://example.com/hook', events: ['submission.deleted'] };
    const { webhook } = (await service.post('/v1/webhooks', hook)).json;
    const path = `/v1/forms/${form.id}/sessions`;
    const ending = (await service.post(path, { metadata: { order: 7 } })).json.session;
    await using stream = await startListening(service, {}, 'grpc');

    const submissionId = await givenSubmission(service, form.id, 'ada@example.com');
    const { submission } = await service.client(SubmissionsService, 'grpc').getSubmission({ submissionId });
    await service.patch(`/v1/sessions/${ending.id}`, { answers: { email: 'eve@example.com' } });
    await service.post(`/v1/sessions/${ending.id}/cancel`, {});
    const expiring = (await service.post(path, { expires_in: 1 })).json.session;
    await stream.expectEvents(3);
    await service.post(`/v1/webhooks/${webhook.id}/test`, { form_id: form.id });
    await stream.expectEvents(4);
    await service.delete(`/v1/submissions/${submissionId}`);

    const payloads = (await stream.expectEvents(5)).map(({ payload }) => payload);
    expect(payloads).toMatchObject([
      { case: 'submissionCreated', value: submission },
      {
        case: 'sessionCancelled',
        value: {
          id: ending.id,
          formId: form.id,
          status: SessionStatus.CANCELLED,
          expireTime: timestampFromMs(Date.parse(ending.expires_at)),
          metadata: { order: 7 },
          partialAnswers: { email: 'eve@example.com' },
          provenance: { email: { by: AnswerChannel.API } },
        },
      },
      { case: 'sessionExpired', value: { id: expiring.id, status: SessionStatus.EXPIRED } },
      { case: 'webhookTested', value: { webhookId: webhook.id, formId: form.id } },
      { case: 'submissionDeleted', value: { submissionId, formId: form.id, sessionId: '' } },
    ]);
  });

  it('streams only one form, and nothing of another project', async () => {
    await using service = await startService({ engine });
    const [wanted, other] = [await service.givenPublishedForm(), await service.givenPublishedForm()];
    const stranger = await service.givenKey(['*'], 'elsewhere');
    await using ofForm = await startListening(service, { formId: wanted.id });
    await using ofStranger = await startListening(service, {}, 'connect', stranger);

    const foreign = await service.givenPublishedForm({}, { key: stranger });

    await givenSubmission(service, other.id, 'other@example.com');
    await givenSubmission(service, wanted.id, 'wanted@example.com');
    await givenSubmission(service, foreign.id, 'foreign@example.com');

    const [event] = await ofForm.expectEvents(1);
    const [foreignEvent] = await ofStranger.expectEvents(1);
    expect(event?.body).toContain('wanted@example.com');
    expect(foreignEvent?.body).toContain('foreign@example.com');
    expect(ofForm.events()).toHaveLength(1);
    expect(ofStranger.events()).toHaveLength(1);
  });

  it('goes on after its cursor and misses nothing', async () => {
    await using service = await startService({ engine });
    const form = await service.givenPublishedForm();
    const first = await startListening(service);
    await givenSubmission(service, form.id, 'first@example.com');
    await first.expectEvents(1);
    await first[Symbol.asyncDispose]();
    await givenSubmission(service, form.id, 'meanwhile@example.com');

    await using second = await startListening(service, { cursor: first.cursor() });
    await givenSubmission(service, form.id, 'then@example.com');

    await until(() => second.bodies().includes('then@example.com'));
    const met = `${first.bodies()} ${second.bodies()}`;
    expect(['first', 'meanwhile', 'then'].filter((name) => !met.includes(`${name}@example.com`))).toEqual([]);
    const ids = second.events().map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('listening', () => {
  it('misses no event that is committed later than its id tells', async () => {
    await using service = await startService({ engine: 'postgres' });
    const form = await service.givenPublishedForm();
    await using stream = await startListening(service);
    const late = await service.database.execute(
      `insert into events (id, project_id, form_id, type, body, created_at)
       select 'evt_' || substr($2, 6), project_id, id, 'submission.deleted',
         '{"data":{"submissionId":"sub_late"}}', now() from forms where id = $1
       returning id`,
      [form.id, form.id],
    );
    await givenSubmission(service, form.id, 'after@example.com');

    await stream.expectEvents(2);

    expect(stream.events().map(({ id }) => id)).toContain(late[0]?.id);
  });

  it('needs a key that may write webhooks, a form of its project and a cursor', async () => {
    await using service = await startService();
    const reader = await service.givenKey(['webhooks:read', 'submissions:read']);
    const refusals = [
      startListening(service, {}, 'connect', null),
      startListening(service, {}, 'connect', reader),
      startListening(service, { formId: 'form_01kag000000000000000000000' }),
      startListening(service, { cursor: 'yesterday' }),
    ];

    const codes = (await Promise.allSettled(refusals)).map((result) =>
      result.status === 'rejected' ? ConnectError.from(result.reason).code : 'listening',
    );

    expect(codes).toEqual([Code.Unauthenticated, Code.PermissionDenied, Code.NotFound, Code.InvalidArgument]);
  });

  it('has places for each key and project, which closed streams free', async () => {
    await using service = await startService({ env: { MAX_STREAMS: '3', MAX_STREAMS_PER_KEY: '2' } });
    const [second, third] = [await service.givenKey(['*']), await service.givenKey(['*'])];
    const stranger = await service.givenKey(['*'], 'elsewhere');
    const codeFor = (key: string) =>
      startListening(service, {}, 'grpc', key).catch((error: unknown) => ConnectError.from(error).code);
    const first = await startListening(service);
    await using _first = await startListening(service, {}, 'grpc');

    const oneMoreOfKey = await codeFor(service.key);
    await using _second = await startListening(service, {}, 'connect', second);
    const oneMoreOfProject = await codeFor(third);
    await using _stranger = await startListening(service, {}, 'connect', stranger);
    await first[Symbol.asyncDispose]();

    await using _third = await until(async () => {
      const stream = await codeFor(third);
      return typeof stream === 'object' && stream;
    });
    expect([oneMoreOfKey, oneMoreOfProject]).toEqual([Code.ResourceExhausted, Code.ResourceExhausted]);
  });

  it('ends when its key is revoked', async () => {
    await using service = await startService();
    const key = await service.givenKey(['webhooks:write']);
    await using stream = await startListening(service, {}, 'connect', key);
    const { json } = await service.get('/v1/keys');
    const made = json.keys.find(({ name }: { name: string }) => name === 'test');

    await service.delete(`/v1/keys/${made.id}`);

    await until(() => stream.error() !== undefined);
    expect(ConnectError.from(stream.error()).code).toBe(Code.Unauthenticated);
  });

  it('does not hold up a stop of the service', async () => {
    const service = await startService();
    await using stream = await startListening(service);
    const startedAt = performance.now();

    await service[Symbol.asyncDispose]();

    expect(performance.now() - startedAt).toBeLessThan(8_000);
    await until(() => stream.ended());
  });
});

describe.concurrent('npm run cli -- listen', () => {
  it('posts the real events, signed, to a local address and prints what it answers', async () => {
    await using service = await startService();
    await using receiver = await startReceiver((_, response) => void response.writeHead(418).end('tea'));
    const form = await service.givenPublishedForm();
    await using cli = startCli(['--forward', `${receiver.url}/hook`, '--server', service.url], service.key);
    await until(() => cli.output().includes('Listening'));

    await givenSubmission(service, form.id, 'ada@example.com');

    const [hit] = await receiver.expectRequests(1);
    await until(() => cli.output().includes('  418 in '));
    const [secret = ''] = /whsec_\S+/.exec(cli.output()) ?? [];
    const { body = '', headers, path } = hit ?? {};
    const header = String(headers?.['x-service-signature']);
    expect(path).toBe('/hook');
    expect(JSON.parse(body).data.answers.email).toBe('ada@example.com');
    expect(verifySignature({ header, body, secret, now: Date.now() })).toBe(true);
    expect(cli.output()).toContain(`submission.created  ${String(headers?.['webhook-id'])}  418`);
    expect(await cli.stop('SIGINT')).toBe(0);
  });

  it('goes on where it stood after the service was restarted, and repeats nothing', async () => {
    await using receiver = await startReceiver();
    await using server = await createServerDatabase();
    using folder = temporaryFolder();
    const port = String(await freePort());
    const otherPort = String(await freePort());
    const env = { ...(await settingsOn(folder.path, server.databaseUrl)), PORT: port };
    await using first = spawnService(env);
    await using other = spawnService({ ...env, PORT: otherPort, GRPC_PORT: String(await freePort()) });
    await Promise.all([first.started(), other.started()]);
    const elsewhere = `http://127.0.0.1:${otherPort}`;
    const form = await givenFormAt(elsewhere);
    const args = [
      '--forward',
      receiver.url,
      '--server',
      `http://127.0.0.1:${port}`,
      '--secret',
      'tea for two',
    ];
    await using cli = startCli([...args, '--form', form], KEY);
    await until(() => cli.output().includes('Listening'));
    await post(`${elsewhere}/api/forms/${form}/submissions`, { answers: { email: 'first@example.com' } });
    await receiver.expectRequests(1);

    await first.stop('SIGTERM');
    await post(`${elsewhere}/api/forms/${form}/submissions`, { answers: { email: 'meanwhile@example.com' } });
    await until(() => cli.output().includes('The connection was lost'));
    await using again = spawnService(env);
    await again.started();

    await receiver.expectRequests(2);
    await post(`${elsewhere}/api/forms/${form}/submissions`, { answers: { email: 'then@example.com' } });
    await receiver.expectRequests(3);
    expect(receiver.received.map(({ body }) => JSON.parse(body).data.answers.email)).toEqual([
      'first@example.com',
      'meanwhile@example.com',
      'then@example.com',
    ]);
    expect(cli.output()).not.toContain('whsec_');
  });

  it.each([
    [['listen'], 2, '--forward is missing'],
    [['listen', '--forward', 'localhost:3000'], 2, '--forward: Expected a URL'],
    [['listen', '--forward', 'http://localhost:3000', '--from', 'here'], 2, "Unknown option '--from'\nTry:"],
    [['replay', 'sub_1'], 2, 'sub_1: Expected dlv_…, wh_…, form_…'],
    [['replay', 'form_1', '--missed-since', '2026-11-21'], 2, 'form_1: Expected wh_…'],
    [['replay', 'wh_1', '--missed-since', '21.11.2026'], 2, '--missed-since: Expected ISO 8601'],
    [['replay', 'wh_1', '--missed-since', '2026-11-21T08:00'], 2, '--missed-since: Expected ISO 8601'],
    [['dance'], 2, 'Unknown command: dance'],
    [[], 0, 'Usage: npm run cli -- listen'],
  ])('says what is wrong with %j', async (args, code, words) => {
    const cli = spawnCli(args, 'a key');

    expect(await cli.ended).toBe(code);
    expect(cli.output()).toContain(words);
  });

  it.each([
    [['admin', 'backup', '--help'], ['admin backup '], ['admin needs', 'admin backup writes']],
    [['forms', 'plan', 'a-folder', '-h'], ['forms plan '], ['forms keeps']],
    [
      ['admin', 'keys', '--help'],
      ['admin keys create ', 'admin keys list ', 'admin keys revoke '],
      ['admin needs', 'admin keys creates'],
    ],
  ])('explains the commands of %j and no others', async (args, usages, explanations) => {
    const cli = spawnCli(args, 'a key');

    expect(await cli.ended).toBe(0);
    const [usage = '', ...texts] = cli.output().split(/\n\n(?! )/);
    const lines = usage.split('\n').map((line) => line.replace(/^.*npm run cli -- /, ''));
    expect(lines).toEqual(usages.map((start) => expect.stringMatching(`^${start}`)));
    expect(texts).toEqual(explanations.map((start) => expect.stringMatching(`^${start}`)));
  });

  it('says so when the service refuses the key', async () => {
    await using service = await startService();

    const cli = spawnCli(['listen', '--forward', 'http://127.0.0.1:9', '--server', service.url], 'wrong');

    expect(await cli.ended).toBe(1);
    expect(cli.output()).toContain('The API key is unknown, expired or revoked');
  });
});

/** Submits, and returns the submission's id. */
async function givenSubmission(service: TestService, formId: string, email: string): Promise<string> {
  const { status, text, json } = await service.post(`/api/forms/${formId}/submissions`, {
    answers: { email },
  });
  if (status !== 201) throw new Error(`Not accepted: ${text}`);
  return json.submission_id;
}

async function settingsOn(folder: string, databaseUrl: string) {
  return {
    GRPC_PORT: String(await freePort()),
    HOST: '127.0.0.1',
    DATA_DIR: folder,
    DATABASE_URL: databaseUrl,
    SECRET_KEY: 'ab'.repeat(32),
    BOOTSTRAP_API_KEY: KEY,
    RATE_LIMIT: 'off',
  };
}

const KEY = 'a-key-for-the-tests-of-listening-only';

async function givenFormAt(url: string): Promise<string> {
  const { form } = await post(`${url}/api/forms/create`, contactForm);
  await post(`${url}${form.activate_url}`, { email: 'owner@example.com' });
  return form.id;
}

async function post(url: string, body: object) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`Refused: ${await response.text()}`);
  return JSON.parse(await response.text());
}

/** Opens a stream and waits for its first message. */
async function startListening(
  service: TestService,
  request: { formId?: string; cursor?: string } = {},
  protocol: 'connect' | 'grpc' = 'connect',
  key: string | null = service.key,
) {
  const stop = new AbortController();
  const messages: ListenResponse[] = [];
  const events = () => messages.flatMap(({ event }) => event ?? []);
  let failure: unknown;
  let over = false;
  const stream = service.client(WebhooksService, protocol, key).listen(request, { signal: stop.signal });
  const read = (async () => {
    try {
      for await (const message of stream) messages.push(message);
    } catch (error) {
      failure = error;
    }
    over = true;
  })();
  await until(() => messages.length > 0 || over);
  if (failure !== undefined) throw failure;
  return {
    events,
    bodies: () =>
      events()
        .map(({ body }) => body)
        .join(' '),
    cursor: () => messages.at(-1)?.cursor ?? '',
    error: () => failure,
    ended: () => over,
    async expectEvents(count: number) {
      await until(() => events().length >= count);
      return events();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await read;
    },
  };
}

function startCli(args: string[], key: string) {
  return spawnCli(['listen', ...args], key);
}

function spawnCli(args: string[], key: string) {
  const child = spawn(process.execPath, [...program('cli'), ...args], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH, KEY: key },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  return {
    output: () => output,
    ended,
    async stop(signal: NodeJS.Signals) {
      child.kill(signal);
      return ended;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

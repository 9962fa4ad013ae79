import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { newId, newSessionId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database/database.ts';
import { DatabaseUnavailable } from '../../src/store/database/faults.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import { definitionMessage } from '../support/definitions.ts';
import { failureOf } from '../support/failures.ts';
import { postsOf } from '../support/hosted.ts';
import { servicesOn, startServices, type TestServices } from '../support/services.ts';

describe.each(engines)('every call on %s', (engine) => {
  let rpc: TestServices;
  let limited: Awaited<ReturnType<typeof servicesOn>>;
  let now = Date.now();

  beforeAll(async () => {
    rpc = await startServices(engine, { now: () => now });
    limited = await servicesOn(rpc.database, {
      now: () => now,
      settings: { rateLimit: true, rateLimitPerKey: 3, requireApiKey: false, allowPublicCreate: false },
    });
  });

  afterAll(async () => {
    await limited.close();
    await rpc[Symbol.asyncDispose]();
  });

  const forms = (transport: Transport) => createClient(FormsService, transport);

  it('fails in the same way by both transports', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const weak = await rpc.givenKey({ scopes: ['submissions:read'] });
    const failures: [string | undefined, (transport: Transport) => Promise<unknown>][] = [
      [undefined, (transport) => forms(transport).listForms({})],
      ['hfs_wrong', (transport) => forms(transport).listForms({})],
      [weak, (transport) => forms(transport).listForms({})],
      [rpc.key, (transport) => forms(transport).getForm({ formId: 'nothing' })],
      [rpc.key, (transport) => forms(transport).createForm({ definition: definitionMessage({ name: '' }) })],
      [rpc.key, (transport) => forms(transport).listForms({ pageSize: -1 })],
      [
        undefined,
        (transport) =>
          forms(transport).activateForm({ formId: id, activationToken: 'wrong', email: 'a@b.cd' }),
      ],
    ];

    const codes: number[] = [];
    for (const [key, call] of failures) {
      await using network = await rpc.openNetwork(key);
      const [local, remote] = await Promise.all([
        failureOf(call(rpc.as(key))),
        failureOf(call(network.transport)),
      ]);

      const { header: localHeader, ...localFacts } = local;
      const { header: remoteHeader, ...remoteFacts } = remote;
      expect(remoteFacts).toEqual(localFacts);
      expect(remoteHeader.get('www-authenticate')).toBe(localHeader.get('www-authenticate'));
      codes.push(local.code);
    }
    expect(codes).toEqual([
      Code.Unauthenticated,
      Code.Unauthenticated,
      Code.PermissionDenied,
      Code.NotFound,
      Code.InvalidArgument,
      Code.InvalidArgument,
      Code.Unauthenticated,
    ]);
  });

  it('says in the challenge what the key lacks', async () => {
    const weak = await rpc.givenKey({ scopes: ['submissions:read'] });

    const { header } = await failureOf(forms(rpc.as(weak)).listForms({}));

    expect(header.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="forms:read"');
  });

  it('checks a key that is given even where none is needed, and ignores other schemes there', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const submit = (authorization: string) =>
      createClient(SubmissionsService, rpc.as(undefined, { authorization })).createSubmission({
        formId: id,
        answers: { email: 'a@example.com' },
      });

    expect(await failureOf(submit('Bearer hfs_wrong'))).toMatchObject({ reason: 'INVALID_KEY' });
    expect(await failureOf(submit('Bearer '))).toMatchObject({ reason: 'INVALID_KEY' });
    await expect(submit('Bearer ')).rejects.toThrow('The API key is empty');
    await submit('Basic dXNlcjpwYXNz');
    await submit(`bearer ${await rpc.givenKey({ scopes: ['forms:read'] })}`);
  });

  it('needs a key of the form’s project for a managed submission', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const submit = (key?: string) =>
      createClient(SubmissionsService, rpc.as(key)).createManagedSubmission({
        formId: id,
        answers: { email: 'a@example.com' },
      });

    expect(await failureOf(submit())).toMatchObject({ reason: 'MISSING_KEY' });
    expect(await failureOf(submit(await rpc.givenKey({ scopes: ['forms:read'] })))).toMatchObject({
      reason: 'INSUFFICIENT_SCOPE',
      requiredScope: 'submissions:write',
    });
    expect(await failureOf(submit(await rpc.givenKey()))).toMatchObject({ reason: 'NOT_FOUND' });
    await submit(rpc.key);
  });

  it('acts in the default project without a key where none is required, on the documented rows only', async () => {
    await createClient(WebhooksService, rpc.as(rpc.key)).createWebhook({
      url: 'https://example.com/',
      events: [1],
    });
    const anonymous = limited.as();

    const { webhooks } = await createClient(WebhooksService, anonymous).listWebhooks({});

    expect(webhooks.length).toBeGreaterThan(0);
    expect(await failureOf(forms(anonymous).listForms({}))).toMatchObject({ reason: 'MISSING_KEY' });
    expect(await failureOf(createClient(WebhooksService, anonymous).updateWebhook({}))).toMatchObject({
      reason: 'MISSING_KEY',
    });
    expect(
      await failureOf(createClient(SubmissionsService, anonymous).listSubmissions({ formId: 'x' })),
    ).toMatchObject({ reason: 'MISSING_KEY' });
    expect(
      await failureOf(createClient(WebhooksService, limited.as('hfs_wrong')).listWebhooks({})),
    ).toMatchObject({ reason: 'INVALID_KEY' });
  });

  it('makes no form without a key where that is not allowed', async () => {
    const create = forms(limited.as(undefined, { 'x-forwarded-for': '198.51.100.1' })).createForm;

    expect(await failureOf(create({ definition: definitionMessage() }))).toMatchObject({
      reason: 'MISSING_KEY',
    });
  });

  it('limits activations by client and form, over all processes, and says what is left', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const other = await servicesOn(rpc.database, { now: () => now, settings: { rateLimit: true } });
    const activate = (from: string, who = limited) =>
      failureOf(
        forms(who.as(undefined, { 'x-forwarded-for': from })).activateForm({
          formId: id,
          activationToken: 'x',
          email: '',
        }),
      );

    const first = await activate('2001:db8:1:2::1');
    for (let call = 2; call <= 30; call += 1) await activate('2001:db8:1:2::2', call % 2 ? limited : other);
    const refused = await activate('2001:db8:1:2:ffff::3');
    const elsewhere = await activate('2001:db8:1:3::1');

    expect(first.reason).toBe('INVALID_TOKEN');
    expect(first.header.get('ratelimit-policy')).toBe('"activate";q=30;w=3600');
    expect(first.header.get('ratelimit')).toMatch(/^"activate";r=29;t=3[56]\d\d$/);
    expect(refused).toMatchObject({ reason: 'RATE_LIMITED', code: Code.ResourceExhausted });
    expect(Number(refused.header.get('retry-after'))).toBeGreaterThan(3500);
    expect(elsewhere.reason).toBe('INVALID_TOKEN');
    await other.close();
  });

  it('limits submissions to a form by client for a minute, and tells so in each reply', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    const submit = (headers = {}) =>
      createClient(
        SubmissionsService,
        limited.as(undefined, { 'x-forwarded-for': '192.0.2.9' }),
      ).createSubmission({ formId: id, answers: { email: 'a@example.com' } }, headers);

    let left: string | null = null;
    await submit({ onHeader: (header: Headers) => (left = header.get('ratelimit')) });
    for (let call = 2; call <= 60; call += 1) await submit();
    const refused = await failureOf(submit());
    now += 60_000;
    await submit();

    expect(left).toBe('"submit";r=59;t=60');
    expect(refused.reason).toBe('RATE_LIMITED');
  });

  it('looks forms up before it counts their calls, and counts ids that nobody has made together', async () => {
    const { activateForm } = forms(limited.as(undefined, { 'x-forwarded-for': '192.0.2.20' }));
    const activate = () =>
      failureOf(activateForm({ formId: newId('form', now), activationToken: 'x', email: '' }));
    const rows = () => rpc.database.select('select key from rate_limits');
    const before = (await rows()).length;

    const failures = [];
    for (let call = 0; call < 62; call += 1) failures.push(await activate());

    expect(failures.slice(0, 60).map(({ reason }) => reason)).toEqual(Array(60).fill('NOT_FOUND'));
    expect(failures.slice(60)).toMatchObject([{ reason: 'RATE_LIMITED' }, { reason: 'RATE_LIMITED' }]);
    // The client, and the network around it.
    expect((await rows()).length - before).toBe(2);
  });

  it('keeps no row for sessions and forms of pages that nobody has made', async () => {
    const pages = createClient(HostedService, limited.as(undefined, { 'x-forwarded-for': '192.0.2.21' }));
    const rows = async () => (await rpc.database.select('select key from rate_limits')).length;
    const before = await rows();

    for (let call = 0; call < 40; call += 1) {
      const [sessionId, formId] = [newSessionId(), newId('form', now)];
      const failures = [
        await failureOf(pages.getHosted({ sessionId })),
        await failureOf(postsOf(pages).save({ sessionId })),
        await failureOf(pages.openHostedSession({ formId })),
      ];
      expect(failures.map(({ reason }) => reason)).toEqual(Array(3).fill('NOT_FOUND'));
    }

    expect((await rows()) - before).toBeLessThanOrEqual(1);
  });

  it('limits what one client does with all forms, and what all clients do', async () => {
    const ids: string[] = [];
    for (let form = 0; form < 5; form += 1) ids.push((await rpc.givenForm(rpc.key)).id);
    const call = (client: string, turn: number) =>
      createClient(SubmissionsService, limited.as(undefined, { 'x-forwarded-for': client }))
        .createDemoSubmission({})
        .then(
          () => turn,
          (error: unknown) => ConnectError.from(error),
        );
    const activate = (turn: number) =>
      failureOf(
        forms(limited.as(undefined, { 'x-forwarded-for': '192.0.2.30' })).activateForm({
          formId: ids[turn % ids.length] ?? '',
          activationToken: 'x',
          email: '',
        }),
      );

    const ofClient = [];
    for (let turn = 0; turn < 121; turn += 1) ofClient.push(await activate(turn));
    const ofAll = [];
    for (let turn = 0; turn < 601; turn += 1) ofAll.push(await call(`198.51.${turn % 30}.1`, turn));

    expect(ofClient.slice(0, 120).filter(({ reason }) => reason === 'RATE_LIMITED')).toEqual([]);
    expect(ofClient[120]?.header.get('ratelimit-policy')).toBe('"activate-client";q=120;w=3600');
    expect(ofAll.findIndex((one) => one instanceof ConnectError && one.code === Code.ResourceExhausted)).toBe(
      600,
    );
  });

  it('limits calls with a key only if the settings say so, by key', async () => {
    const key = await rpc.givenKey();
    const list = () => createClient(WebhooksService, limited.as(key)).listWebhooks({});

    for (let call = 1; call <= 3; call += 1) await list();

    expect(await failureOf(list())).toMatchObject({ reason: 'RATE_LIMITED' });
    await createClient(WebhooksService, limited.as(await rpc.givenKey())).listWebhooks({});
  });

  it('refuses more than 60 failures a minute from an address, however they come, but no valid key', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.77' };
    const call = (key: string) => createClient(WebhooksService, limited.as(key, headers)).listWebhooks({});
    const guess = async (text: string) => (await failureOf(call(text))).reason;
    const valid = await rpc.givenKey();

    for (let round = 0; round < 3; round += 1) await call(await rpc.givenKey());
    const once = await Promise.all(Array.from({ length: 200 }, (_, index) => guess(`hfs_${index}`)));
    const late = [await guess('hfs_late'), await guess('hfs_0')];

    expect(once.filter((reason) => reason === 'INVALID_KEY')).toHaveLength(60);
    expect(once.filter((reason) => reason === 'RATE_LIMITED')).toHaveLength(140);
    expect(late).toEqual(['RATE_LIMITED', 'RATE_LIMITED']);
    await call(valid);
  });

  it('asks the database about a thousand wrong keys once, beyond those failures', async () => {
    const queries: string[] = [];
    const counted: Database = {
      ...rpc.database,
      read: (work) => {
        queries.push('read');
        return rpc.database.read(work);
      },
      select: (sql, ...rest) => {
        queries.push('select');
        return rpc.database.select(sql, ...rest);
      },
    };
    const other = await servicesOn(counted, { settings: { rateLimit: true } });
    const call = (key: string) =>
      createClient(WebhooksService, other.as(key, { 'x-forwarded-for': '203.0.113.78' })).listWebhooks({});
    for (let guess = 0; guess < 60; guess += 1) await failureOf(call(`hfs_${guess}`));
    queries.length = 0;

    await Promise.all(Array.from({ length: 1_000 }, (_, index) => failureOf(call(`hfs_a${index}`))));

    expect(queries.length).toBeLessThanOrEqual(3);
    await other.close();
  });

  it('is logged by method, code and request id, without key, token or answers', async () => {
    const { id } = await rpc.givenForm(rpc.key);
    rpc.logged.length = 0;

    await createClient(SubmissionsService, rpc.as(rpc.key, { 'x-request-id': 'req-1' })).createSubmission({
      formId: id,
      answers: { email: 'private@example.com' },
    });
    await failureOf(
      forms(rpc.as()).activateForm({ formId: id, activationToken: 'secret-token', email: 'x' }),
    );

    const lines = rpc.logged.map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { method: 'headlessforms.v1.SubmissionsService/CreateSubmission', code: 'ok', requestId: 'req-1' },
      { method: 'headlessforms.v1.FormsService/ActivateForm', code: 'Unauthenticated' },
    ]);
    expect(rpc.logged.join()).not.toMatch(/private@|secret-token|hfs_/);
  });

  it('tells nobody what went wrong inside, but the log', async () => {
    await using database = await openTestDatabase(engine);
    const broken = await servicesOn(database);
    await database.execute('alter table forms rename to lost');
    await using network = await broken.openNetwork(broken.key);

    for (const transport of [broken.as(broken.key, { 'x-request-id': 'req-2' }), network.transport]) {
      const failure = await failureOf(forms(transport).listForms({}));

      expect(failure).toMatchObject({ code: Code.Internal, reason: 'INTERNAL' });
      expect(failure.message).not.toMatch(/forms|relation|select/i);
    }
    expect(broken.logged.join()).toMatch(/req-2/);
    expect(broken.logged.join()).toMatch(/does not exist/);
    await database.execute('alter table lost rename to forms');
    await broken.close();
  });

  it.each([
    ['the database is out of reach', new DatabaseUnavailable()],
    ['there are no file descriptors left', Object.assign(new Error('open'), { code: 'EMFILE' })],
  ])('says that it is unavailable, and when to try again, while %s', async (_what, fault) => {
    let reachable = true;
    const database: Database = {
      ...rpc.database,
      read: (work) => (reachable ? rpc.database.read(work) : Promise.reject(fault)),
      isReady: async () => reachable,
    };
    const services = await servicesOn(database, { now: () => now });
    await forms(services.as(services.key)).listForms({});

    reachable = false;
    const failure = await failureOf(forms(services.as(services.key)).listForms({}));
    const { status } = await createClient(Health, services.as()).check({});

    expect(failure).toMatchObject({ code: Code.Unavailable, reason: 'UNAVAILABLE' });
    expect(failure.header.get('retry-after')).toBe('2');
    expect(status).toBe(Status.NOT_SERVING);
    await services.close();
  });

  it('warns once a second while it is unavailable, and counts the calls it did not name', async () => {
    let time = now;
    let reachable = true;
    const database: Database = {
      ...rpc.database,
      read: (work) => (reachable ? rpc.database.read(work) : Promise.reject(new DatabaseUnavailable())),
    };
    const services = await servicesOn(database, { now: () => time });
    const call = () => forms(services.as(services.key)).listForms({});
    const failing = () => failureOf(call());
    await call();
    reachable = false;
    for (let calls = 0; calls < 3; calls++) await failing();
    time += 1_000;
    await failing();

    const warnings = services.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === 40);
    expect(warnings).toMatchObject([{ code: 'Unavailable' }, { code: 'Unavailable', leftOut: 2 }]);
    expect(warnings[0]).not.toHaveProperty('leftOut');
    await services.close();
  });

  it('tells who watches its health when the database goes and comes back', async () => {
    let reachable = true;
    const database: Database = { ...rpc.database, isReady: async () => reachable };
    const services = await servicesOn(database, { now: Date.now });
    const answers = createClient(Health, services.as()).watch({})[Symbol.asyncIterator]();
    const next = async () => (await answers.next()).value?.status;

    const seen = [await next()];
    reachable = false;
    seen.push(await next());
    reachable = true;
    seen.push(await next());

    expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING, Status.SERVING]);
    await answers.return?.();
    await services.close();
  });

  it('reports its health by the protocol of gRPC', async () => {
    const { status } = await createClient(Health, rpc.as()).check({});

    expect(status).toBe(Status.SERVING);
  });
});

import { once } from 'node:events';
import { request } from 'node:http';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { type FailureReason, failed, failures, invalid, notFound } from '../../src/domain/errors/failure.ts';
import type { Route } from '../../src/gateway/route.ts';
import { routes } from '../../src/gateway/router.ts';
import { restErrorOf } from '../../src/http/errors.ts';
import type { Admit } from '../../src/http/rpc-client.ts';
import { readDocument } from '../support/documents.ts';
import { document, keyOf, templateOf } from '../support/openapi.ts';
import { startService } from '../support/server.ts';
import { until } from '../support/until.ts';
import { examples } from './examples.ts';
import { startGateway } from './given.ts';

const rpcRoutes = routes.filter(({ path }) => path !== '/health');
const bodyRoutes = rpcRoutes.filter(({ operation }) => operation.body !== undefined);

it('documents every reason with its status and code', () => {
  const rows = readDocument('docs/rest.md').matchAll(/^\| (\d{3}(?:, \d{3})*) \| `(\w+)` \| (.*) \|$/gm);
  const documented = [...rows].flatMap(([, statuses = '', code, reasons = '']) =>
    statuses.split(', ').map((status) => ({ status: Number(status), code, reasons })),
  );

  const undocumented = Object.keys(failures).filter((number) => {
    const { status, body, reason } = restErrorOf(failed(Number(number) as FailureReason, 'No'));
    const row = documented.find((each) => each.status === status && each.reasons.includes(`\`${reason}\``));
    return row?.code !== body.error.code;
  });

  expect(undocumented.map((number) => Reason[Number(number)])).toEqual([]);
});

describe('what a service fails with', () => {
  const cases: [FailureReason, number, string, string][] = [
    [Reason.BAD_REQUEST, 400, 'validation_failed', 'bad_request'],
    [Reason.MISSING_KEY, 401, 'unauthorized', 'missing_key'],
    [Reason.INVALID_KEY, 401, 'unauthorized', 'invalid_key'],
    [Reason.INSUFFICIENT_SCOPE, 401, 'unauthorized', 'insufficient_scope'],
    [Reason.INVALID_TOKEN, 401, 'unauthorized', 'invalid_token'],
    [Reason.TOKEN_USED, 401, 'unauthorized', 'token_used'],
    [Reason.ORIGIN_NOT_ALLOWED, 401, 'unauthorized', 'origin_not_allowed'],
    [Reason.NOT_FOUND, 404, 'not_found', 'not_found'],
    [Reason.CONFLICT, 409, 'validation_failed', 'conflict'],
    [Reason.EXPIRED, 410, 'validation_failed', 'expired'],
    [Reason.CLOSED, 410, 'validation_failed', 'closed'],
    [Reason.ARCHIVED, 410, 'validation_failed', 'archived'],
    [Reason.TOO_LARGE, 413, 'validation_failed', 'too_large'],
    [Reason.RATE_LIMITED, 429, 'validation_failed', 'rate_limited'],
    [Reason.INTERNAL, 500, 'internal_error', 'internal'],
    [Reason.UNAVAILABLE, 503, 'internal_error', 'unavailable'],
  ];

  it.each(cases)(
    'is told as documented on every route that describes it (%i → %i)',
    async (reason, status, code, word) => {
      await using gateway = await startGateway(
        failingWith(() => failed(reason, 'Because', { retryAfter: 7 })),
      );
      const concerned = rpcRoutes.filter((route) => statusesOf(route).includes(status));

      for (const route of concerned) {
        const reply = await send(gateway, route);

        expect([route.operation.name, reply.status]).toEqual([route.operation.name, status]);
        const retryable = [429, 503].includes(status);
        const isOfFile = route.operation.name === 'createUpload' && reason === Reason.TOO_LARGE;
        expect(reply.json).toEqual({
          error: {
            code,
            message: isOfFile ? 'answers.cv: Because' : 'Because',
            details: isOfFile ? [{ path: 'answers.cv', code: 'too_big', message: 'Because' }] : [],
            reason: word,
            retryable,
            ...(retryable && { retry_after: 7 }),
            next_call: expect.any(String),
            next: expect.stringMatching(/^[A-Z].*\.$/),
          },
        });
        expect(reply.headers.get('retry-after')).toBe('7');
      }
      expect(concerned.length).toBeGreaterThan(0);
    },
  );

  it('lists every refused value, as 422 with a body and as 400 without', async () => {
    const violations = [
      { path: 'a', code: 'custom' as const, message: 'No' },
      { path: 'b.0', code: 'too_big' as const, message: 'Too big' },
    ];
    await using gateway = await startGateway(failingWith(() => invalid(violations)));

    for (const route of rpcRoutes.filter((one) => statusesOf(one).includes(400))) {
      const reply = await send(gateway, route);

      const readsBody = route.operation.body !== undefined || route.operation.bodyTypes !== undefined;
      expect([route.operation.name, reply.status]).toEqual([route.operation.name, readsBody ? 422 : 400]);
      expect(reply.json.error.details).toEqual(violations);
    }
  });

  it.each(['form', 'session', 'submission', 'upload', 'version', 'webhook', 'delivery', 'key'])(
    'says how to find the id of what there is not, by routes that there are: %s',
    async (resource) => {
      await using gateway = await startGateway(failingWith(() => notFound(resource)));

      const { json } = await gateway.call('GET', '/v1/forms/form_1');

      const named = json.error.next.match(/GET (\S*\w)/g) ?? [];
      const lists = rpcRoutes.filter(({ method }) => method === 'get').map(({ path }) => `GET ${path}`);
      expect(lists).toEqual(expect.arrayContaining(named));
      const plural = resource === 'delivery' ? 'deliveries' : `${resource}s`;
      expect(named[0]).toMatch(resource === 'upload' ? /submissions$/ : new RegExp(`${plural}$`));
    },
  );

  it('names the missing scope in WWW-Authenticate', async () => {
    const failure = () => failed(Reason.INSUFFICIENT_SCOPE, 'No', { requiredScope: 'forms:read' });
    await using gateway = await startGateway(failingWith(failure));

    const reply = await gateway.call('GET', '/v1/forms');

    expect(reply.headers.get('www-authenticate')).toBe(
      'Bearer error="insufficient_scope", scope="forms:read"',
    );
  });

  it('names the submission that a session already has', async () => {
    await using gateway = await startGateway(
      failingWith(() => failed(Reason.CONFLICT, 'Submitted', { submissionId: 'sub_1' })),
    );

    const reply = await gateway.call('POST', '/v1/sessions/sess_1/submit', { json: {} });

    expect(reply.status).toBe(409);
    expect(reply.json.error.submission_id).toBe('sub_1');
  });

  it('shows nothing of a fault that nobody planned, but the id that is in the log', async () => {
    await using gateway = await startGateway(
      failingWith(() => new ConnectError('secret stack', Code.Internal)),
    );

    const reply = await gateway.call('GET', '/v1/forms');

    expect(reply.status).toBe(500);
    expect(reply.text).not.toContain('secret');
    const id = /request ([\w-]+)/.exec(reply.json.error.message)?.[1];
    expect(gateway.logged).toMatchObject([{ requestId: id }]);
  });
});

describe('every route that reads a query', () => {
  const submits = ['submit', 'createSubmission', 'submitDemo', 'activateForm'];
  const reading = rpcRoutes.filter(
    ({ operation }) =>
      Object.keys(operation.query?.shape ?? {}).length > 0 && !submits.includes(operation.name),
  );

  it('refuses a parameter that it does not know, with the nearest name, and one that comes twice', async () => {
    await using gateway = await startGateway(failingWith(() => failed(Reason.RATE_LIMITED, 'Admitted')));

    for (const route of reading) {
      const given = examples[route.operation.name]?.query ?? '';
      const [known = ''] = Object.keys(route.operation.query?.shape ?? {});
      const path = `${pathOf(route)}${given === '' ? '?' : '&'}`;
      const ask = (query: string) => gateway.call(verb(route), `${path}${query}`);

      const misspelt = await ask(`${known}x=1`);
      expect([route.operation.name, misspelt.status]).toEqual([route.operation.name, 400]);
      expect(misspelt.json.error.details).toEqual([
        expect.objectContaining({
          path: `${known}x`,
          code: 'unrecognized_keys',
          message: expect.stringContaining(`Did you mean \`${known}\`?`),
        }),
      ]);
      const twice = await ask(`${known}=1&${known}=2`);
      expect(twice.json.error.details).toContainEqual(
        expect.objectContaining({ path: known, message: 'Given more than once' }),
      );
    }
    expect(reading.length).toBeGreaterThan(10);
  });

  it('refuses names that every object of JavaScript has', async () => {
    await using gateway = await startGateway(answeringWith(() => () => ({ nextPageToken: '' })));

    const replies = ['constructor=1', 'constructor[x]=1', 'toString[a][b]=1'].map((query) =>
      gateway.call('GET', `/v1/forms?${query}`),
    );

    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([400, 400, 400]);
  });

  it('ignores what links get when they are shared', async () => {
    await using gateway = await startGateway(answeringWith(() => () => ({ nextPageToken: '' })));

    const reply = await gateway.call('GET', '/v1/forms?utm_source=a&utm_source=b&_ga=1');

    expect(reply.status).toBe(200);
  });
});

describe('every route with a body', () => {
  it('refuses what is not JSON, another media type, and too much of it', async () => {
    await using gateway = await startGateway(failingWith(() => invalid([])));

    for (const route of bodyRoutes) {
      const path = pathOf(route);
      const notJson = await gateway.call(verb(route), path, { body: '{', headers: json });
      const otherType = await gateway.call(verb(route), path, {
        body: 'a',
        headers: { 'content-type': 'text/csv' },
      });
      const tooLarge = await gateway.call(verb(route), path, { json: { a: 'x'.repeat(256 * 1024) } });

      expect([route.path, notJson.status, notJson.json.error.reason]).toEqual([
        route.path,
        400,
        'bad_request',
      ]);
      expect([route.path, otherType.status, otherType.json.error.reason]).toEqual([
        route.path,
        415,
        'media_type',
      ]);
      expect([route.path, tooLarge.status, tooLarge.json.error.reason]).toEqual([
        route.path,
        413,
        'too_large',
      ]);
    }
  });

  it('refuses a body of the wrong type, at its root, and one that nests too deep', async () => {
    await using gateway = await startGateway(failingWith(() => invalid([])));

    for (const route of bodyRoutes) {
      const list = await gateway.call(verb(route), pathOf(route), { json: [] });
      const deep = await gateway.call(verb(route), pathOf(route), {
        body: '['.repeat(50) + ']'.repeat(50),
        headers: json,
      });

      expect([route.path, list.status, deep.status]).toEqual([route.path, 422, 422]);
      expect(list.json.error.details[0]).toMatchObject({ path: '', code: 'invalid_type' });
    }
  });

  it('names every unknown property', async () => {
    await using gateway = await startGateway(failingWith(() => invalid([])));

    for (const route of bodyRoutes.filter(({ operation }) => operation.name !== 'submitDemo')) {
      const body = { ...examples[route.operation.name]?.json, nobody: 1, knows: 2 };
      const reply = await gateway.call(verb(route), pathOf(route), { json: body });

      expect([route.path, reply.status]).toEqual([route.path, 422]);
      expect(reply.json.error.details).toMatchObject([
        { path: 'nobody', code: 'unrecognized_keys' },
        { path: 'knows', code: 'unrecognized_keys' },
      ]);
    }
  });

  it.each<[string, Partial<Parameters<Gateway['call']>[2]>]>([
    ['the body', { json: { nobody: 1 } }],
    ['its syntax', { body: '{', headers: json }],
    ['its media type', { body: 'a', headers: { 'content-type': 'text/csv' } }],
    ['its size', { json: { a: 'x'.repeat(256 * 1024) } }],
    ['its encoding', { body: '{}', headers: { ...json, 'content-encoding': 'br' } }],
    ['its Idempotency-Key', { json: { nobody: 1 }, headers: { 'idempotency-key': 'x'.repeat(256) } }],
  ])('tells a stranger that a key is missing before it tells what is wrong with %s', async (_, request) => {
    const failure = () => failed(Reason.MISSING_KEY, 'No key');
    const fail = () => {
      throw failure();
    };
    await using gateway = await startGateway(
      answeringWith(() => fail),
      {
        admit: () => Promise.reject(failure()),
      },
    );

    for (const route of bodyRoutes.filter((one) => keyOf(one) !== 'none')) {
      const reply = await gateway.call(verb(route), pathOf(route), request);

      expect([route.path, reply.status, reply.json.error.reason]).toEqual([route.path, 401, 'missing_key']);
    }
  });
});

describe('a body that does not fit', () => {
  it('makes the gateway ask whether the caller may call, and makes no call', async () => {
    const asked: string[] = [];
    const called: string[] = [];
    const admit: Admit = async ({ localName }) => {
      asked.push(localName);
      return new Headers();
    };
    const recorded = (method: DescMethod) => () => {
      called.push(method.localName);
      return {};
    };
    await using gateway = await startGateway(answeringWith(recorded), { admit });
    const submitting = ['createSubmission', 'createManagedSubmission'];
    const checking = ({ operation }: Route) => submitting.includes(operation.rpc?.localName ?? '');
    const asking = bodyRoutes.filter((route) => !checking(route));

    for (const route of bodyRoutes) {
      const reply = await gateway.call(verb(route), pathOf(route), { json: [] });

      expect([route.path, reply.status]).toEqual([route.path, 422]);
    }

    expect(asked).toEqual(asking.map(({ operation }) => operation.rpc?.localName));
    expect(called).toEqual(['checkAnswers', 'checkManagedAnswers', 'getActivation']);
  });
});

describe('a large body', () => {
  it('is read once the caller is known and counted; a small one at once', async () => {
    const asked: string[] = [];
    const admit: Admit = async ({ localName }) => {
      asked.push(localName);
      return new Headers();
    };
    await using gateway = await startGateway(
      answeringWith(() => () => ({ submissionId: 'sub_1' })),
      { admit },
    );
    const post = (message: string) => {
      const body = JSON.stringify({ answers: { message } });
      const headers = { 'content-type': 'application/json', 'content-length': body.length };
      const call = request(`${gateway.url}/api/forms/form_1/submissions`, { method: 'POST', headers });
      return { send: () => call.end(body), call };
    };

    const large = post('x'.repeat(20_000));
    large.call.flushHeaders();
    await until(() => asked.length > 0);
    large.send();
    const [first] = await once(large.call, 'response');
    const small = post('x');
    small.send();
    const [second] = await once(small.call, 'response');

    expect([first.statusCode, second.statusCode]).toEqual([201, 201]);
    expect(asked).toEqual(['createSubmission']);
    for (const response of [first, second]) response.resume();
  });

  it('is counted as one call', async () => {
    await using service = await startService({ env: { RATE_LIMIT: 'on' } });
    const form = await service.givenPublishedForm();
    const answers = { email: 'ada@example.com', message: 'x'.repeat(9_000) };
    const submit = (source: string) =>
      service.post(`/api/forms/${form.id}/submissions`, { answers, source }, { key: null });

    const first = await submit('a');
    const refused = await submit('x'.repeat(20_000));
    const last = await submit('c');

    const left = [first, refused, last].map((reply) => reply.headers.get('ratelimit'));
    expect([first.status, refused.status, last.status]).toEqual([201, 422, 201]);
    expect(left).toEqual([59, 58, 57].map((calls) => expect.stringContaining(`r=${calls};`)));
  });
});

describe('paths', () => {
  it('answers 404 with the documented error where there is no route', async () => {
    await using gateway = await startGateway();

    for (const path of [
      '/',
      '/v1',
      '/api/forms',
      '/v1/unknown/x',
      '/api/forms/form_1/nothing',
      '//',
      '/v1/forms/a/b/c',
    ]) {
      const reply = await gateway.call('GET', path);

      expect([path, reply.status, reply.json.error.reason]).toEqual([path, 404, 'not_found']);
    }
  });

  it('answers 404 with Allow where the route has other methods', async () => {
    await using gateway = await startGateway();

    for (const { path } of routes) {
      const reply = await gateway.call(path.includes('/by-key/') ? 'POST' : 'PUT', path.replace(/:\w+/, 'x'));

      const methods = routes.filter((other) => other.path === path).map(verb);
      expect([path, reply.status, reply.json.error.reason]).toEqual([path, 404, 'method']);
      expect(reply.headers.get('allow')?.split(', ')).toEqual(expect.arrayContaining(methods));
    }
  });

  it.each([['/v1/forms/%ff'], ['/v1/forms/%'], ['/v1/sessions/%zz']])(
    'answers 400 to %s, which can’t be decoded',
    async (path) => {
      await using gateway = await startGateway();

      const reply = await fetch(gateway.url + path);

      expect(reply.status).toBe(400);
      expect(await reply.json()).toMatchObject({ error: { code: 'validation_failed', details: [] } });
    },
  );
});

type Gateway = Awaited<ReturnType<typeof startGateway>>;

const json = { 'content-type': 'application/json' };

const services: DescService[] = [
  AuditService,
  FormsService,
  SubmissionsService,
  SessionsService,
  WebhooksService,
  KeysService,
  UploadsService,
  Health,
];

/** Services of which every RPC fails, but for those that only tell whether a call would. */
function failingWith(failure: () => Error) {
  const fail = () => {
    throw failure();
  };
  const { checkAnswers, checkManagedAnswers } = SubmissionsService.method;
  const telling: DescMethod[] = [FormsService.method.getActivation, checkAnswers, checkManagedAnswers];
  return answeringWith((method) => (telling.includes(method) ? () => ({}) : fail));
}

function answeringWith(answer: (method: DescMethod) => () => object) {
  const handlers = ({ methods }: DescService) =>
    Object.fromEntries(methods.map((method) => [method.localName, answer(method)]));
  return (router: ConnectRouter) => {
    for (const service of services) router.service(service, handlers(service) as ServiceImpl<typeof service>);
  };
}

function send(gateway: Gateway, route: Route) {
  const { json: body, body: raw, type } = examples[route.operation.name] ?? {};
  return gateway.call(verb(route), pathOf(route), {
    ...(body && { json: body }),
    ...(raw && { body: raw }),
    ...(type && { headers: { 'content-type': type } }),
  });
}

const verb = (route: Route) => route.method.toUpperCase();
const pathOf = ({ path, operation }: Route) =>
  path.replace(':id', 'x_1') + (examples[operation.name]?.query ?? '');

function statusesOf({ method, path }: Route): number[] {
  const operation = document.paths[templateOf(path)]?.[method];
  return Object.keys((operation as { responses: object }).responses).map(Number);
}

import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { examples } from '../gateway/examples.ts';
import { engines } from '../support/database.ts';
import { fieldCases } from '../support/field-cases.ts';
import { givenOwnerSession } from '../support/owner.ts';
import { contactForm, startService, type TestService } from '../support/server.ts';
import { heapMib } from './heap.ts';
import {
  hostileBodies,
  hostileHeaders,
  hostileIds,
  hostileQueries,
  pick,
  seeded,
  spoiled,
} from './hostile-values.ts';

const SEED = 20_261_121;

/** `FUZZ_REQUESTS=10000` for a long run. */
const REST_REQUESTS = Number(process.env.FUZZ_REQUESTS ?? 2_500);
const RPC_REQUESTS = 1_500;

/** Thousands of requests, one after the other: ten seconds, on a busy machine many more. */
const TIMEOUT_MS = 180_000 + REST_REQUESTS * 20;

/** No answer takes so long, whatever else the machine does. */
const HANGS_MS = 20_000;

describe.each(engines)('on %s', { timeout: TIMEOUT_MS }, (engine) => {
  it('answers hostile and broken REST requests with well-formed refusals, never with 5xx', async () => {
    await using service = await startService({ engine });
    const ids = await givenOneOfEach(service);
    const routes = await documentedRoutes(service);
    const random = seeded(SEED);
    const complaints: string[] = [];
    const heap: number[] = [];

    for (let count = 0; count < REST_REQUESTS; count += 1) {
      if (count % Math.ceil(REST_REQUESTS / 10) === 0) heap.push(heapMib());
      const { method, path, name, statuses } = pick(routes, () => (count % routes.length) / routes.length);
      // What ends a thing does not get it, or most requests would find nothing there.
      const ends = method === 'DELETE' || path.endsWith('/archive');
      const id = random() < 0.7 && !ends ? idFor(path, ids) : pick(hostileIds, random);
      const query = random() < 0.4 ? pick(hostileQueries, random) : '';
      const body = method === 'GET' ? undefined : bodyFor(name, random);
      const headers = {
        ...(random() < 0.8 && { authorization: `Bearer ${service.key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(random() < 0.4 && pick(hostileHeaders, random)),
      };
      const url = `${service.url}${path.replace(/\{\w+\}/, id)}${query}`;
      // With an id that ends the path, or adds to it, it is another route.
      const isRoute = !/^$|[/?#\\]/.test(decodeURIComponentOrNot(id));
      const complaint = await send(method, url, headers, body).then(
        (answer) => complaintAbout(answer, isRoute ? statuses : undefined),
        String,
      );
      if (complaint) complaints.push(`#${count} ${method} ${path} ${JSON.stringify(headers)}: ${complaint}`);
    }

    expect(routes.length).toBeGreaterThan(35);
    expect(complaints).toEqual([]);
    expect(errorsIn(service)).toEqual([]);
    const [, early = 0] = heap;
    expect(heapMib() - early, `MiB of heap: ${heap.join(', ')}`).toBeLessThan(64);
    expect((await service.get('/health')).json).toEqual({ ok: true });
    expect('polluted' in {}).toBe(false);
  });

  it('answers hostile and broken RPCs with the codes of refusals, never with 5xx', async () => {
    await using service = await startService({ engine });
    const ids = await givenOneOfEach(service);
    const owner = await givenOwnerSession(service, 'owner@example.com', ids.forms ?? '');
    const random = seeded(SEED + 1);
    const complaints: string[] = [];

    for (let count = 0; count < RPC_REQUESTS; count += 1) {
      const method = pick(rpcs, () => (count % rpcs.length) / rpcs.length);
      const [type, body] = rpcBody(ids, random);
      const headers = {
        'content-type': type,
        'connect-protocol-version': '1',
        // What waits for a session answers shortly before.
        'connect-timeout-ms': '3000',
        ...(random() < 0.8 &&
          method.name !== 'SignOut' && {
            authorization: `Bearer ${method.parent === OwnersService ? owner : service.key}`,
          }),
      };
      const path = `/${method.parent.typeName}/${method.name}`;
      const answer = await send('POST', service.url + path, headers, body);
      if (answer.status >= 500 || /"code":"(internal|unknown|data_loss)"/.test(answer.body)) {
        complaints.push(
          `#${count} ${path} ${type} ${body.toString('utf8', 0, 300)}: ${answer.status} ${answer.body}`,
        );
      }
    }

    expect(rpcs.length).toBeGreaterThan(35);
    expect(complaints).toEqual([]);
    expect(errorsIn(service)).toEqual([]);
    expect((await service.get('/health')).json).toEqual({ ok: true });
  });

  it('answers requests whose body is cut off, and goes on serving', async () => {
    await using service = await startService({ engine });
    const { url } = service;

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => sendHalf(`${url}/api/forms/create`, '{"name": "cut')),
    );

    expect(answers.every((status) => status === 'closed' || status === 400)).toBe(true);
    expect((await service.get('/health')).json).toEqual({ ok: true });
  });
});

/** What the service logged as its own fault. */
function errorsIn({ logged }: TestService): string[] {
  return logged.filter((line) => JSON.parse(line).level >= 50);
}

const rpcs = [
  AuditService,
  FormsService,
  HostedService,
  KeysService,
  MailService,
  OwnersService,
  SessionsService,
  SubmissionsService,
  UploadsService,
  WebhooksService,
]
  .flatMap((service) => service.methods)
  .filter((method) => method.methodKind === 'unary');

/** One of each thing, so that requests get past the look-up of their id. */
async function givenOneOfEach(service: TestService): Promise<Ids> {
  const form = await service.givenPublishedForm({ fields: [...contactForm.fields, ...fieldsOfCases] });
  const [submitted, session, webhook] = await Promise.all([
    service.post(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } }),
    service.post(`/v1/forms/${form.id}/sessions`, {}),
    service.post('/v1/webhooks', { url: 'https://example.com/hook', events: ['submission.created'] }),
  ]);
  return {
    forms: form.id,
    submissions: submitted.json.submission_id,
    sessions: session.json.session.id,
    webhooks: webhook.json.webhook.id,
  };
}

/** Every route of the API description, so that a route added later is attacked as well. */
async function documentedRoutes(
  service: TestService,
): Promise<{ method: string; path: string; name: string; statuses: string[] }[]> {
  const { json } = await service.get('/openapi.json');
  return Object.entries<Record<string, { operationId: string; responses: object }>>(json.paths).flatMap(
    ([path, item]) =>
      Object.entries(item).map(([method, { operationId: name, responses }]) => ({
        method: method.toUpperCase(),
        path,
        name,
        statuses: Object.keys(responses),
      })),
  );
}

function decodeURIComponentOrNot(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function idFor(path: string, ids: Ids): string {
  const [, , resource] = path.split('/');
  return resource !== undefined && Object.hasOwn(ids, resource) ? (ids[resource] ?? '') : 'dlv_x';
}

const sampleBody = {
  ...contactForm,
  description: 'A form',
  settings: {
    allowPartial: true,
    theme: { mode: 'dark', accentColor: '#336699' },
    allowedOrigins: ['https://example.com'],
  },
  answers: { email: 'ada@example.com', message: 'Hello' },
  source: 'test',
  email: 'owner@example.com',
  url: 'https://example.com/hook',
  events: ['submission.created'],
  secret: 'a-secret-of-ours',
  scopes: ['forms:read'],
  expires_in: 60,
  prefill: { email: 'ada@example.com' },
  metadata: { order: 1 },
  active: true,
  status: 'failed',
};

/** What the route reads, spoiled in one place; or a part of what any route reads; or a body that is broken. */
/** A field of every kind that takes answers of several parts or bounds, and answers to them. */
const fieldsOfCases = fieldCases.map(({ field }, index) => ({ id: `case${index}`, ...field }));
const answersToCases = Object.fromEntries(
  fieldCases.flatMap(({ good: [answer] }, index) => (answer === undefined ? [] : [[`case${index}`, answer]])),
);

function bodyFor(name: string, random: () => number): Buffer {
  if (random() < 0.2) return Buffer.from(pick(hostileBodies, random));
  const example = examples[name]?.json;
  if (example !== undefined && random() < 0.7) return Buffer.from(JSON.stringify(spoiled(example, random)));
  const names = Object.keys(sampleBody).filter(() => random() < 0.4);
  if (random() < 0.2) {
    const fields = [pick(fieldsOfCases, random), pick(fieldsOfCases, random)];
    return Buffer.from(JSON.stringify(spoiled({ ...contactForm, fields }, random)));
  }
  if (random() < 0.2) {
    const answers = { email: 'ada@example.com', ...answersToCases };
    return Buffer.from(JSON.stringify(spoiled({ answers }, random)));
  }
  const all = Object.entries(sampleBody);
  const some = random() < 0.5 ? definitionNames : names;
  return Buffer.from(
    JSON.stringify(spoiled(Object.fromEntries(all.filter(([name]) => some.includes(name))), random)),
  );
}

const definitionNames = ['name', 'slug', 'description', 'fields', 'delivery', 'settings'];

function rpcBody(ids: Ids, random: () => number): [string, Buffer] {
  if (random() < 0.2) {
    const bytes = Buffer.from(Array.from({ length: 200 }, () => Math.floor(random() * 256)));
    return [
      pick(['application/proto', 'application/json', 'application/grpc-web', 'text/plain'], random),
      bytes,
    ];
  }
  if (random() < 0.15) return ['application/json', Buffer.from(pick(hostileBodies, random))];
  const sample = {
    formId: ids.forms,
    sessionId: ids.sessions,
    submissionId: ids.submissions,
    webhookId: ids.webhooks,
    deliveryId: 'dlv_x',
    keyId: 'key_x',
    uploadId: 'upl_x',
    token: 'token',
    email: 'owner@example.com',
    definition: {
      name: 'Contact',
      slug: 'contact',
      fields: [
        {
          id: 'email',
          type: 'FORM_FIELD_TYPE_EMAIL',
          visibleWhen: { negation: { all: { conditions: [] } } },
        },
      ],
      delivery: { email: {} },
    },
    answers: sampleBody.answers,
    prefill: sampleBody.prefill,
    metadata: sampleBody.metadata,
    source: 'test',
    pageSize: 5,
    pageToken: '',
    skip: 1,
    events: ['WEBHOOK_EVENT_SUBMISSION_CREATED'],
    scopes: ['forms:read'],
    name: 'name',
    expiresIn: '60s',
    createdAfter: '2026-01-01T00:00:00Z',
    inputs: [{ name: 'email', values: ['ada@example.com'] }],
    fieldId: 'email',
    content: 'AAAA',
    text: 'ada',
    format: 'EXPORT_FORMAT_CSV',
    filter: { status: 'SUBMISSION_STATUS_ACCEPTED', createdAfter: '2026-01-01T00:00:00Z' },
    stopped: true,
    deviceToken: 'token',
  };
  return ['application/json', Buffer.from(JSON.stringify(spoiled(sample, random)))];
}

/** What is wrong with an answer, or undefined. A page is as good as JSON where pages are served. */
/** `described` are the statuses that the API description has for the route, if it was that. */
function complaintAbout({ status, headers, body }: Answer, described?: string[]): string | undefined {
  if (status >= 500) return `${status} ${body}`;
  if (described?.includes(String(status)) === false) return `undocumented ${status}: ${body}`;
  if (status < 400 || headers['content-type']?.startsWith('text/html')) return undefined;
  try {
    const { error } = JSON.parse(body);
    const whole =
      codes.includes(error.code) &&
      typeof error.message === 'string' &&
      typeof error.reason === 'string' &&
      Array.isArray(error.details) &&
      error.details.every((detail: Record<string, unknown>) =>
        [detail.path, detail.code, detail.message].every((text) => typeof text === 'string'),
      );
    return whole && statuses.includes(status) ? undefined : `malformed ${status}: ${body}`;
  } catch {
    return `no JSON, ${status}: ${body.slice(0, 200)}`;
  }
}

const codes = ['validation_failed', 'not_found', 'unauthorized', 'internal_error'];
const statuses = [400, 401, 404, 409, 410, 413, 415, 422, 429];

/** One request by `node:http`, which sends what `fetch` would refuse to. */
function send(method: string, url: string, headers: Record<string, string>, body?: Buffer): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { origin, port } = new URL(url);
  const path = url.slice(origin.length);
  // Node leaves it out on DELETE, and the body would be taken for a next request.
  const length = body === undefined ? {} : { 'content-length': body.length };
  // By its address: each request opens a connection of its own, and would look up the name first.
  const to = { host: '127.0.0.1', port, agent: false };
  const signal = AbortSignal.timeout(HANGS_MS);
  const outgoing = request(
    { ...to, method, path, signal, headers: { ...headers, ...length } },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Answer['headers'],
          body: text,
        });
      });
      response.on('error', reject);
      if (!response.headers['content-type']?.startsWith('text/event-stream')) return;
      // It ends when its reader goes.
      resolve({ status: response.statusCode ?? 0, headers: {}, body: '' });
      outgoing.destroy();
    },
  );
  outgoing.on('error', reject);
  outgoing.end(body);
  return promise;
}

/** Announces more than it sends, and hangs up. */
function sendHalf(url: string, start: string): Promise<number | 'closed'> {
  const { promise, resolve } = Promise.withResolvers<number | 'closed'>();
  const headers = { 'content-type': 'application/json', 'content-length': '1000' };
  const outgoing = request(url, { method: 'POST', headers, agent: false }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  });
  outgoing.on('error', () => resolve('closed'));
  outgoing.write(start, () => outgoing.destroy());
  return promise;
}

type Ids = Record<string, string>;
type Answer = { status: number; headers: Record<string, string | undefined>; body: string };

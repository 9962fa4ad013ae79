import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Idempotency } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { Health } from '../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js';
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
import { engines } from '../support/database.ts';
import { givenOwnerSession } from '../support/owner.ts';
import { startService, type TestService } from '../support/server.ts';
import { envelope, type Http2Connection, lastEnvelope, openHttp2 } from '../support/wire.ts';
import { heapMib } from './heap.ts';
import { pick, seeded } from './hostile-values.ts';
import { type KnownValues, wireMessage } from './wire-messages.ts';

const SEED = 20_261_122;

/** `FUZZ_CALLS=40000` for a long run. */
const CALLS = Number(process.env.FUZZ_CALLS ?? 2_000);
const LANES = 8;
const HANGS_MS = 20_000;

describe.each(engines)('on %s', { timeout: 180_000 + CALLS * 20 }, (engine) => {
  it('answers calls made from the protos, by every protocol, with documented codes and none as its own fault', async () => {
    await using service = await startService({ engine });
    using connection = openHttp2(service.grpcUrl);
    const known = await knownValues(service);
    const owner = await givenOwnerSession(service, 'owner@example.com', ...(known.form_id ?? []));
    const random = seeded(SEED);
    const complaints: string[] = [];
    const seen = new Map<string, number>();
    const heap: number[] = [];
    let next = 0;

    async function lane() {
      while (next < CALLS) {
        const count = next;
        next += 1;
        if (count % Math.ceil(CALLS / 10) === 0) heap.push(heapMib());
        const call = callOf(
          pick(methods, () => (count % methods.length) / methods.length),
          known,
          random,
        );
        const said = await Promise.race([
          answerOf(service, connection, { ...call, key: call.ofOwner ? owner : service.key }),
          afterMs(HANGS_MS, 'hangs'),
        ]);
        seen.set(said, (seen.get(said) ?? 0) + 1);
        const isFine = documented.has(said) || (call.isEndless && said === 'DeadlineExceeded');
        if (!isFine)
          complaints.push(`#${count} ${call.path} ${call.protocol} ${call.message.toString('hex')}: ${said}`);
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane));

    expect(complaints).toEqual([]);
    expect(service.logged.filter((line) => JSON.parse(line).level >= ERROR)).toEqual([]);
    expect([...seen.keys()]).toEqual(expect.arrayContaining(['ok', 'InvalidArgument', 'NotFound']));
    const [, early = 0] = heap;
    expect(heapMib() - early, `MiB of heap: ${heap.join(', ')}`).toBeLessThan(64);
    expect((await service.get('/health')).json).toEqual({ ok: true });
  });
});

const services: DescService[] = [
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
  Health,
  ServerReflection,
];
const methods = services.flatMap((service) => service.methods);

/** What errors.proto names, but for faults of the service. */
const documented = new Set([
  'ok',
  ...[
    Code.InvalidArgument,
    Code.NotFound,
    Code.AlreadyExists,
    Code.PermissionDenied,
    Code.ResourceExhausted,
    Code.FailedPrecondition,
    Code.Unauthenticated,
  ].map((code) => Code[code]),
]);

/** As pino numbers it. */
const ERROR = 50;

/** One of each thing that can be named. */
async function knownValues(service: TestService): Promise<KnownValues> {
  const form = await service.givenPublishedForm();
  const draft = await service.givenDraft();
  const [submitted, session, webhook] = await Promise.all([
    service.post(`/api/forms/${form.id}/submissions`, { answers: { email: 'ada@example.com' } }),
    service.post(`/v1/forms/${form.id}/sessions`, {}),
    service.post('/v1/webhooks', { url: 'https://example.com/hook', events: ['submission.created'] }),
  ]);
  return {
    form_id: [form.id, draft.id],
    session_id: [session.json.session.id],
    submission_id: [submitted.json.submission_id],
    webhook_id: [webhook.json.webhook.id],
    page_token: [''],
    idempotency_key: ['', 'once', 'twice'],
    email: ['owner@example.com'],
    url: ['https://example.com/hook', 'http://169.254.169.254/'],
    scopes: ['forms:read', '*'],
    field_id: ['email', 'message'],
    service: ['', 'disk', 'headlessforms.v1.FormsService'],
  };
}

function callOf(method: DescMethod, known: KnownValues, random: () => number): Call {
  // What ends a thing does not get it, or most calls would find nothing there.
  const ends = /^(Delete|Archive|Cancel)/.test(method.name);
  const message = Buffer.from(wireMessage(method.input, random, ends ? {} : known));
  const reads = method.idempotency === Idempotency.NO_SIDE_EFFECTS && method.methodKind === 'unary';
  const protocols: Call['protocol'][] = [
    'connect',
    'grpc-web',
    'grpc',
    ...(reads ? (['get'] as const) : []),
  ] satisfies Call['protocol'][];
  const isEndless = /^(Listen|Watch\w*|AwaitSession)$/.test(method.name);
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    protocol: method.methodKind === 'bidi_streaming' ? 'grpc' : pick(protocols, random),
    isUnary: method.methodKind === 'unary',
    isEndless,
    message,
    timeoutMs: isEndless ? 20 : HANGS_MS / 2,
    ofOwner: method.parent === OwnersService && random() < 0.95,
    authorized: random() < 0.9 && method.name !== 'SignOut',
  };
}

/** `ok`, or the name of the code that a call failed with. */
async function answerOf(
  service: TestService,
  connection: Http2Connection,
  call: Call & { key: string },
): Promise<string> {
  const { path, protocol, isUnary, message, timeoutMs, authorized, key } = call;
  const headers = {
    ...(authorized && { authorization: `Bearer ${key}` }),
    [protocol.startsWith('grpc') ? 'grpc-timeout' : 'connect-timeout-ms']: protocol.startsWith('grpc')
      ? `${timeoutMs}m`
      : String(timeoutMs),
  };
  if (protocol === 'grpc') {
    const type = { 'content-type': 'application/grpc' };
    const reply = await connection.call(path, [envelope(message)], { ...headers, ...type });
    return codeIn({ ...reply.headers, ...reply.trailers }['grpc-status']);
  }
  if (protocol === 'get') {
    const query = `connect=v1&encoding=proto&base64=1&message=${message.toString('base64url')}`;
    const reply = await fetch(`${service.url}${path}?${query}`, { headers });
    if (reply.status === 414 || reply.status === 431 || reply.status === 413) return 'ResourceExhausted';
    return connectCode(reply.status, Buffer.from(await reply.arrayBuffer()));
  }
  const isWeb = protocol === 'grpc-web';
  const type = isWeb ? 'application/grpc-web+proto' : `application/${isUnary ? '' : 'connect+'}proto`;
  const reply = await fetch(service.url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': type },
    body: isWeb || !isUnary ? envelope(message) : message,
  });
  const body = Buffer.from(await reply.arrayBuffer());
  if (!isWeb && isUnary) return connectCode(reply.status, body);
  if (!isWeb) return reply.status === 200 ? endOfStream(body) : connectCode(reply.status, body);
  const status =
    reply.headers.get('grpc-status') ?? /grpc-status: (\d+)/.exec(lastEnvelope(body).toString())?.[1];
  return codeIn(status);
}

function connectCode(status: number, body: Buffer): string {
  if (status === 200) return 'ok';
  const { code, details } = JSON.parse(body.toString());
  if (!details?.length) return `${code} without a detail`;
  return nameOf(code);
}

function endOfStream(body: Buffer): string {
  const { error } = JSON.parse(lastEnvelope(body).toString());
  return error === undefined ? 'ok' : nameOf(error.code);
}

function codeIn(status: string | undefined): string {
  if (status === undefined) return 'no status';
  return status === '0' ? 'ok' : (Code[Number(status)] ?? status);
}

/** `InvalidArgument` for `invalid_argument`. */
function nameOf(code: string): string {
  return code.replace(/(^|_)([a-z])/g, (_match, _start, letter: string) => letter.toUpperCase());
}

function afterMs(ms: number, what: string): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, ms, what).unref());
}

type Call = {
  path: string;
  protocol: 'connect' | 'grpc-web' | 'grpc' | 'get';
  isUnary: boolean;
  isEndless: boolean;
  message: Buffer;
  timeoutMs: number;
  /** Whether the credential is an owner's session, not a key. */
  ofOwner: boolean;
  authorized: boolean;
};

import {
  clone,
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  isFieldSet,
  type Message,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as Level, StructSchema } from '@bufbuild/protobuf/wkt';
import { Code, type ContextValues, createClient, type Transport } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HostedGoal, HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { policies } from '../../src/domain/methods.ts';
import { respondentCode } from '../../src/domain/sessions/respondent.ts';
import { ADDRESS, auditedCalls, type Given, givenThings } from '../support/audited-calls.ts';
import { engines, shareOf } from '../support/database.ts';
import { failureOf } from '../support/failures.ts';
import { startServices, type TestServices } from '../support/services.ts';

/** The calls that change something and of which the audit log has nothing. */
const unaudited: Record<string, (given: Given) => Promise<unknown>> = {
  'SubmissionsService.createSubmission': ({ to, formId }) =>
    createClient(SubmissionsService, to).createSubmission({ formId, answers: { email: ADDRESS } }),
  'SubmissionsService.createManagedSubmission': ({ to, formId }) =>
    createClient(SubmissionsService, to).createManagedSubmission({ formId, answers: { email: ADDRESS } }),
  'SubmissionsService.createStreamToken': ({ to, formId }) =>
    createClient(SubmissionsService, to).createStreamToken({ formId }),
  'SubmissionsService.createDemoSubmission': ({ to }) =>
    createClient(SubmissionsService, to).createDemoSubmission({
      answers: { name: 'Ada', email: ADDRESS, message: 'Hello' },
    }),
  'SessionsService.submitSession': ({ to, sessionId }) =>
    createClient(SessionsService, to).submitSession({ sessionId, answers: { email: ADDRESS } }),
  'UploadsService.createUpload': ({ to, formId }) =>
    createClient(UploadsService, to).createUpload(fileFor(formId)),
  'UploadsService.uploadFile': ({ to, formId }) =>
    createClient(UploadsService, to).uploadFile(
      (async function* () {
        yield fileFor(formId);
      })(),
    ),
  'OwnersService.requestSignIn': ({ rpc }) =>
    createClient(OwnersService, rpc.as()).requestSignIn({ email: ADDRESS }),
  'OwnersService.markOwnedSubmissionsRead': ({ owner, formId, submissionId }) =>
    owner.markOwnedSubmissionsRead({ formId, submissionId }),
  'HostedService.getHosted': ({ to, sessionId }) => createClient(HostedService, to).getHosted({ sessionId }),
  'HostedService.openHostedSession': async ({ to, formId }) => {
    const hosted = createClient(HostedService, to);
    const { session } = await hosted.getHosted({ formId });
    await hosted.openHostedSession({ formId, issueToken: session?.issueToken ?? '' });
  },
  'HostedService.postHosted': async ({ to, formId }) => {
    const hosted = createClient(HostedService, to);
    const { session } = await hosted.getHosted({ formId });
    await hosted.postHosted({
      formId,
      inputs: [{ name: 'email', values: [ADDRESS] }],
      goal: HostedGoal.FORWARD,
      page: 1,
      issueToken: session?.issueToken ?? '',
    });
  },
  'HostedService.submitPostedForm': ({ to, formId }) =>
    createClient(HostedService, to).submitPostedForm({
      formId,
      inputs: [{ name: 'email', values: [ADDRESS] }],
    }),
  'HostedService.sendRespondentCode': (given) => sendCode(given),
  'HostedService.giveRespondentCode': async (given) => {
    const sessionId = await sendCode(given);
    const [row] = await given.rpc.database.select(
      'select token_hash from mailed_links where session_id = $1',
      [sessionId],
    );
    const code = respondentCode(given.rpc.secretKey, String(row?.token_hash));
    await createClient(HostedService, given.to).giveRespondentCode({ sessionId, code, browser });
  },
};

const browser = 'a-secret-of-this-browser-alone';

/** Returns the session whose respondent is mailed. */
async function sendCode({ to, rpc, formId }: Given): Promise<string> {
  const { session } = await rpc.sessions.createSession(
    { subject: { case: 'formId', value: formId }, respondent: { email: ADDRESS } },
    rpc.owner,
  );
  const sessionId = session?.id ?? '';
  await createClient(HostedService, to).sendRespondentCode({ sessionId, browser });
  return sessionId;
}

const fileFor = (formId: string) => ({
  target: { case: 'formId' as const, value: formId },
  fieldId: 'cv',
  filename: 'cv.txt',
  content: Buffer.from('my life'),
});

const changing = [...policies.keys()].filter(
  ({ parent, idempotency }) =>
    parent.typeName.startsWith('headlessforms.') && idempotency !== Level.NO_SIDE_EFFECTS,
);
const calls: Record<string, (given: Given) => Promise<unknown>> = { ...unaudited, ...auditedCalls };
const nameOf = ({ parent, localName }: DescMethod) => `${parent.name}.${localName}`;
const takesKey = ({ input }: DescMethod) => input.field.idempotencyKey !== undefined;

it('says of each call that takes no key and has an effect that it is idempotent', () => {
  const unsaid = changing.filter((method) => !takesKey(method) && method.idempotency !== Level.IDEMPOTENT);

  expect(unsaid.map(nameOf)).toEqual([]);
});

describe.each(engines)('a call that is repeated with its key, on %s,', (engine) => {
  let rpc: TestServices;

  beforeAll(async () => {
    rpc = await startServices(engine);
  });
  afterAll(() => rpc[Symbol.asyncDispose]());

  it.each(shareOf(changing, engine).map((method) => [nameOf(method), method] as const))(
    'has the effect of one: %s',
    async (name, method) => {
      const given = await givenThings(rpc);
      const repeats: Repeat[] = [];
      const repeating = (transport: Transport) => repeatCalls(transport, method, rpc, repeats);
      const as: TestServices['as'] = (...who) => repeating(rpc.as(...who));

      await calls[name]?.({
        ...given,
        rpc: { ...rpc, as },
        headers: {},
        owner: createClient(OwnersService, as(given.ownerToken)),
        to: as(rpc.key),
      });

      expect(repeats.length, `${name} is not called`).toBeGreaterThan(0);
      for (const { first, second, before, after } of repeats) {
        expect(after).toEqual(before);
        if (takesKey(method)) expect(second).toEqual(first);
      }
    },
  );

  it.each(shareOf(changing.filter(takesKey), engine).map((method) => [nameOf(method), method] as const))(
    'is another one with any field changed, and of another caller: %s',
    async (name, method) => {
      const given = await givenThings(rpc);
      const others = rpc.as(await rpc.givenKey({ project: 'default' }));
      const outcomes: Outcome[] = [];
      const varying = (transport: Transport) => varyCalls(transport, method, { rpc, others, outcomes });
      const as: TestServices['as'] = (...who) => varying(rpc.as(...who));

      await calls[name]?.({
        ...given,
        rpc: { ...rpc, as },
        headers: {},
        owner: createClient(OwnersService, as(given.ownerToken)),
        to: as(rpc.key),
      });

      expect(outcomes.length, `${name} is not called`).toBeGreaterThan(1);
      const expected = outcomes.map(({ field }) => [field, uncounted[name]?.[field] ?? 'refused']);
      expect(outcomes.map(({ field, outcome }) => [field, outcome])).toEqual(expected);
    },
  );

  it('gives the same secret again, keeps none in the clear, and refuses other content', async () => {
    const { webhookId } = await givenThings(rpc);
    const rotate = (request: object, options = rpc.owner) =>
      rpc.webhooks.rotateWebhookSecret({ webhookId, idempotencyKey: 'rotation', ...request }, options);

    const replies = await Promise.all([rotate({}), rotate({}), rotate({})]);
    const later = await rotate({});
    const other = await failureOf(rotate({ effectiveIn: { seconds: 60n } }));
    const rows = await rpc.database.select('select * from idempotency_keys');

    expect(replies).toEqual([later, later, later]);
    expect(later.secret).toMatch(/^whsec_/);
    expect(other.code).toBe(Code.AlreadyExists);
    expect(JSON.stringify(rows)).not.toContain(later.secret);
    const [row] = await rpc.database.select('select secret from webhooks where id = $1', [webhookId]);
    expect(rpc.secrets.open(String(row?.secret))).toBe(later.secret);
  });

  it('gives the webhook secret of an activation again though its token is used', async () => {
    const delivery = { channel: { case: 'webhook', value: { url: 'https://one.example.com/' } } } as const;
    const { id: formId, token } = await rpc.givenDraft(rpc.key, { delivery });
    const activation = { formId, activationToken: token, email: ADDRESS };
    const { activateForm } = createClient(FormsService, rpc.as());

    const first = await activateForm({ ...activation, idempotencyKey: 'activation' });
    const second = await activateForm({ ...activation, idempotencyKey: 'activation' });
    const other = await failureOf(activateForm({ ...activation, idempotencyKey: 'another' }));

    expect(first.webhookSecret).toMatch(/^whsec_/);
    expect(second).toEqual(first);
    expect(other.code).toBe(Code.Unauthenticated);
  });

  it('extends a session once, and keeps another key apart', async () => {
    const { sessionId } = await givenThings(rpc);
    const extend = (idempotencyKey: string) =>
      rpc.sessions.updateSession({ sessionId, extendBy: { seconds: 3600n }, idempotencyKey }, rpc.owner);

    const [first, second] = await Promise.all([extend('an hour'), extend('an hour')]);
    const third = await extend('another hour');

    const end = (reply: typeof first) => Number(reply.session?.expireTime?.seconds);
    expect(second).toEqual(first);
    expect(end(third) - end(first)).toBe(3600);
  });

  it('submits a session once, also with answers in another order, and not for another session', async () => {
    const { sessionId, formId } = await givenThings(rpc);
    const submit = (id: string, answers: object) =>
      rpc.sessions.submitSession(
        { sessionId: id, answers: { ...answers }, idempotencyKey: 'the end' },
        rpc.owner,
      );
    const { session: other } = await rpc.sessions.createSession(
      { subject: { case: 'formId', value: formId } },
      rpc.owner,
    );

    const [first, second] = await Promise.all([
      submit(sessionId, { email: ADDRESS, cv: null }),
      submit(sessionId, { cv: null, email: ADDRESS }),
    ]);
    const third = await submit(sessionId, { email: ADDRESS, cv: null });
    const refused = await failureOf(submit(sessionId, { email: 'else@example.com' }));
    const ofOther = await submit(other?.id ?? '', { email: ADDRESS });
    const without = await failureOf(rpc.sessions.submitSession({ sessionId }, rpc.owner));

    expect([second, third]).toEqual([first, first]);
    expect(refused.code).toBe(Code.AlreadyExists);
    expect(ofOther.submission?.id).not.toBe(first.submission?.id);
    expect(without.code).toBe(Code.FailedPrecondition);
  });

  it('ends a session at a time that is given, once', async () => {
    const { sessionId } = await givenThings(rpc);
    const seconds = BigInt(Math.floor(Date.now() / 1000) + 7200);
    const update = (request: object) => rpc.sessions.updateSession({ sessionId, ...request }, rpc.owner);

    const first = await update({ expireTime: { seconds } });
    const second = await update({ expireTime: { seconds } });
    const refused = await Promise.all([
      failureOf(update({ expireTime: { seconds: 1n } })),
      failureOf(update({ expireTime: { seconds: seconds + 31n * 86_400n } })),
      failureOf(update({ expireTime: { seconds }, extendBy: { seconds: 1n } })),
    ]);

    expect(first.session?.expireTime?.seconds).toBe(seconds);
    expect(second).toEqual(first);
    expect(refused.map(({ code }) => code)).toEqual(Array(3).fill(Code.InvalidArgument));
  });

  it('is not answered with what was erased', async () => {
    const { sessionId } = await givenThings(rpc);
    const request = { sessionId, metadata: { who: 'mallory' }, idempotencyKey: 'erased' };
    await rpc.sessions.updateSession(request, rpc.owner);

    // A call looks through the project for about two seconds.
    for (let pageToken: string | undefined; pageToken !== ''; ) {
      const request = { value: 'mallory', pageToken: pageToken ?? '' };
      pageToken = (await rpc.submissions.eraseSubmissions(request, rpc.owner)).nextPageToken;
    }

    expect((await failureOf(rpc.sessions.updateSession(request, rpc.owner))).code).toBe(Code.NotFound);
  });
});

/**
 * What becomes of a call that another one's key comes with, where it is not refused as another request: by what was
 * changed, the field or the caller.
 */
const uncounted: Record<string, Record<string, Outcome['outcome']>> = Object.fromEntries(
  changing.filter(takesKey).map((method) => {
    const own: Record<string, Outcome['outcome']> = {
      caller: 'its own',
      // Whose keys count for a form or a session count for others apart.
      ...(method.parent === SubmissionsService && {
        caller: 'repeated',
        formId: 'its own',
        honeypot: 'repeated',
      }),
      ...(method.localName === 'submitSession' && { caller: 'repeated', sessionId: 'its own' }),
      ...(method.localName === 'createSession' && {
        formId: 'its own',
        definition: 'its own',
        schema: 'its own',
      }),
      // What counts of a post are its source and answers. No field has the name of the input that is added, which the
      // reply says; a text for a language is refused.
      ...(method.localName === 'submitPostedForm' && {
        caller: 'repeated',
        formId: 'its own',
        inputs: 'its own',
        honeypot: 'repeated',
        nextUrl: 'its own',
        pageUrl: 'repeated',
        errorUrl: 'repeated',
        violations: 'its own',
        language: 'its own',
      }),
      // Nothing of a file is read before it is known what it is for.
      ...(method.parent === UploadsService && {
        formId: 'its own',
        sessionId: 'its own',
        fieldId: 'its own',
      }),
    };
    return [nameOf(method), own];
  }),
);

/** Makes the first call of `method`, and then as another caller and with each field of the request changed. */
function varyCalls(
  transport: Transport,
  method: DescMethod,
  { rpc, others, outcomes }: { rpc: TestServices; others: Transport; outcomes: Outcome[] },
): Transport {
  const idempotencyKey = `call of ${crypto.randomUUID()}`;
  const anonymous = (header: CallOf<DescMessage>[2]) => {
    const headers = new Headers(header);
    headers.delete('authorization');
    return headers;
  };
  async function vary<T>(
    first: () => Promise<T>,
    variants: [field: string, call: () => Promise<T>][],
    answerOf: (reply: T) => string,
  ): Promise<T> {
    const reply = await first();
    for (const [field, call] of outcomes.length > 0 ? [] : variants) {
      const before = await countKept(rpc);
      const outcome = await call().then(
        async (own): Promise<Outcome['outcome']> =>
          answerOf(own) === answerOf(reply) && (await countKept(rpc)) === before ? 'repeated' : 'its own',
        ({ code }) => (code === Code.AlreadyExists ? 'refused' : 'its own'),
      );
      outcomes.push({ field, outcome });
    }
    return reply;
  }
  return {
    unary<I extends DescMessage, O extends DescMessage>(
      called: DescMethodUnary<I, O>,
      ...[signal, timeoutMs, header, input, values]: CallOf<I>
    ) {
      const send = (message: MessageInitShape<I>) =>
        transport.unary(called, signal, timeoutMs, header, message, values);
      if (nameOf(called) !== nameOf(method)) return send(input);
      const message = Object.assign(create(called.input, input), { idempotencyKey });
      return vary(
        () => send(message),
        [
          ['caller', () => others.unary(called, signal, timeoutMs, anonymous(header), message, values)],
          ...variationsOf(called.input, message).map(
            ({ field, varied }) => [field, () => send(varied)] as [string, () => ReturnType<typeof send>],
          ),
        ],
        (reply) => JSON.stringify(toJson(called.output, reply.message)),
      );
    },
    async stream<I extends DescMessage, O extends DescMessage>(
      called: DescMethodStreaming<I, O>,
      ...[signal, timeoutMs, header, input, values]: CallOf<I, AsyncIterable<MessageInitShape<I>>>
    ) {
      if (nameOf(called) !== nameOf(method)) {
        return transport.stream(called, signal, timeoutMs, header, input, values);
      }
      const [part] = await collect(input);
      const message = Object.assign(create(called.input, part), { idempotencyKey });
      const send = async (to: Transport, one: MessageInitShape<I>, headers = header) => {
        const reply = await to.stream(called, signal, timeoutMs, headers, replay([one]), values);
        return { ...reply, messages: await collect(reply.message) };
      };
      const { messages, ...reply } = await vary(
        () => send(transport, message),
        [
          ['caller', () => send(others, message, anonymous(header))],
          ...variationsOf(called.input, message).map(
            ({ field, varied }) =>
              [field, () => send(transport, varied)] as [string, () => ReturnType<typeof send>],
          ),
        ],
        (answer) => JSON.stringify(answer.messages.map((one) => toJson(called.output, one))),
      );
      return { ...reply, message: replay(messages) };
    },
  };
}

/** Some replies say nothing. */
async function countKept({ database }: TestServices): Promise<number> {
  const [row] = await database.select('select count(*)::int as count from idempotency_keys');
  return Number(row?.count);
}

/** The message with each of its fields changed alone, but for the key. */
function variationsOf<M extends DescMessage>(schema: M, message: MessageShape<M>) {
  return schema.fields.flatMap((field) => {
    if (field.localName === 'idempotencyKey') return [];
    const varied: MessageShape<M> & Record<string, unknown> = clone(schema, message);
    const isSet = isFieldSet(message, field);
    const held =
      field.oneof === undefined ? varied[field.localName] : Object(varied[field.oneof.localName]).value;
    const value = otherThan(field, isSet ? held : undefined);
    Object.assign(varied, {
      [(field.oneof ?? field).localName]:
        field.oneof === undefined ? value : { case: field.localName, value },
    });
    return [{ field: field.localName, varied }];
  });
}

/** Another value of a field. */
function otherThan(field: DescField, held: unknown): unknown {
  const isStruct = field.message?.typeName === StructSchema.typeName;
  if (field.fieldKind === 'map') return { ...Object(held), another: 'value' };
  if (field.fieldKind === 'list') return [...(Array.isArray(held) ? held : []), newValueOf(field)];
  if (isStruct) return { ...Object(held), another: 'value' };
  if (held === undefined) return newValueOf(field);
  if (typeof held === 'string') return `${held}x`;
  if (typeof held === 'boolean') return !held;
  if (held instanceof Uint8Array) return Buffer.concat([held, Buffer.from('x')]);
  if (typeof held === 'bigint' || typeof held === 'number') {
    const others = field.enum?.values.map(({ number }) => number).filter((number) => number !== held);
    return others?.at(-1) ?? (typeof held === 'bigint' ? held + 1n : held + 1);
  }
  const [first] = field.message === undefined ? [] : variationsOf(field.message, held as Message);
  return first?.varied;
}

/** A value of a field that has none. */
function newValueOf({ message, scalar, enum: choices }: DescField): unknown {
  if (message !== undefined) return create(message);
  if (choices !== undefined) return choices.values.at(-1)?.number;
  return scalar === undefined ? undefined : (newScalars.get(scalar) ?? 1);
}

const newScalars = new Map<ScalarType, unknown>([
  [ScalarType.STRING, 'x'],
  [ScalarType.BOOL, true],
  [ScalarType.BYTES, Buffer.from('x')],
  [ScalarType.INT64, 1n],
]);

/** Makes each call of `method` twice with the same key, and notes both answers and what the second has changed. */
function repeatCalls(
  transport: Transport,
  method: DescMethod,
  rpc: TestServices,
  repeats: Repeat[],
): Transport {
  let count = 0;
  const callsBefore = crypto.randomUUID();
  async function twice<T>(call: () => Promise<T>, answerOf: (reply: T) => unknown): Promise<T> {
    const reply = await call();
    const before = await snapshot(rpc);
    const second = await call().then(answerOf, (error: unknown) => String(error));
    repeats.push({ first: answerOf(reply), second, before, after: await snapshot(rpc) });
    return reply;
  }
  const keyed = (input: object) =>
    takesKey(method) ? { ...input, idempotencyKey: `call ${count} of ${callsBefore}` } : input;
  return {
    unary<I extends DescMessage, O extends DescMessage>(
      called: DescMethodUnary<I, O>,
      ...[signal, timeoutMs, header, input, values]: CallOf<I>
    ) {
      const call = (message: MessageInitShape<I>) =>
        transport.unary(called, signal, timeoutMs, header, message, values);
      if (nameOf(called) !== nameOf(method)) return call(input);
      count += 1;
      const message = Object.assign(create(called.input, input), keyed({}));
      return twice(
        () => call(message),
        (reply) => toJson(called.output, reply.message),
      );
    },
    async stream<I extends DescMessage, O extends DescMessage>(
      called: DescMethodStreaming<I, O>,
      ...[signal, timeoutMs, header, input, values]: CallOf<I, AsyncIterable<MessageInitShape<I>>>
    ) {
      const call = (messages: AsyncIterable<MessageInitShape<I>>) =>
        transport.stream(called, signal, timeoutMs, header, messages, values);
      if (nameOf(called) !== nameOf(method)) return call(input);
      const parts = (await collect(input)).map((part) => ({ ...part, ...keyed({}) }));
      const answers = new Map<object, unknown>();
      return twice(
        async () => {
          const reply = await call(replay(parts));
          const messages = await collect(reply.message);
          const whole = { ...reply, message: replay(messages) };
          answers.set(
            whole,
            messages.map((message) => toJson(called.output, message)),
          );
          return whole;
        },
        (reply) => answers.get(reply),
      );
    },
  };
}

async function collect<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const message of messages) collected.push(message);
  return collected;
}

async function* replay<T>(messages: readonly T[]): AsyncGenerator<T> {
  yield* messages;
}

/** What the database holds, by table, but for the log of calls, their keys, and when things were used or written last. */
async function snapshot({ database, auditWriter }: TestServices): Promise<Record<string, unknown>> {
  await auditWriter.flush();
  const tables = await database.select(
    `select table_name as name from information_schema.tables
     where table_schema = current_schema() and table_type = 'BASE TABLE'
       and table_name not in ('audit_entries', 'idempotency_keys') order by 1`,
  );
  const content: Record<string, unknown> = {};
  for (const { name } of tables) {
    const [row] = await database.select(
      `select coalesce(json_agg(r order by r::text), '[]') as rows
       from (select to_jsonb(t) - 'last_used_at' - 'used_at' - 'updated_at' as r from ${String(name)} t) as s`,
    );
    content[String(name)] = row?.rows;
  }
  return content;
}

type CallOf<I extends DescMessage, Input = MessageInitShape<I>> = [
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  header: ConstructorParameters<typeof Headers>[0],
  input: Input,
  values?: ContextValues,
];

/** What became of a call with the key of another: refused as another request, given the same reply, or taken by itself. */
type Outcome = { field: string; outcome: 'refused' | 'repeated' | 'its own' };

type Repeat = { first: unknown; second: unknown; before: object; after: object };

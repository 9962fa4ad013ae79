import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { KeysService } from '../../gen/headlessforms/v1/keys_pb.js';
import { MailService } from '../../gen/headlessforms/v1/mail_pb.js';
import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { SessionsService } from '../../gen/headlessforms/v1/sessions_pb.js';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { WebhookEvent, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { definitionMessage } from '../support/definitions.ts';
import { startServices, type TestServices } from '../support/services.ts';

const services = [
  AuditService,
  FormsService,
  KeysService,
  MailService,
  OwnersService,
  SessionsService,
  SubmissionsService,
  UploadsService,
  WebhooksService,
];

/** What no reader may make an instant, a duration or a number of without looking. */
const extremes: Record<string, Record<string, unknown>[]> = {
  'google.protobuf.Timestamp': [-(2n ** 63n), -62_135_596_801n, 253_402_300_800n, 2n ** 63n - 1n].map(
    (seconds) => ({
      seconds,
      nanos: 0,
    }),
  ),
  'google.protobuf.Duration': [-(2n ** 63n), -1n, 253_402_300_800n, 2n ** 63n - 1n].map((seconds) => ({
    seconds,
    nanos: -1,
  })),
  'google.protobuf.Struct': [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((a) => ({
    a,
  })),
  'google.protobuf.Value': [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((value) => ({
    kind: { case: 'numberValue', value },
  })),
};

const isNumber = (type: string) => type === 'google.protobuf.Struct' || type === 'google.protobuf.Value';

/** Each field of a request, at any depth, that has one of these types. */
const places = services.flatMap((service) =>
  service.methods.flatMap((method) =>
    pathsIn(method.input).map(
      (path) => [`${service.name}.${method.localName} ${path.join('.')}`, { service, method, path }] as const,
    ),
  ),
);

let rpc: TestServices;
let ids: Record<string, string>;

beforeAll(async () => {
  rpc = await startServices('pglite');
  const { id: formId } = await rpc.givenForm(rpc.key);
  const { session } = await rpc.sessions.createSession(
    { subject: { case: 'formId', value: formId } },
    rpc.owner,
  );
  const { webhook } = await rpc.webhooks.createWebhook(
    { url: 'https://example.com/', events: [WebhookEvent.SUBMISSION_CREATED] },
    rpc.owner,
  );
  ids = {
    form_id: formId,
    session_id: session?.id ?? '',
    webhook_id: webhook?.id ?? '',
    key: 'a-form',
    name: 'Test',
  };
});
afterAll(() => rpc[Symbol.asyncDispose]());

describe('a request', () => {
  it('has such fields in many places', () => {
    expect(places.length).toBeGreaterThan(30);
  });

  it.each(places)(
    'with a number or a time beyond all bounds is answered, and no such number is taken: %s',
    async (_, place) => {
      const { service, method, path } = place;
      const client = createClient(service, rpc.as(rpc.key)) as unknown as Record<
        string,
        (request: Message) => unknown
      >;
      const type = typeAt(method.input, path);

      for (const extreme of extremes[type] ?? []) {
        const request = filled(method.input, path, extreme);
        const call = client[method.localName];
        const outcome = await outcomeOf(() => call?.(request));
        expect([Code.Internal, Code.Unknown]).not.toContain(outcome.code);
        if (isNumber(type)) expect(outcome).toMatchObject({ code: expect.any(Number) });
      }
    },
  );
});

async function outcomeOf(call: () => unknown): Promise<{ code?: Code; message?: string }> {
  try {
    const reply = call();
    if (typeof reply === 'object' && reply !== null && Symbol.asyncIterator in reply) {
      await (reply as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
      return {};
    }
    const { violations = [] } = (await reply) as { violations?: unknown[] };
    return violations.length > 0 ? { code: Code.InvalidArgument } : {};
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code, message: rawMessage };
  }
}

function pathsIn(message: DescMessage, above: readonly string[] = []): string[][] {
  if (above.length > 5) return [];
  return message.fields.flatMap((field) => {
    const inner = messageOf(field);
    const path = [...above, field.name];
    if (inner === undefined || above.includes(field.name)) return [];
    return Object.hasOwn(extremes, inner.typeName) ? [path] : pathsIn(inner, path);
  });
}

function messageOf(field: DescField): DescMessage | undefined {
  return field.fieldKind === 'message' || (field.fieldKind === 'list' && field.listKind === 'message')
    ? field.message
    : undefined;
}

function fieldIn(message: DescMessage, name = ''): DescField {
  const field = message.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`${message.typeName} has no ${name}`);
  return field;
}

function typeAt(message: DescMessage, [name, ...rest]: readonly string[]): string {
  const inner = messageOf(fieldIn(message, name));
  if (inner === undefined) throw new Error(`${name} is no message`);
  return rest.length === 0 ? inner.typeName : typeAt(inner, rest);
}

/** A request that is right but for what stands at the path. */
function filled(
  schema: DescMessage,
  [name, ...rest]: readonly string[],
  extreme: Record<string, unknown>,
): Message {
  const isDefinition = schema.typeName.endsWith('.FormDefinition');
  const message = reflect(schema, isDefinition ? (definitionMessage() as Message) : create(schema));
  for (const field of schema.fields) {
    const id = ids[field.name];
    if (id !== undefined && field.fieldKind === 'scalar' && !isDefinition && field.oneof === undefined)
      message.set(field, id);
    if (field.name === 'definition' && field.fieldKind === 'message' && field.oneof === undefined) {
      message.set(field, reflect(field.message, definitionMessage() as Message));
    }
  }
  put(message, fieldIn(schema, name), rest, extreme);
  return message.message as Message;
}

function put(
  message: ReflectMessage,
  field: DescField,
  rest: readonly string[],
  extreme: Record<string, unknown>,
): void {
  const inner = messageOf(field);
  if (inner === undefined) return;
  const isStruct = inner.typeName === 'google.protobuf.Struct';
  if (rest.length === 0 && isStruct) {
    // Structs are plain objects in messages.
    (message.message as unknown as Record<string, unknown>)[field.localName] = extreme;
    return;
  }
  const value = reflect(inner, rest.length === 0 ? create(inner, extreme) : filled(inner, rest, extreme));
  if (field.fieldKind === 'list') message.get(field).add(value);
  else message.set(field, value);
}

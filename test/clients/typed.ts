import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFileRegistry, fromBinary, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { fieldTypes } from '../../src/domain/fields/field.ts';
import { leastField, options } from '../domain/given.ts';
import type { TestService } from '../support/server.ts';

/** A form with a field of each type and of each shape that its answers have, by whose key the generated code is named. */
const definition = {
  name: 'Every type',
  slug: 'every-type',
  owner: 'owner@example.com',
  delivery: { type: 'email' },
  fields: [
    ...fieldTypes.map((type) => ({ id: type, ...leastField(type) })),
    { id: 'whole', type: 'number', step: 2, min: -4, max: 2 ** 31 - 1 },
    { id: 'files', type: 'file', maxFiles: 3 },
    { id: 'cells', type: 'matrix', rows: options('r', 's'), options: options('x', 'y'), multiple: true },
    { id: 'first-name', type: 'text' },
    { id: 'class', type: 'text' },
  ],
};

const answers = {
  text: 'Ünïcode 👍 "\\\n',
  textarea: 'a\nb',
  email: 'ada@example.com',
  url: 'https://a.example/b',
  phone: '+41 44 123 45 67',
  number: 2.5,
  boolean: false,
  checkbox: true,
  date: '2028-02-29',
  time: '12:30',
  datetime: '2026-01-01T00:00:00.123Z',
  select: 'x',
  radio: 'y',
  multi_select: ['y', 'x'],
  hidden: 254,
  rating: 5,
  scale: 3,
  ranking: ['y', 'x'],
  matrix: { r: 'x' },
  address: { line1: '1 High Street', city: 'London', country: 'GB' },
  signature: { text: 'Ada Lovelace' },
  whole: 2 ** 31 - 2,
  cells: { r: ['x', 'y'], s: ['y'] },
  'first-name': 'Ada',
  class: 'first',
};

/** A form of every type with a submission to its first version, and answers to its second, which has a field more. */
export async function givenTypedForm(service: TestService): Promise<TypedForm> {
  const { form } = await expectOk(service.put('/v1/forms/by-key/every-type', definition));
  const formId: string = form.id;
  const uploadIds = await givenUploads(service, formId);
  const files = {
    file: { upload_id: uploadIds[0] },
    files: uploadIds.slice(1).map((id) => ({ upload_id: id })),
  };
  const submitted = await expectOk(
    service.post(`/v1/forms/${formId}/submissions`, { answers: { ...answers, ...files } }),
  );
  const stored = await storedAnswers(service, submitted.submission_id);

  const later = { id: 'later', type: 'text' };
  await expectOk(
    service.put('/v1/forms/by-key/every-type', { ...definition, fields: [...definition.fields, later] }),
  );
  const path = `/v1/forms/${formId}/versions/2/schema?format=descriptor_set`;
  const set = await fetch(`${service.url}${path}`, { headers: { authorization: `Bearer ${service.key}` } });
  const registry = createFileRegistry(
    fromBinary(FileDescriptorSetSchema, new Uint8Array(await set.arrayBuffer())),
  );
  const message = registry.getMessage('headlessforms.generated.every_type.EveryTypeAnswers');
  if (message === undefined) throw new Error('There is no message');
  const newerJson = { ...stored, later: 'new' };
  return {
    formId,
    submissionId: submitted.submission_id,
    stored,
    proto: (await service.get(`/v1/forms/${formId}/versions/1/schema?format=proto`)).text,
    newer: Buffer.from(toBinary(message, fromJson(message, newerJson))).toString('hex'),
    newerJson,
    readNewer: (bytes) => fromBinary(message, Buffer.from(bytes, 'hex')),
  };
}

/** Two uploads, one for each of the fields for files. */
export function givenUploads(service: TestService, formId: string): Promise<string[]> {
  const headers = { 'content-type': 'text/plain' };
  const upload = async (field: string): Promise<string> => {
    const content = new TextEncoder().encode(field);
    const { json } = await service.post(`/api/forms/${formId}/uploads?field=${field}`, content, { headers });
    return json.upload.upload_id;
  };
  return Promise.all(['file', 'files'].map(upload));
}

/** The answers of a submission by REST. */
export async function storedAnswers(service: TestService, submissionId: string): Promise<Answers> {
  return (await expectOk(service.get(`/v1/submissions/${submissionId}`))).submission.answers;
}

/** Answers without what the service says of each upload. */
export function withoutUploads(all: Answers): Answers {
  return Object.fromEntries(Object.entries(all).filter(([id]) => id !== 'file' && id !== 'files'));
}

/** Where buf looks for the proto file. */
export const ANSWERS_PROTO = 'headlessforms/generated/every_type/every_type_answers.proto';

/** Writes the proto file. Returns the folder that buf generates from. */
export function writeProto(folder: string, { proto }: TypedForm): string {
  const root = join(folder, 'gen/answers');
  const path = join(root, ANSWERS_PROTO);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, proto);
  return root;
}

async function expectOk(reply: ReturnType<TestService['get']>) {
  const { status, text, json } = await reply;
  if (status >= 300) throw new Error(`${status} ${text}`);
  return json;
}

type Answers = JsonObject;

export type TypedForm = {
  formId: string;
  submissionId: string;
  /** The answers of the submission, as REST has them. */
  stored: Answers;
  /** The proto file of the first version. */
  proto: string;
  /** A message of the second version, in hex, and its JSON. */
  newer: string;
  newerJson: Answers;
  readNewer: (bytes: string) => unknown;
};

import { readdirSync } from 'node:fs';
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { startService } from '../support/server.ts';

const protos = readdirSync(new URL('../../proto/headlessforms/v1/', import.meta.url));

it('serves all public protos with what they import, and nothing of the pages', async () => {
  await using service = await startService();

  const reply = await fetch(`${service.url}/descriptor.binpb`);
  const set = fromBinary(FileDescriptorSetSchema, await reply.bytes());

  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/protobuf']);
  const ours = set.file.filter(({ name }) => name.startsWith('headlessforms/')).map(({ name }) => name);
  expect(ours.sort()).toEqual(protos.map((name) => `headlessforms/v1/${name}`).sort());
  expect(set.file.map(({ package: name }) => name)).not.toContain('headlessforms.internal.v1');
  const registry = createFileRegistry(set);
  expect(registry.getService('headlessforms.v1.FormsService')?.method.createForm?.input.typeName).toBe(
    'headlessforms.v1.CreateFormRequest',
  );
  expect(registry.getFile('headlessforms/v1/forms.proto')?.proto.options?.rubyPackage).toBe(
    'HeadlessForms::V1',
  );
});

it('names each file after those it imports, as protoc demands', async () => {
  await using service = await startService();

  const reply = await fetch(`${service.url}/descriptor.binpb`);
  const { file: files } = fromBinary(FileDescriptorSetSchema, await reply.bytes());

  const seen = new Set<string>();
  for (const { name, dependency } of files) {
    expect(dependency.filter((imported) => !seen.has(imported))).toEqual([]);
    seen.add(name);
  }
});

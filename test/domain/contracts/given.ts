import { createFileRegistry, type DescMessage, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import type { VersionToDescribe } from '../../../src/domain/contracts/answers-file.ts';
import { firstContract } from '../../../src/domain/contracts/contract.ts';
import { generateSchema, type SchemaFormatName } from '../../../src/domain/contracts/generate.ts';
import type { FormDefinition } from '../../../src/domain/definition/definition.ts';
import { givenDefinition } from '../given.ts';

const formId = 'form_01k';

/** The first version of a form. */
export function versionOf(fields: object[], more: object = {}): VersionToDescribe {
  const definition: FormDefinition = givenDefinition({ fields, ...more });
  const contract = firstContract(formId, definition);
  return { formId, version: 1, checksum: 'c0ffee', definition, contract };
}

/** What is generated of it, as text. */
export function generated(format: SchemaFormatName, version: VersionToDescribe): string {
  return Buffer.from(generateSchema(format, version).content).toString();
}

/** The message of its answers, by the generated descriptor set. */
export function messageOf(version: VersionToDescribe): DescMessage {
  const { content } = generateSchema('descriptor_set', version);
  const { package: name, message } = version.contract;
  const found = createFileRegistry(fromBinary(FileDescriptorSetSchema, content)).getMessage(
    `${name}.${message}`,
  );
  if (found === undefined) throw new Error(`There is no message ${message}`);
  return found;
}

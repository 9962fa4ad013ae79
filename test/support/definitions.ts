import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  FormDefinitionSchema,
  type FormFieldSchema,
  FormFieldType,
} from '../../gen/headlessforms/v1/definition_pb.js';
import { checkDefinition } from '../../src/domain/definition/definition.ts';
import { definitionToMessage } from '../../src/domain/definition/definition-proto.ts';

/** A valid definition, one email field delivered by email, with what is given instead. */
export function definitionMessage(overrides: DefinitionInit = {}) {
  const email: MessageInitShape<typeof FormFieldSchema> = {
    id: 'email',
    type: FormFieldType.EMAIL,
    required: true,
  };
  const init: DefinitionInit = {
    name: 'Contact',
    slug: 'contact',
    fields: [email],
    delivery: { channel: { case: 'email', value: {} } },
  };
  return create(FormDefinitionSchema, { ...init, ...overrides } as MessageInitShape<
    typeof FormDefinitionSchema
  >);
}

/** A definition delivered by mail, as the RPCs take it. */
export function definitionOf(fields: object[], settings: object = {}, delivery: object = { type: 'email' }) {
  const input = { name: 'Test', slug: 'test', fields, delivery, settings };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: true });
  if (!checked.ok) throw new Error(`No definition: ${JSON.stringify(checked.violations)}`);
  return definitionToMessage(checked.definition);
}

/** One required email field. */
export const emailField = [{ id: 'email', type: 'email', required: true }];

export type DefinitionInit = Partial<MessageInitShape<typeof FormDefinitionSchema>>;

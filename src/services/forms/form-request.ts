import type { FormDefinition as DefinitionMessage } from '../../../gen/forms/v1/definition_pb.js';
import { isEmailAddress } from '../../domain/addresses/email-address.ts';
import {
  checkDefinition,
  type DefinitionOptions,
  type FormDefinition,
} from '../../domain/definition/definition.ts';
import { definitionFromMessage } from '../../domain/definition/definition-message.ts';
import { fieldPathOf } from '../../domain/definition/definition-path.ts';
import { withoutDefaults } from '../../domain/definition/without-defaults.ts';
import type { FormFacts } from '../../domain/fields/field-type.ts';
import { invalid } from '../../rpc/errors.ts';

/** Reads and checks a definition that a caller sent. Throws INVALID with every problem. */
export function readDefinition(
  message: DefinitionMessage | undefined,
  options: DefinitionOptions,
): { definition: FormDefinition; deliverySecret?: string } {
  const checked = checkDefinition(message && definitionFromMessage(message), options);
  if (!checked.ok) {
    throw invalid(checked.violations.map((one) => ({ ...one, path: fieldPathOf(one.path) })));
  }
  return checked;
}

/**
 * What makes two requests with a definition the same, for `makeOnce`. Defaults are left out of it, so that a request
 * can be repeated where an upgrade has added some; before, they were in it.
 */
export function definitionContent<Content extends { definition: FormDefinition }>(
  content: Content,
  form: FormFacts,
): { content: Record<string, unknown>; formerContent: Record<string, unknown> } {
  const { definition } = content;
  return { content: { ...content, definition: withoutDefaults(definition, form) }, formerContent: content };
}

/** Throws INVALID at `email` unless the text is one plain e-mail address. */
export function requireEmail(text: string): void {
  if (isEmailAddress(text)) return;
  throw invalid([
    text === ''
      ? { path: 'email', code: 'invalid_type', message: 'Required' }
      : { path: 'email', code: 'invalid_string', message: 'Expected an e-mail address' },
  ]);
}

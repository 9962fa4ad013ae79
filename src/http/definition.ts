import type { FormDefinition } from '../../gen/forms/v1/definition_pb.js';
import { checkDefinition, type DefinitionOptions } from '../domain/definition/definition.ts';
import { definitionToMessage } from '../domain/definition/definition-message.ts';
import type { Violation } from '../domain/errors/violations.ts';

/**
 * Checks a form definition before it becomes a message, which can't carry unknown properties and wrong types.
 *
 * The service checks it again and decides who has no key.
 */
export function readDefinition(raw: unknown, options: DefinitionOptions): ReadDefinition {
  const checked = checkDefinition(raw, options);
  if (!checked.ok) return checked;
  const message = definitionToMessage(checked.definition);
  const channel = message.delivery?.channel;
  if (channel?.case === 'webhook') channel.value.secret = checked.deliverySecret ?? '';
  return { ok: true, value: message };
}

type ReadDefinition = { ok: true; value: FormDefinition } | { ok: false; violations: readonly Violation[] };

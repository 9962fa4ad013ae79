import { checkDefinition, definitionSchema } from '../../domain/definition/definition.ts';
import { definitionToMessage } from '../../domain/definition/definition-message.ts';
import { type Checked, type Exchange, isKeyless } from '../route.ts';

/** The parts of a route whose body is a form definition. */
export const definitionBody = { shape: definitionSchema, check };

/**
 * Checks a definition before it becomes a message, which can't carry unknown properties and wrong types.
 *
 * The service checks it again and decides who has no key.
 */
function check(raw: unknown, { request, allowPrivateUrls }: Exchange): Checked<Definition> {
  const checked = checkDefinition(raw, { keyless: isKeyless(request), allowPrivateUrls });
  if (!checked.ok) return checked;
  const message = definitionToMessage(checked.definition);
  const channel = message.delivery?.channel;
  if (channel?.case === 'webhook') channel.value.secret = checked.deliverySecret ?? '';
  return { ok: true, value: message };
}

type Definition = ReturnType<typeof definitionToMessage>;

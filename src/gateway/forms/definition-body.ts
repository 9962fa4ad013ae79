import { definitionSchema } from '../../domain/definition/definition.ts';
import { readDefinition } from '../../http/definition.ts';
import { type Exchange, isKeyless } from '../route.ts';

/** The parts of a route whose body is a form definition. */
export const definitionBody = {
  shape: definitionSchema,
  check: (raw: unknown, { request, allowPrivateUrls }: Exchange) =>
    readDefinition(raw, { keyless: isKeyless(request), allowPrivateUrls }),
};

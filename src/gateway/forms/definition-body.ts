import { z } from 'zod';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import { definitionSchema } from '../../domain/definition/definition.ts';
import { violationsOf } from '../../domain/errors/violations.ts';
import { isObject } from '../../domain/json/json.ts';
import { readDefinition } from '../../http/body.ts';
import { type Checked, isKeyless } from '../route.ts';
import type { RouteContext } from '../route-context.ts';

/** Reads a body that is a form definition. `keptUrl`: a webhook may leave its URL out, which the form keeps. */
export function checkedDefinition(kept: { keptUrl?: string } = {}) {
  return (raw: unknown, { request, options: { allowPrivateUrls } }: RouteContext) =>
    readDefinition(raw, { keyless: isKeyless(request), allowPrivateUrls, ...kept });
}

/** The parts of a route whose body is a definition with further properties beside it. */
export function definitionBeside<Shape extends z.ZodRawShape>(shape: Shape, kept: { keptUrl?: string } = {}) {
  const schema = z.strictObject(shape);
  const checkRest = checkedDefinition(kept);
  const check = (raw: unknown, context: RouteContext): Checked<DefinitionBeside<typeof schema>> => {
    const entries = isObject(raw) ? Object.entries(raw) : [];
    const given = Object.fromEntries(entries.filter(([name]) => Object.hasOwn(shape, name)));
    const rest = Object.fromEntries(entries.filter(([name]) => !Object.hasOwn(shape, name)));
    const beside = schema.safeParse(given);
    const definition = checkRest(isObject(raw) ? rest : raw, context);
    if (beside.success && definition.ok) {
      return { ok: true, value: { definition: definition.value, beside: beside.data } };
    }
    const violations = [
      ...(beside.success ? [] : violationsOf(beside.error, given)),
      ...(definition.ok ? [] : definition.violations),
    ];
    return { ok: false, violations };
  };
  return { shape: definitionSchema.extend(shape), check };
}

type DefinitionBeside<Schema extends z.ZodType> = { definition: FormDefinition; beside: z.output<Schema> };

import { type CompiledForm, compileForm } from '../../src/domain/answers/answers.ts';
import {
  checkDefinition,
  type DefinitionOptions,
  type FormDefinition,
} from '../../src/domain/definition/definition.ts';
import type { FieldType } from '../../src/domain/fields/field.ts';

/** A definition as people send it, whole but for what a test is about. */
export function sent(parts: object = {}): Record<string, unknown> {
  return {
    name: 'Contact',
    slug: 'contact',
    fields: [{ id: 'message', type: 'text' }],
    delivery: { type: 'email' },
    ...parts,
  };
}

export const withKey: DefinitionOptions = { keyless: false, allowPrivateUrls: false };

/** A checked definition; fails the test if it is refused. */
export function givenDefinition(parts: object = {}): FormDefinition {
  const result = checkDefinition(sent(parts), withKey);
  if (!result.ok) throw new Error(JSON.stringify(result.violations));
  return result.definition;
}

/** A form with these fields, ready to check answers. */
export function givenForm(...fields: object[]): CompiledForm {
  return compileForm(givenDefinition({ fields }));
}

/** Path and code of each problem of a definition. */
export function refusals(input: unknown, options: Partial<DefinitionOptions> = {}): string[] {
  const result = checkDefinition(input, { ...withKey, ...options });
  return result.ok ? [] : result.violations.map(({ path, code }) => `${path} ${code}`);
}

/** Options with these values. */
export function options(...values: string[]): { label: string; value: string }[] {
  return values.map((value) => ({ label: value.toUpperCase(), value }));
}

/** A field of a type with the attributes that it must have, but without its id. */
export function leastField(type: FieldType): object {
  return {
    type,
    ...(type === 'matrix' && { rows: options('r') }),
    ...(['select', 'radio', 'multi_select', 'ranking', 'matrix'].includes(type) && {
      options: options('x', 'y'),
    }),
  };
}

import { describe, expect, it } from 'vitest';
import { withoutDefaults } from '../../../src/domain/definition/without-defaults.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { givenDefinition, leastField } from '../given.ts';

describe('withoutDefaults', () => {
  it('leaves what was sent of a definition', () => {
    const sent = {
      fields: [
        { id: 'first_name', type: 'text', maxLength: 20 },
        { id: 'cv', type: 'file' },
      ],
      settings: { review: true, theme: { accentColor: '#112233' } },
    };
    const definition = givenDefinition(sent);
    const [first, second] = definition.fields;

    expect(withoutDefaults(definition, { keyless: false })).toEqual({ ...definition, ...sent });
    expect([first?.label, second?.maxFiles]).toEqual(['First name', 1]);
    expect(definition.settings.theme).toEqual({ accentColor: '#112233', mode: 'auto' });
  });

  it.each(fieldTypes)('leaves no default of the type %s', (type) => {
    const fields = [{ id: 'a', ...leastField(type) }];

    expect(withoutDefaults(givenDefinition({ fields }), { keyless: false })).toHaveProperty('fields', fields);
  });
});

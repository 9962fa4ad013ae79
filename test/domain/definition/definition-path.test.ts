import type { DescMessage } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { FormDefinitionSchema } from '../../../gen/headlessforms/v1/definition_pb.js';
import { definitionSchema } from '../../../src/domain/definition/definition.ts';
import { fieldPathOf, jsonPathOf } from '../../../src/domain/definition/definition-path.ts';

describe('the paths of a definition', () => {
  it.each([
    ['', 'definition'],
    ['fields', 'definition.fields'],
    ['fields.0.maxLength', 'definition.fields[0].max_length'],
    ['fields.12.options.3.value', 'definition.fields[12].options[3].value'],
    ['fields.0.defaultValue.1', 'definition.fields[0].default_value[1]'],
    ['fields.0.visibleWhen.field', 'definition.fields[0].visible_when.comparison.field'],
    [
      'fields.0.visibleWhen.all.1.any.0.op',
      'definition.fields[0].visible_when.all.conditions[1].any.conditions[0].comparison.op',
    ],
    ['fields.0.visibleWhen.not.field', 'definition.fields[0].visible_when.negation.comparison.field'],
    ['delivery', 'definition.delivery'],
    ['delivery.type', 'definition.delivery.channel'],
    ['delivery.url', 'definition.delivery.webhook.url'],
    ['delivery.to.0', 'definition.delivery.email.to[0]'],
    ['delivery.autoresponse.to', 'definition.delivery.email.autoresponse.to'],
    ['settings.theme.accentColor', 'definition.settings.theme.accent_color'],
    ['settings.spam.minSeconds', 'definition.settings.spam.min_time'],
    ['settings.colour', 'definition.settings.colour'],
  ])('names %j as %s in messages, and back', (json, field) => {
    expect(fieldPathOf(json)).toBe(field);
    expect(jsonPathOf(field)).toBe(json);
  });

  it('gives every place of the JSON a field of the messages', () => {
    const schema = z.toJSONSchema(definitionSchema, { io: 'input', unrepresentable: 'any' });

    const places = placesIn(JSON.parse(JSON.stringify(schema)));

    const unknown = places.filter((place) => !isField(fieldPathOf(place)));

    expect(places.length).toBeGreaterThan(60);
    expect(unknown).toEqual([]);
    expect(places.map((place) => jsonPathOf(fieldPathOf(place)))).toEqual(places);
  });

  it('leaves other paths alone', () => {
    expect(jsonPathOf('answers.email')).toBeUndefined();
    expect(jsonPathOf('')).toBeUndefined();
  });
});

/** Whether every part of a path names a field, or a choice between fields. */
function isField(path: string): boolean {
  let at: DescMessage | undefined = FormDefinitionSchema;
  return path
    .replaceAll(/\[\d+\]/g, '')
    .split('.')
    .slice(1)
    .every((part) => {
      const found = at?.fields.find(({ name }) => name === part);
      const isChoice = at?.oneofs.some(({ name }) => name === part) === true;
      at = found?.message;
      return found !== undefined || isChoice;
    });
}

/** The dotted path of every property that a JSON schema names, three deep where it refers to itself. */
function placesIn(root: Schema): string[] {
  const visit = (schema: Schema, path: string[]): string[] => {
    const { $ref, properties = {}, items, anyOf = [], oneOf = [] } = schema;
    const named = $ref === undefined ? undefined : (root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? root);
    if (path.length > 7) return [];
    return [
      ...(named === undefined ? [] : visit(named, path)),
      ...Object.entries(properties).flatMap(([name, inner]) => [
        [...path, name].join('.'),
        ...visit(inner, [...path, name]),
      ]),
      ...(items === undefined ? [] : visit(items, [...path, '0'])),
      ...[...anyOf, ...oneOf].flatMap((one) => visit(one, path)),
    ];
  };
  return [...new Set(visit(root, []))];
}

type Schema = {
  $ref?: string;
  $defs?: Record<string, Schema>;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
};

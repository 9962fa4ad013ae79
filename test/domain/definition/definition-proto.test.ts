import {
  create,
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema, timestampFromMs, ValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import {
  AnsweredBy,
  FormDefinitionSchema,
  FormFieldType,
} from '../../../gen/headlessforms/v1/definition_pb.js';
import { conditionOps } from '../../../src/domain/conditions/condition.ts';
import {
  checkDefinition,
  definitionSchema,
  type FormDefinition,
} from '../../../src/domain/definition/definition.ts';
import {
  definitionFromMessage,
  definitionMessageOf,
  definitionToMessage,
} from '../../../src/domain/definition/definition-proto.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { fingerprint } from '../../../src/domain/json/json-text.ts';
import { givenDefinition, leastField, options, refusals, sent, withKey } from '../given.ts';

const whole = {
  description: 'All there is',
  fields: [
    ...fieldTypes.map((type) => ({
      id: `f_${type}`,
      ...leastField(type),
      required: type !== 'statement',
      description: 'd',
      placeholder: 'p',
      agentHint: 'h',
      page: 2,
    })),
    {
      id: 't',
      type: 'text',
      minLength: 0,
      maxLength: 5,
      pattern: 'a*',
      patternMessage: 'm',
      defaultValue: 'a',
    },
    { id: 'n', type: 'number', min: 0, max: 1.5, step: 0.5, defaultValue: 0 },
    { id: 'd', type: 'date', min: '2026-01-01', max: '2026-12-31' },
    { id: 'b', type: 'boolean', defaultValue: false, answeredBy: 'human' },
    { id: 'g', type: 'text', answeredBy: 'agent' },
    {
      id: 'm',
      type: 'multi_select',
      options: options('x', 'y'),
      minItems: 0,
      maxItems: 2,
      defaultValue: ['y'],
    },
    { id: 'u', type: 'file', accept: ['image/*', '.pdf'], maxBytes: 5, maxFiles: 3 },
    ...conditionOps.map((op, index) => ({
      id: `c${index}`,
      type: 'text',
      visibleWhen: {
        any: [
          { field: 'f_hidden', op, ...valueFor(op) },
          { all: [{ not: { field: 'n', op: 'eq', value: null } }] },
        ],
      },
    })),
  ],
  delivery: {
    type: 'email',
    to: ['a@b.co'],
    subject: 's',
    replyTo: 'f_email',
    answererName: 't',
    autoresponse: { to: 'f_email', subject: 's', message: 'm\nn' },
  },
  pages: [{ title: 'First', description: 'Of two' }, {}],
  settings: {
    review: true,
    allowPartial: true,
    submitLabel: 'Go',
    successMessage: 'Thanks',
    redirectUrl: 'https://a.co/thanks',
    allowedOrigins: ['https://a.co'],
    embedOrigins: ['http://localhost:3000'],
    retentionDays: 30,
    closesAt: '2030-01-31T09:00:00.123+01:00',
    maxSubmissions: 5,
    locale: 'de-CH',
    theme: { accentColor: '#00ff00', mode: 'dark' },
    spam: { honeypot: true, minSeconds: 2.5 },
  },
};

function valueFor(op: string): object {
  if (op === 'empty' || op === 'notEmpty') return {};
  return { value: op === 'in' || op === 'nin' ? ['a', 1, true, null] : 'a' };
}

describe('definition messages', () => {
  it.each([
    ['a definition with everything', whole],
    ['the least definition', {}],
    ['a webhook', { delivery: { type: 'webhook', url: 'https://example.com/hook' } }],
  ])('give %s back unchanged, also over the wire', (_, parts) => {
    const definition = givenDefinition(parts);

    const bytes = toBinary(FormDefinitionSchema, definitionToMessage(definition));
    const result = checkDefinition(definitionFromMessage(fromBinary(FormDefinitionSchema, bytes)), withKey);

    expect(result).toEqual({ ok: true, definition });
    expect(result.ok && fingerprint(result.definition)).toBe(fingerprint(definition));
  });

  it('carry every field of the messages, and every value of their enums, there and back', () => {
    for (let variant = 0; variant < fieldTypes.length; variant += 1) {
      const message = create(FormDefinitionSchema, filled(FormDefinitionSchema, variant));

      const json = definitionFromMessage(message);

      expect(definitionToMessage(json as FormDefinition)).toEqual(message);
      const issues = definitionSchema.safeParse(json).error?.issues ?? [];
      expect(issues.filter(({ code }) => code !== 'custom' && code !== 'invalid_format')).toEqual([]);
    }
  });

  it.each([
    ['the least', sent({})],
    ['all there is', sent(whole)],
  ])('carry %s as people send it, so that the check finds the same', (_name, input) => {
    const message = definitionMessageOf(input);

    expect(checkDefinition(definitionFromMessage(message), withKey)).toEqual(checkDefinition(input, withKey));
  });

  it('say nothing that people have not sent', () => {
    const { fields, settings } = definitionMessageOf(sent({}));

    expect([fields[0]?.answeredBy, settings]).toEqual([AnsweredBy.UNSPECIFIED, undefined]);
  });

  it('read unset fields as absent', () => {
    expect(refusals(definitionFromMessage(create(FormDefinitionSchema)))).toEqual([
      'name too_small',
      'slug invalid_string',
      'fields too_small',
      'delivery invalid_type',
    ]);
    expect(definitionFromMessage(create(FormDefinitionSchema, { fields: [{ id: 'a' }] }))).toMatchObject({
      fields: [{ id: 'a', required: false, hidden: false }],
    });
  });

  it('give what was published before a property was there its default', () => {
    const { fields, settings, ...rest } = givenDefinition({});
    const { publicPage: _, ...earlierSettings } = settings;
    const earlierFields = fields.map(({ answeredBy: __, ...field }) => field);
    const earlier = { ...rest, fields: earlierFields, settings: earlierSettings } as FormDefinition;

    expect(definitionToMessage(earlier)).toEqual(definitionToMessage(givenDefinition({})));
  });

  it('carry a secret in, never out', () => {
    const channel = { case: 'webhook', value: { url: 'https://a.co', secret: '12345678' } } as const;
    const message = create(FormDefinitionSchema, { ...sentTyped(), delivery: { channel } });

    const result = checkDefinition(definitionFromMessage(message), withKey);

    expect(result).toMatchObject({ ok: true, deliverySecret: '12345678' });
    if (result.ok) expect(JSON.stringify(definitionToMessage(result.definition))).not.toContain('12345678');
  });

  it('let the check refuse what they can’t mean', () => {
    const message = create(FormDefinitionSchema, {
      ...sentTyped(),
      fields: [
        { id: 'a', type: FormFieldType.UNSPECIFIED },
        { id: 'b', type: 99 as FormFieldType },
        { id: 'c', type: FormFieldType.NUMBER, step: 0, visibleWhen: {} },
        {
          id: 'd',
          type: FormFieldType.TEXT,
          defaultValue: { kind: { case: 'structValue', value: { fields: {} } } },
        },
      ],
      delivery: {},
      settings: { closesAt: { seconds: 1n << 60n, nanos: 0 } },
    });

    expect(refusals(definitionFromMessage(message)).sort()).toEqual([
      'delivery.type invalid_type',
      'fields.0.type invalid_type',
      'fields.1.type invalid_enum_value',
      'fields.2.step too_small',
      'fields.2.visibleWhen invalid_union',
      'fields.3.defaultValue invalid_union',
      'settings.closesAt invalid_date',
    ]);
  });
});

/** A message with every field set; each variant has other alternatives and other values of enums. */
function filled(schema: DescMessage, variant: number, depth = 0): Record<string, unknown> {
  return Object.fromEntries(
    schema.members.map((member) => {
      if (member.kind === 'field') return [member.localName, filledField(member, variant, depth)];
      const field = member.fields[depth > 6 ? 0 : (variant + depth) % member.fields.length];
      if (field === undefined) throw new Error('No choice');
      return [member.localName, { case: field.localName, value: filledField(field, variant, depth) }];
    }),
  );
}

function filledField(field: DescField, variant: number, depth: number): unknown {
  const value = filledValue(field, variant, depth);
  if (field.fieldKind === 'list') return [value];
  return field.fieldKind === 'map' ? { de: value } : value;
}

function filledValue({ name, enum: choices, message, scalar }: DescField, variant: number, depth: number) {
  const { values = [] } = choices ?? {};
  if (choices !== undefined) return values[1 + (variant % (values.length - 1))]?.number;
  switch (message) {
    case undefined:
      if (scalar === ScalarType.STRING) return name === 'accent_color' ? '#123456' : 'x12345678';
      return scalar === ScalarType.BOOL ? true : scalar === ScalarType.DOUBLE ? 0.5 : 7;
    case ValueSchema:
      return fromJson(ValueSchema, 'x');
    case TimestampSchema:
      return timestampFromMs(1_900_000_000_123);
    case DurationSchema:
      return { seconds: 2n, nanos: 5e8 };
    default:
      return filled(message, variant, depth + 1);
  }
}

function sentTyped() {
  const { name, slug } = sent();
  return { name: String(name), slug: String(slug), fields: [{ id: 'a', type: FormFieldType.TEXT }] };
}

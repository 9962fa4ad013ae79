import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  checkDefinition,
  definitionSchema,
  withoutDefaults,
} from '../../../src/domain/definition/definition.ts';
import { fieldTypes } from '../../../src/domain/fields/field.ts';
import { html } from '../../../src/domain/text/html.ts';
import { renderPage } from '../../../src/pages/layout.ts';
import { chooseLanguage } from '../../../src/text/words.ts';
import { givenDefinition, leastField, options, refusals, sent, withKey } from '../given.ts';

const field = (attributes: object) => sent({ fields: [{ id: 'a', type: 'text', ...attributes }] });

describe('checkDefinition', () => {
  it('fills in every default', () => {
    const definition = givenDefinition({ description: '', fields: [{ id: 'firstName', type: 'text' }] });

    expect(definition).toEqual({
      name: 'Contact',
      slug: 'contact',
      fields: [
        {
          id: 'firstName',
          type: 'text',
          label: 'First name',
          required: false,
          hidden: false,
          answeredBy: 'anyone',
          page: 1,
          maxLength: 10_000,
        },
      ],
      delivery: { type: 'email' },
      settings: {
        allowPartial: false,
        allowedOrigins: [],
        embedOrigins: [],
        publicPage: true,
        review: false,
        theme: { mode: 'auto' },
        spam: {},
      },
    });
  });

  it('accepts what it gave back, unchanged', () => {
    const definition = givenDefinition({
      fields: [
        { id: 'a', type: 'file', maxFiles: 2 },
        { id: 'b', type: 'hidden', defaultValue: 1 },
        { id: 'c', type: 'text', description: '', defaultValue: null },
      ],
      settings: { closesAt: '2030-01-31T10:00+02:00', locale: 'de-ch' },
    });

    expect(checkDefinition(definition, withKey)).toEqual({ ok: true, definition });
    expect(definition.settings).toMatchObject({ closesAt: '2030-01-31T08:00:00.000Z', locale: 'de-CH' });
  });

  it('takes the secret out and hands it back beside the definition', () => {
    const delivery = { type: 'webhook', url: 'https://example.com/hook', secret: 'a secret text' };

    const result = checkDefinition(sent({ delivery }), withKey);

    expect(result).toMatchObject({ ok: true, deliverySecret: 'a secret text' });
    expect(JSON.stringify(result.ok && result.definition)).not.toContain('a secret text');
  });

  it('names all problems at once, whatever else is wrong beside them', () => {
    const refused = refusals({
      slug: 'no blanks',
      fields: [
        { id: '1st', type: 'text', options: options('x') },
        { id: 'b', type: 'emal' },
        { id: 'c', type: 'text', pattern: '(?=x)', typo: true, visibleWhen: { field: 'z', op: 'is' } },
        { id: 'b', type: 'number', min: '3' },
      ],
      delivery: { type: 'email', replyTo: 'c', answererName: 'b', to: ['nobody'] },
      settings: { theme: { mode: 'blue' }, closesAt: 'soon' },
      extra: 1,
    });

    expect(refused.sort()).toEqual(
      [
        'name invalid_type',
        'slug invalid_string',
        'fields.0.id invalid_string',
        'fields.0.options unrecognized_keys',
        'fields.1.type invalid_enum_value',
        'fields.2.pattern invalid_string',
        'fields.2.typo unrecognized_keys',
        'fields.2.visibleWhen.field custom',
        'fields.2.visibleWhen.op invalid_enum_value',
        'fields.3.id custom',
        'fields.3.min invalid_type',
        'delivery.replyTo custom',
        'delivery.answererName custom',
        'delivery.to.0 invalid_string',
        'settings.theme.mode invalid_enum_value',
        'settings.closesAt invalid_date',
        'extra unrecognized_keys',
      ].sort(),
    );
  });

  it('says that a field id must start with a letter', () => {
    const result = checkDefinition(field({ id: '1st' }), withKey);

    expect(result).toEqual({
      ok: false,
      violations: [
        { path: 'fields.0.id', code: 'invalid_string', message: 'The field id must start with a letter' },
      ],
    });
  });

  it.each([
    ['a name of nothing', sent({ name: '' }), 'name too_small'],
    ['a long name', sent({ name: 'x'.repeat(201) }), 'name too_big'],
    ['a name that is no text', sent({ name: 1 }), 'name invalid_type'],
    ['a slug with a slash', sent({ slug: 'a/b' }), 'slug invalid_string'],
    ['no fields', sent({ fields: [] }), 'fields too_small'],
    ['fields that are no list', sent({ fields: {} }), 'fields invalid_type'],
    ['an id with a dot', field({ id: 'a.b' }), 'fields.0.id invalid_string'],
    ['a label of nothing', field({ label: '' }), 'fields.0.label too_small'],
    ['a page that is not whole', field({ page: 1.5 }), 'fields.0.page invalid_type'],
    ['page 0', field({ page: 0 }), 'fields.0.page too_small'],
    ['options on a text', field({ options: options('x') }), 'fields.0.options unrecognized_keys'],
    ['min on a text', field({ min: 1 }), 'fields.0.min unrecognized_keys'],
    ['accept on a text', field({ accept: ['.pdf'] }), 'fields.0.accept unrecognized_keys'],
    ['a select without options', field({ type: 'select' }), 'fields.0.options invalid_type'],
    [
      'options that share a value',
      field({ type: 'radio', options: options('x', 'x') }),
      'fields.0.options.1.value custom',
    ],
    [
      'a hidden field for a person',
      field({ hidden: true, answeredBy: 'human' }),
      'fields.0.answeredBy custom',
    ],
    ['an unknown answerer', field({ answeredBy: 'robot' }), 'fields.0.answeredBy invalid_enum_value'],
    ['minLength above maxLength', field({ minLength: 3, maxLength: 2 }), 'fields.0.maxLength custom'],
    ['min above max', field({ type: 'number', min: 3, max: 2 }), 'fields.0.max custom'],
    [
      'a later min than max',
      field({ type: 'datetime', min: '2030-01-01T00:00Z', max: '2030-01-01T00:30+01:00' }),
      'fields.0.max custom',
    ],
    ['a min that is no date', field({ type: 'date', min: '2030-02-30' }), 'fields.0.min invalid_date'],
    ['a step of zero', field({ type: 'number', step: 0 }), 'fields.0.step too_small'],
    [
      'a step without a multiple between the bounds',
      field({ type: 'number', min: 1, max: 4, step: 5 }),
      'fields.0.step custom',
    ],
    [
      'a fraction without a multiple between the bounds',
      field({ type: 'number', min: -0.19, max: -0.11, step: 0.1 }),
      'fields.0.step custom',
    ],
    [
      'more characters than a text has without maxLength',
      field({ minLength: 10_001 }),
      'fields.0.minLength custom',
    ],
    ['an email too short to be one', field({ type: 'email', maxLength: 5 }), 'fields.0.maxLength custom'],
    ['an email too long to be one', field({ type: 'email', minLength: 255 }), 'fields.0.minLength custom'],
    ['a web address too short to be one', field({ type: 'url', maxLength: 7 }), 'fields.0.maxLength custom'],
    [
      'a number to dial too long to be one',
      field({ type: 'phone', minLength: 56 }),
      'fields.0.minLength custom',
    ],
    [
      'a pattern for shorter texts than minLength',
      field({ pattern: '[A-Z]{2}[0-9]', minLength: 4, maxLength: 9 }),
      'fields.0.minLength custom',
    ],
    ['a label of spaces', field({ label: ' \u00a0' }), 'fields.0.label invalid_string'],
    [
      'the label of an option that can not be seen',
      field({ type: 'radio', options: [{ label: '\u200b', value: 'x' }] }),
      'fields.0.options.0.label invalid_string',
    ],
    [
      'the label of an end that is a space',
      field({ type: 'scale', maxLabel: ' ' }),
      'fields.0.maxLabel invalid_string',
    ],
    [
      'the label of a button that is a space',
      sent({ settings: { submitLabel: ' ' } }),
      'settings.submitLabel invalid_string',
    ],
    [
      'a translated label of spaces',
      {
        ...field({ type: 'radio', options: options('x') }),
        settings: { locale: 'en' },
        translations: { de: { fields: { a: { options: { x: ' ' } } } } },
      },
      'translations.de.fields.a.options.x invalid_string',
    ],
    [
      'more choices than options',
      field({ type: 'multi_select', options: options('x'), minItems: 2 }),
      'fields.0.minItems custom',
    ],
    ['a pattern that looks ahead', field({ pattern: 'a(?=b)' }), 'fields.0.pattern invalid_string'],
    ['a pattern that refers back', field({ pattern: '(a)\\1' }), 'fields.0.pattern invalid_string'],
    ['a pattern that ends early', field({ pattern: '[a' }), 'fields.0.pattern invalid_string'],
    ['a pattern too long', field({ pattern: 'a'.repeat(257) }), 'fields.0.pattern too_big'],
    [
      'a default that does not fit',
      field({ type: 'number', defaultValue: 'x' }),
      'fields.0.defaultValue invalid_type',
    ],
    [
      'a default that is no option',
      field({ type: 'multi_select', options: options('x'), defaultValue: ['y'] }),
      'fields.0.defaultValue.0 invalid_enum_value',
    ],
    ['a default file', field({ type: 'file', defaultValue: 'x' }), 'fields.0.defaultValue custom'],
    ['an odd media type', field({ type: 'file', accept: ['pdf'] }), 'fields.0.accept.0 invalid_string'],
    ['too large files', field({ type: 'file', maxBytes: 10_485_761 }), 'fields.0.maxBytes too_big'],
    ['an unknown delivery', sent({ delivery: { type: 'fax' } }), 'delivery.type invalid_enum_value'],
    ['a delivery without type', sent({ delivery: {} }), 'delivery.type invalid_type'],
    ['a delivery that is a list', sent({ delivery: [] }), 'delivery invalid_type'],
    [
      'six recipients',
      sent({ delivery: { type: 'email', to: [1, 2, 3, 4, 5, 6].map((n) => `a${n}@b.co`) } }),
      'delivery.to too_big',
    ],
    [
      'a recipient that is no list',
      sent({ delivery: { type: 'email', to: 'a@b.co' } }),
      'delivery.to invalid_type',
    ],
    [
      'one recipient twice',
      sent({ delivery: { type: 'email', to: ['a@b.co', 'A@b.co'] } }),
      'delivery.to.1 custom',
    ],
    [
      'a subject of two lines',
      sent({ delivery: { type: 'email', subject: 'a\nBcc: b' } }),
      'delivery.subject invalid_string',
    ],
    [
      'a secret in a mail',
      sent({ delivery: { type: 'email', secret: '12345678' } }),
      'delivery.secret unrecognized_keys',
    ],
    ['a webhook without URL', sent({ delivery: { type: 'webhook' } }), 'delivery.url invalid_type'],
    [
      'a webhook over HTTP',
      sent({ delivery: { type: 'webhook', url: 'http://example.com' } }),
      'delivery.url invalid_string',
    ],
    [
      'a webhook at home',
      sent({ delivery: { type: 'webhook', url: 'https://127.0.0.1' } }),
      'delivery.url invalid_string',
    ],
    [
      'a short secret',
      sent({ delivery: { type: 'webhook', url: 'https://example.com', secret: '1234567' } }),
      'delivery.secret too_small',
    ],
    [
      'an origin with a path',
      sent({ settings: { allowedOrigins: ['https://a.co/'] } }),
      'settings.allowedOrigins.0 invalid_string',
    ],
    [
      'an origin of another kind',
      sent({ settings: { embedOrigins: ['null'] } }),
      'settings.embedOrigins.0 invalid_string',
    ],
    [
      'a redirect over HTTP',
      sent({ settings: { redirectUrl: 'http://a.co' } }),
      'settings.redirectUrl invalid_string',
    ],
    [
      'a redirect to script',
      sent({ settings: { redirectUrl: 'javascript:1' } }),
      'settings.redirectUrl invalid_string',
    ],
    ['no retention', sent({ settings: { retentionDays: 0 } }), 'settings.retentionDays too_small'],
    ['no submissions', sent({ settings: { maxSubmissions: 0 } }), 'settings.maxSubmissions too_small'],
    ['a language of nowhere', sent({ settings: { locale: 'not a tag' } }), 'settings.locale invalid_string'],
    [
      'a color by name',
      sent({ settings: { theme: { accentColor: 'red' } } }),
      'settings.theme.accentColor invalid_string',
    ],
    [
      'a logo elsewhere',
      sent({ settings: { theme: { logo: 'https://a.co/a.png' } } }),
      'settings.theme.logo invalid_string',
    ],
    [
      'a false honeypot',
      sent({ settings: { spam: { honeypot: false } } }),
      'settings.spam.honeypot invalid_enum_value',
    ],
  ])('refuses %s', (_, input, refusal) => {
    expect(refusals(input)).toEqual([refusal]);
  });

  it.each([
    ['bounds of one value', { type: 'number', min: 10, max: 10, step: 5 }],
    ['bounds whose multiple is a fraction', { type: 'number', min: 0.3, max: 0.3, step: 0.1 }],
    ['a step with one bound', { type: 'number', min: 1, step: 5 }],
    [
      'bounds beyond what is exact with exact numbers between',
      { type: 'number', min: -(2 ** 60), max: 2 ** 60 },
    ],
    ['the shortest email', { type: 'email', maxLength: 6 }],
    ['a pattern without an end', { pattern: 'a+', minLength: 500 }],
    ['a label of one sign', { label: '✓' }],
  ])('takes %s', (_, attributes) => {
    expect(refusals(field(attributes))).toEqual([]);
  });

  it('keeps of a version in use what no answer fulfils, and labels of spaces', () => {
    const fields = [
      { id: 'a', type: 'number', min: 1, max: 4, step: 5, label: ' ' },
      { id: 'b', type: 'text', minLength: 20_000 },
    ];

    expect(refusals(sent({ fields }), { isInUse: true })).toEqual([]);
  });

  it('suggests the names that misspelt ones may mean', () => {
    const result = checkDefinition(
      sent({
        fields: [
          { id: 'a', type: 'texts', lable: 'A' },
          { id: 'b', type: 'text', visibleWhen: { field: 'a', op: 'notempty' } },
        ],
        settings: { allowPartials: true, theme: { mode: 'drak' } },
      }),
      withKey,
    );

    const hints = result.ok ? [] : result.violations.map(({ message }) => message.split('. ').at(-1));
    expect(hints).toEqual([
      'Did you mean `text`?',
      'Did you mean `label`?',
      'Did you mean `notEmpty`?',
      'Did you mean `dark`?',
      'Did you mean `allowPartial`?',
    ]);
  });

  it('takes logos for what their bytes are', () => {
    const logo = (type: string, bytes: number[]) =>
      sent({
        settings: { theme: { logo: `data:image/${type};base64,${Buffer.from(bytes).toString('base64')}` } },
      });
    const png = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
    const webp = [...Buffer.from('RIFF'), 0, 0, 0, 0, ...Buffer.from('WEBP')];

    expect(refusals(logo('png', png))).toEqual([]);
    expect(refusals(logo('jpeg', [0xff, 0xd8, 0xff, 0xe0]))).toEqual([]);
    expect(refusals(logo('webp', webp))).toEqual([]);
    expect(refusals(logo('png', [...Buffer.from('<svg onload=1>')]))).toHaveLength(1);
    expect(refusals(logo('jpeg', png))).toHaveLength(1);
    expect(refusals(logo('svg+xml', png))).toHaveLength(1);
    expect(refusals(logo('png', [...png, ...Buffer.alloc(32_768)]))).toHaveLength(1);
  });

  it('refuses on forms made without a key what needs one', () => {
    const input = sent({
      fields: [
        { id: 'mail', type: 'email' },
        { id: 'cv', type: 'file' },
      ],
      delivery: { type: 'email', to: ['a@b.co'], autoresponse: { to: 'mail', subject: 's', message: 'm' } },
    });

    expect(refusals(input)).toEqual([]);
    expect(refusals(input, { keyless: true })).toEqual([
      'fields.1.type custom',
      'delivery.to custom',
      'delivery.autoresponse custom',
    ]);
  });

  it('lets webhooks reach private hosts only where that is allowed', () => {
    const input = sent({ delivery: { type: 'webhook', url: 'http://127.0.0.1:9000/hook' } });

    expect(refusals(input)).toEqual(['delivery.url invalid_string']);
    expect(refusals(input, { allowPrivateUrls: true })).toEqual([]);
  });

  it('takes titles for the steps that there are', () => {
    const fields = [{ id: 'a', type: 'text', page: 2 }];
    const pages = [{ title: 'One' }, { title: 'Two', description: 'The last' }];

    expect(givenDefinition({ fields, pages }).pages).toEqual(pages);
    expect(givenDefinition({ fields, pages: [] })).not.toHaveProperty('pages');
    expect(refusals(sent({ fields, pages: [...pages, {}] }))).toEqual(['pages.2 custom']);
    expect(refusals(sent({ fields, pages: [{ title: '', text: 'x' }] }))).toEqual([
      'pages.0.title too_small',
      'pages.0.text unrecognized_keys',
    ]);
  });

  it('knows every type of field', () => {
    const fields = fieldTypes.map((type) => ({
      id: type,
      ...leastField(type),
    }));

    expect(refusals(sent({ fields }))).toEqual([]);
  });

  it('describes itself in JSON Schema, which accepts what it accepts', () => {
    const schema = z.toJSONSchema(definitionSchema, { io: 'input' });
    const validate = new Ajv2020({ strict: false }).compile(schema);

    expect(validate(sent())).toBe(true);
    expect(validate(givenDefinition({ fields: [{ id: 'a', type: 'date' }] }))).toBe(true);
    expect(validate(sent({ slug: 'no blanks' }))).toBe(false);
    expect(validate(sent({ typo: 1 }))).toBe(false);
  });
});

describe('conditions of fields', () => {
  const visible = (visibleWhen: unknown) =>
    sent({
      fields: [
        { id: 'a', type: 'text' },
        { id: 'b', type: 'text', visibleWhen },
        { id: 'c', type: 'text' },
      ],
    });
  const nested = (depth: number): object =>
    depth === 1 ? { field: 'a', op: 'empty' } : { not: nested(depth - 1) };

  it.each([
    ['an earlier field', { field: 'a', op: 'eq', value: 'x' }],
    [
      'several conditions',
      { all: [{ any: [{ field: 'a', op: 'in', value: ['x', 'y'] }] }, { not: nested(1) }] },
    ],
    ['five levels', nested(5)],
    ['a hundred parts', { any: Array.from({ length: 99 }, () => nested(1)) }],
  ])('accepts %s', (_, condition) => {
    expect(refusals(visible(condition))).toEqual([]);
  });

  it.each([
    ['a later field', { field: 'c', op: 'empty' }, 'fields.1.visibleWhen.field custom'],
    ['the field itself', { field: 'b', op: 'empty' }, 'fields.1.visibleWhen.field custom'],
    [
      'an unknown operator',
      { field: 'a', op: 'like', value: 'x' },
      'fields.1.visibleWhen.op invalid_enum_value',
    ],
    ['no value', { field: 'a', op: 'eq' }, 'fields.1.visibleWhen.value invalid_type'],
    [
      'a value too many',
      { field: 'a', op: 'empty', value: 1 },
      'fields.1.visibleWhen.value unrecognized_keys',
    ],
    ['one value for a list', { field: 'a', op: 'in', value: 'x' }, 'fields.1.visibleWhen.value invalid_type'],
    [
      'a list for one value',
      { field: 'a', op: 'eq', value: ['x'] },
      'fields.1.visibleWhen.value invalid_type',
    ],
    ['an object as value', { field: 'a', op: 'eq', value: {} }, 'fields.1.visibleWhen.value invalid_union'],
    ['nothing', {}, 'fields.1.visibleWhen invalid_union'],
    ['two kinds at once', { all: [nested(1)], any: [nested(1)] }, 'fields.1.visibleWhen invalid_union'],
    ['an empty list', { all: [] }, 'fields.1.visibleWhen.all too_small'],
    ['a text', 'a', 'fields.1.visibleWhen invalid_union'],
    ['six levels', nested(6), 'fields.1.visibleWhen.not.not.not.not.not too_big'],
    [
      '101 parts',
      { all: [{ any: Array.from({ length: 99 }, () => nested(1)) }] },
      'fields.1.visibleWhen too_big',
    ],
  ])('refuses %s', (_, condition, refusal) => {
    expect(refusals(visible(condition))).toEqual([refusal]);
  });

  const onOptions = (type: string, visibleWhen: unknown, more = {}) =>
    sent({
      fields: [
        { id: 'a', type, options: options('x', '10:00'), ...more },
        { id: 'b', type: 'text', visibleWhen },
      ],
    });
  const at = 'fields.1.visibleWhen';
  const inList = (index: number) => `${at}.not.value.${index}`;

  it.each([
    ['select', { field: 'a', op: 'eq', value: 'X' }, [`${at}.value`]],
    ['radio', { field: 'a', op: 'ne', value: 1 }, [`${at}.value`]],
    ['radio', { not: { field: 'a', op: 'in', value: ['x', 'y', null, true] } }, [1, 3].map(inList)],
    ['multi_select', { field: 'a', op: 'contains', value: 'y' }, [`${at}.value`]],
    ['ranking', { any: [{ field: 'a', op: 'nin', value: ['y'] }] }, [`${at}.any.0.value.0`]],
  ])('refuses an option that a field of type %s lacks, in %j', (type, condition, places) => {
    expect(refusals(onOptions(type, condition))).toEqual(
      places.map((place) => `${place} invalid_enum_value`),
    );
  });

  it.each([
    ['no answer', 'select', { field: 'a', op: 'in', value: ['x', '', null, false] }],
    ['the same time in other words', 'select', { field: 'a', op: 'eq', value: '10:00:00' }],
    ['a part of a choice', 'select', { field: 'a', op: 'contains', value: '10:' }],
    ['an order of choices', 'radio', { field: 'a', op: 'gt', value: '09:00' }],
  ])('accepts %s in a condition on options', (_, type, condition) => {
    expect(refusals(onOptions(type, condition))).toEqual([]);
  });

  it('accepts any text where another one than the options may be given', () => {
    const condition = { field: 'a', op: 'eq', value: 'y' };

    expect(refusals(onOptions('select', condition, { allowOther: true }))).toEqual([]);
  });

  it.each(['allowedOrigins', 'embedOrigins'])(
    'takes in %s what a header can hold, and refuses all else',
    (name) => {
      const marks = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
      const hosts = [
        ...marks.flatMap((mark) => [mark, `a${mark}`, `a${mark}b.example`]),
        'bücher.example',
        'a:443',
        'a:99999',
      ];
      const origins = [
        ...hosts,
        'u:p@a.example',
        '*.a.example',
        'a:*',
        'a/p',
        'a?q',
        'a#f',
        'A.example',
        '[::1]:8080',
      ].flatMap((host) => [`http://${host}`, `https://${host}`]);
      const isTaken = (origin: string) => refusals(sent({ settings: { [name]: [origin] } })).length === 0;

      const taken = origins.filter(isTaken);
      expect(taken).toContain('https://a-b.example');
      expect(taken).toContain('http://[::1]:8080');
      expect(taken).not.toContain('https://*');
      expect(taken.filter((origin) => framesOf(origin) !== `frame-ancestors ${origin}`)).toEqual([]);
      expect(taken.filter((origin) => new URL(origin).origin !== origin)).toEqual([]);
      expect(
        refusals(sent({ settings: { [name]: ['https://a', 'https://b;script-src', 'http://*'] } })),
      ).toEqual([1, 2].map((index) => `settings.${name}.${index} invalid_string`));
    },
  );

  it('keeps the origins of a version in use', () => {
    const former = sent({
      settings: { embedOrigins: ['http://*'], allowedOrigins: ['https://*.a.example'] },
    });

    expect(refusals(former, { isInUse: true })).toEqual([]);
  });

  it('keeps what a version in use compares with', () => {
    const former = onOptions('select', { field: 'a', op: 'eq', value: 'y' });

    expect(refusals(former, { isInUse: true })).toEqual([]);
  });

  it('refuses more than 200 searches in the answers to a form, at the field that has the next one', () => {
    const search = { field: 'a', op: 'contains', value: 'x' };
    const searching = (id: string, count: number) => ({
      id,
      type: 'text',
      visibleWhen: { any: Array.from({ length: count }, () => search) },
    });
    const fields = [{ id: 'a', type: 'text' }, searching('b', 99), searching('c', 99), searching('d', 2)];

    expect(refusals(sent({ fields }))).toEqual([]);
    expect(refusals(sent({ fields: [...fields, { id: 'e', type: 'text' }, searching('f', 1)] }))).toEqual([
      'fields.5.visibleWhen too_big',
    ]);
  });
});

describe('hostile definitions', () => {
  const deep = (levels: number, wrap: (inner: unknown) => unknown) => {
    let value: unknown = {};
    for (let level = 0; level < levels; level++) value = wrap(value);
    return value;
  };
  const circle: Record<string, unknown> = {};
  circle.fields = [circle];
  const prototypes = '{"__proto__":{"x":1},"constructor":1,"toString":null,"hasOwnProperty":[]}';

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a number', 1e308],
    ['a list', []],
    ['an empty object', {}],
    ['a deep condition', sent({ fields: [{ visibleWhen: deep(100_000, (not) => ({ not })) }] })],
    ['a deep list', deep(100_000, (inner) => [inner])],
    ['a circle', circle],
    ['names of prototypes', JSON.parse(prototypes)],
    [
      'fields named like prototypes',
      sent({ fields: [JSON.parse(prototypes), JSON.parse('{"type":"constructor","id":"__proto__"}')] }),
    ],
    [
      'a delivery of prototypes',
      sent({ delivery: JSON.parse('{"type":"__proto__","__proto__":{"url":"x"}}') }),
    ],
    ['NUL in a name', sent({ name: 'a\0b' })],
    ['half a character', sent({ name: '\ud800' })],
    ['half a character in a key', sent({ '\udfff': 1 })],
    [
      '10,000 fields',
      sent({ fields: Array.from({ length: 10_000 }, (_, n) => ({ id: `f${n}`, type: 'text' })) }),
    ],
    ['50,000 unknown properties', Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]))],
    ['a huge key', sent({ ['k'.repeat(200_000)]: 1 })],
  ])('refuses %s without throwing', (_, input) => {
    const result = checkDefinition(input, withKey);

    expect(result.ok).toBe(false);
    const violations = result.ok ? [] : result.violations;
    expect(violations.length).toBeGreaterThan(0);
    expect(JSON.stringify(violations).length).toBeLessThan(100_000);
    expect(violations.every(({ path, message }) => path.isWellFormed() && message.isWellFormed())).toBe(true);
  });
});

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

/** Who may frame a page whose form names this origin, as its header says. */
function framesOf(origin: string): string | undefined {
  const page = {
    language: chooseLanguage('en'),
    root: './',
    title: '',
    body: html``,
    embedOrigins: [origin],
  };
  return renderPage(page).headers['content-security-policy']?.split('; ').at(-1);
}

import { describe, expect, it } from 'vitest';
import { checkDefinition, type FormDefinition } from '../../../src/domain/definition/definition.ts';
import { fieldPathOf, jsonPathOf } from '../../../src/domain/definition/definition-path.ts';
import {
  definitionFromMessage,
  definitionToMessage,
} from '../../../src/domain/definition/definition-proto.ts';
import { languagesOf, missingTranslations, translate } from '../../../src/domain/definition/translate.ts';

const options = { keyless: false, allowPrivateUrls: false };

const form = {
  name: 'Survey',
  slug: 'survey',
  description: 'About you',
  fields: [
    { id: 'label', type: 'text', placeholder: 'Ada', pattern: 'A.*', patternMessage: 'Begin with A' },
    { id: 'size', type: 'radio', options: choices('s', '1') },
    { id: 'grid', type: 'matrix', rows: choices('r'), options: choices('o') },
    { id: 'mood', type: 'scale', minLabel: 'bad', maxLabel: 'good', page: 2, agentHint: 'Ask' },
    { id: 'source', type: 'hidden' },
    { id: 'mail', type: 'email' },
  ],
  pages: [{}, { title: 'More' }],
  delivery: { type: 'email', autoresponse: { to: 'mail', subject: 'Thank you', message: 'We read it.' } },
  settings: { locale: 'en', submitLabel: 'Go', successMessage: 'Thanks' },
};

const german = {
  name: 'Umfrage',
  description: 'Über Sie',
  fields: {
    label: { label: 'Name', placeholder: 'Ada', patternMessage: 'Beginnt mit A' },
    size: { label: 'Größe', options: { s: 'Klein', 1: 'Eins' } },
    grid: { label: 'Gitter', rows: { r: 'Zeile' }, options: { o: 'Wahl' } },
    mood: { label: 'Laune', minLabel: 'schlecht', maxLabel: 'gut' },
    mail: { label: 'E-Mail' },
  },
  pages: [{}, { title: 'Mehr' }],
  settings: { submitLabel: 'Los', successMessage: 'Danke' },
  autoresponse: { subject: 'Danke sehr', message: 'Wir lesen es.' },
};

describe('the translations of a form', () => {
  it('are refused by one problem where they name more than any form has', () => {
    const rows = Object.fromEntries(Array.from({ length: 1_001 }, (_, row) => [row, row]));
    const translations = { de: { ...german, fields: { grid: { rows } } } };

    const result = checkDefinition({ ...form, translations }, options);

    expect(result).toEqual({
      ok: false,
      violations: [
        {
          path: 'translations.de.fields.grid.rows',
          code: 'too_big',
          message: 'Expected at most 1000 items or properties',
        },
      ],
    });
  });

  it('come unchanged through its message, and change nothing but texts', () => {
    const definition = checked({ ...form, translations: { de: german } });

    const again = checkDefinition(definitionFromMessage(definitionToMessage(definition)), options);
    const shown = translate(definition, ['de']);

    expect(again).toEqual({ ok: true, definition });
    expect(missingTranslations(definition)).toEqual([]);
    expect(shown).toEqual({
      ...checked({
        ...form,
        name: 'Umfrage',
        description: 'Über Sie',
        fields: [
          { ...form.fields[0], label: 'Name', placeholder: 'Ada', patternMessage: 'Beginnt mit A' },
          { ...form.fields[1], label: 'Größe', options: named({ s: 'Klein', 1: 'Eins' }) },
          {
            ...form.fields[2],
            label: 'Gitter',
            rows: named({ r: 'Zeile' }),
            options: named({ o: 'Wahl' }),
          },
          { ...form.fields[3], label: 'Laune', minLabel: 'schlecht', maxLabel: 'gut' },
          form.fields[4],
          { ...form.fields[5], label: 'E-Mail' },
        ],
        delivery: { type: 'email', autoresponse: { to: 'mail', ...german.autoresponse } },
        pages: german.pages,
        settings: { ...german.settings, locale: 'de' },
      }),
    });
    expect(translate(definition, ['de'])).toBe(shown);
  });

  it.each([
    [['de'], 'de'],
    [['de-AT'], 'de'],
    [['zh'], 'zh-Hant'],
    [['nl', 'DE'], 'de'],
    [['en-US', 'de'], 'en'],
    [['nl'], 'en'],
    [[], 'en'],
    [['pt-PT'], 'pt-PT'],
    [['pt-AO'], 'pt-BR'],
  ])('are chosen by what is preferred: %j reads %s', (preferred, language) => {
    const definition = checked({
      ...form,
      translations: { de: german, 'zh-Hant': {}, 'pt-BR': {}, 'pt-PT': {} },
    });

    expect(translate(definition, preferred).settings.locale).toBe(language);
    expect(languagesOf(definition)).toEqual(['en', 'de', 'zh-Hant', 'pt-BR', 'pt-PT']);
  });

  it('leave what they lack in the form’s own language, and name it', () => {
    const definition = checked({
      ...form,
      translations: { de: { fields: { size: { options: { s: 'Klein' } }, grid: {} } }, fr: german },
    });

    expect(missingTranslations(definition)).toEqual([
      {
        language: 'de',
        paths: [
          'name',
          'description',
          'fields.label.label',
          'fields.label.placeholder',
          'fields.label.patternMessage',
          'fields.size.label',
          'fields.size.options.1',
          'fields.grid.label',
          'fields.grid.options.o',
          'fields.grid.rows.r',
          'fields.mood.label',
          'fields.mood.minLabel',
          'fields.mood.maxLabel',
          'fields.mail.label',
          'pages.1.title',
          'settings.submitLabel',
          'settings.successMessage',
          'autoresponse.subject',
          'autoresponse.message',
        ],
      },
    ]);
    expect(translate(definition, ['de'])).toMatchObject({
      name: 'Survey',
      fields: [{}, { options: [{ label: 'Klein' }, { label: '1!' }] }, {}, {}, {}, {}],
    });
  });

  it.each([
    ['a field that there is not', { fields: { nmae: { label: 'x' } } }, 'fields.nmae unrecognized_keys'],
    [
      'an option that there is not',
      { fields: { size: { options: { m: 'x' } } } },
      'fields.size.options.m unrecognized_keys',
    ],
    [
      'a row that there is not',
      { fields: { grid: { rows: { x: 'x' } } } },
      'fields.grid.rows.x unrecognized_keys',
    ],
    [
      'options of a field without any',
      { fields: { label: { options: { a: 'x' } } } },
      'fields.label.options.a unrecognized_keys',
    ],
    [
      'a text that the field does not have',
      { fields: { size: { placeholder: 'x' } } },
      'fields.size.placeholder custom',
    ],
    ['a step that there is not', { pages: [{}, {}, { title: 'x' }] }, 'pages.2 custom'],
    ['a title that the step does not have', { pages: [{ title: 'x' }] }, 'pages.0.title custom'],
    ['a setting that is no text', { settings: { locale: 'x' } }, 'settings.locale unrecognized_keys'],
    ['an empty text', { name: '' }, 'name too_small'],
    ['a long label', { fields: { size: { label: 'x'.repeat(1001) } } }, 'fields.size.label too_big'],
    ['no object', 'Umfrage', ' invalid_type'],
  ])('are refused at the place of %s', (_name, translation, problem) => {
    const path = `translations.de.${problem}`.replace('. ', ' ');

    const found = problemsOf({ ...form, translations: { de: translation } });

    expect(found).toEqual([path]);
    const [place = ''] = path.split(' ');
    expect(jsonPathOf(fieldPathOf(place))).toBe(place);
  });

  it('are refused in no language, in two spellings, in the form’s own, and without one of its own', () => {
    const { locale: _, ...settings } = form.settings;
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`a${letter(index)}`, {}]));

    expect(problemsOf({ ...form, translations: { german: {}, x: {} } })).toEqual(['translations.x custom']);
    expect(problemsOf({ ...form, translations: { 'de-ch': {} } })).toEqual(['translations.de-ch custom']);
    expect(problemsOf({ ...form, translations: { en: {} } })).toEqual(['translations.en custom']);
    expect(problemsOf({ ...form, settings, translations: { de: {} } })).toEqual([
      'settings.locale invalid_type',
    ]);
    expect(problemsOf({ ...form, translations: many })).toEqual(['translations too_big']);
    expect(problemsOf({ ...form, translations: [german] })).toEqual(['translations invalid_type']);
  });

  it('have their places in the messages, too', () => {
    expect(fieldPathOf('translations.de-CH.fields.label.minLabel')).toBe(
      'definition.translations.de-CH.fields.label.min_label',
    );
    expect(fieldPathOf('translations.de.settings.submitLabel')).toBe(
      'definition.translations.de.settings.submit_label',
    );
  });
});

function checked(input: object): FormDefinition {
  const result = checkDefinition(input, options);
  if (!result.ok) throw new Error(JSON.stringify(result.violations));
  return result.definition;
}

function problemsOf(input: object): string[] {
  const result = checkDefinition(input, options);
  return result.ok ? [] : result.violations.map(({ path, code }) => `${path} ${code}`);
}

function choices(...values: string[]) {
  return values.map((value) => ({ label: `${value}!`, value }));
}

function named(labels: Record<string, string>) {
  return ['s', '1', 'r', 'o'].flatMap((value) => {
    const label = labels[value];
    return label === undefined ? [] : [{ label, value }];
  });
}

function letter(index: number): string {
  return String.fromCharCode('a'.charCodeAt(0) + index);
}

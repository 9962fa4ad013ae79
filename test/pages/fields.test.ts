import { describe, expect, it } from 'vitest';
import { checkDefinition, type Field } from '../../src/domain/definition/definition.ts';
import type { FieldView } from '../../src/pages/form/controls/control-view.ts';
import { renderField } from '../../src/pages/form/fields.ts';
import { chooseLanguage } from '../../src/text/words.ts';
import { everyType } from './every-type.ts';

const options = [{ label: 'שלום', value: 'hello' }];

describe('a field that holds nothing', () => {
  it('is rendered once for all who read its language', () => {
    const field = aField({ type: 'date', min: '2026-12-01' });

    const ofBrowser = renderField(field, aView({ language: chooseLanguage('', 'de;q=0.9, en;q=0.8') }));
    const ofOther = renderField(field, aView({ language: chooseLanguage('', 'de, fr') }));
    const ofForm = renderField(field, aView({ language: chooseLanguage('de') }));

    expect(ofOther).toBe(ofBrowser);
    // Only a form with a language says which way its own texts run.
    expect([ofBrowser, ofForm].map(({ text }) => text.includes('dir="auto"'))).toEqual([true, false]);
    expect(renderField({ ...field, label: 'Other' }, aView({ language: chooseLanguage('de') }))).not.toBe(
      ofForm,
    );
  });

  it.each<Partial<Field>>([
    { type: 'select', options },
    { type: 'radio', options },
    { type: 'ranking', options },
    { type: 'matrix', options, rows: [{ label: 'דואר', value: 'mail' }] },
    { type: 'scale', minLabel: 'שלום', maxLabel: 'דואר' },
  ])('has its author’s texts run as they begin where the form has no language, as $type', (given) => {
    const { text } = renderField(aField(given), aView({ language: chooseLanguage('', 'en') }));
    const shown = [...text.matchAll(/<(\w+[^>]*)>(?:שלום|דואר)/g)].map(([, tag = '']) => tag);

    expect(shown.length).toBeGreaterThan(0);
    expect(shown.filter((tag) => !tag.includes(' dir="auto"'))).toEqual([]);
  });

  it.each(fieldsOfEveryType())('looks as if it were rendered anew, of the type $type', (field) => {
    const views = ['en-US', 'en-GB', 'de', 'de-CH', 'ar'].flatMap((tag) =>
      [true, false].map((visible) => aView({ language: chooseLanguage(tag), visible })),
    );

    for (const inTurn of [
      [...views, ...views],
      [...views.toReversed(), ...views],
    ]) {
      const shown = { ...field };
      expect(inTurn.map((view) => renderField(shown, view).text)).toEqual(
        inTurn.map((view) => renderField({ ...field }, view).text),
      );
    }
  });

  it('is not taken for that of another region or language, of the form or of the page’s own words', () => {
    const field = aField({ type: 'date', min: '2026-12-01', required: true });
    const languages = [
      chooseLanguage('en-US'),
      chooseLanguage('en-GB'),
      chooseLanguage('de'),
      chooseLanguage('he', 'de'),
      chooseLanguage('he', 'fr'),
    ];

    const there = languages.map((language) => renderField(field, aView({ language })).text);
    const back = languages.toReversed().map((language) => renderField(field, aView({ language })).text);

    expect(there).toEqual([
      expect.stringMatching(/\(required\).*From December 1, 2026/s),
      expect.stringMatching(/\(required\).*From 1 December 2026/s),
      expect.stringMatching(/\(erforderlich\).* 1\. Dezember 2026/s),
      expect.stringMatching(/\(erforderlich\).* 1 בדצמבר 2026/s),
      expect.stringMatching(/\(obligatoire\).* 1 בדצמבר 2026/s),
    ]);
    expect(back.toReversed()).toEqual(there);
  });

  it('is not taken for itself while the answers rule it out', () => {
    const field = aField({ visibleWhen: { field: 'other', op: 'notEmpty' } });

    const looks = [false, true, false, true].map((visible) => renderField(field, aView({ visible })).text);

    expect(looks[0]).toMatch(/^<div[^>]* hidden>.*<input[^>]* disabled/s);
    expect(looks[1]).not.toMatch(/ hidden>| disabled/);
    expect(looks.slice(2)).toEqual(looks.slice(0, 2));
  });

  it('is right in every tag that is asked for, and remembered in few', () => {
    const field = aField({ type: 'datetime', max: '2026-12-01T10:00:00Z' });
    const views = ['en', 'de', 'fr', 'es', 'pt', 'ja', 'zh', 'ar'].flatMap((tag) =>
      ['US', 'DE', 'CH', 'EG'].map((region) => aView({ language: chooseLanguage(`${tag}-${region}`) })),
    );
    const first = renderField(field, aView());

    const rounds = [...views, ...views.toReversed(), ...views];
    const texts = rounds.map((view) => renderField(field, view).text);

    expect(texts).toEqual(rounds.map((view) => renderField({ ...field }, view).text));
    expect(new Set(texts).size).toBeGreaterThan(8);
    expect(renderField(field, aView())).not.toBe(first);
    expect(renderField(field, aView())).toEqual(first);
  });

  it.each<[Field['type'], Partial<FieldView>, RegExp]>([
    ['text', { texts: ['Ada'] }, / value="Ada"/],
    ['textarea', { texts: ['Ada'] }, />\nAda<\/textarea>/],
    ['datetime', { texts: ['2026-12-01T10:00:00Z'] }, / value="2026-12-01T10:00"/],
    ['checkbox', { texts: ['true'] }, / checked/],
    ['boolean', { texts: ['false'] }, / value="false" checked/],
    ['select', { texts: ['one'] }, / value="one" selected/],
    ['radio', { texts: ['one'] }, / value="one" checked/],
    ['multi_select', { texts: ['one', 'two'] }, / value="one" checked.* value="two" checked/s],
    ['file', { texts: ['upl_1'], files: new Map([['upl_1', { name: 'cv.pdf' }]]) }, / value="cv\.pdf"/],
  ])(
    'shows the answer and the problem it has later, of the type %s, and then none',
    (type, given, answer) => {
      const options = ['one', 'two', 'three'].map((value) => ({ label: value, value }));
      const field = aField({ type, options });
      const problem = 'Not like that.';

      const empty = renderField(field, aView()).text;
      const filled = renderField(field, aView(given)).text;
      const refused = renderField(field, aView({ ...given, problem })).text;
      const missing = renderField(field, aView({ problem })).text;

      expect(filled).toMatch(answer);
      expect(filled).not.toContain(problem);
      expect(refused).toMatch(answer);
      expect(refused).toContain(problem);
      expect(missing).toContain(problem);
      expect(missing).not.toMatch(answer);
      expect(empty).not.toMatch(answer);
      expect(empty).not.toContain(problem);
      expect(renderField(field, aView()).text).toBe(empty);
    },
  );

  it('is not remembered with what another answered first', () => {
    const field = aField({ id: 'email', type: 'email' });

    renderField(field, aView({ texts: ['ada@example.com'] }));
    renderField(field, aView({ problem: 'Ada, that is no address.' }));

    expect(renderField(field, aView()).text).not.toMatch(/ada/i);
  });
});

function aField(given: Partial<Field>): Field {
  return {
    id: 'field',
    type: 'text',
    label: 'Label',
    required: false,
    hidden: false,
    answeredBy: 'anyone',
    page: 1,
    ...given,
  };
}

/** As an English page shows it, with no answer and no problem, unless said otherwise. */
function aView(given: Partial<FieldView> = {}): FieldView {
  return {
    language: chooseLanguage('en'),
    texts: [],
    parts: new Map(),
    problem: undefined,
    visible: true,
    files: new Map(),
    ...given,
  };
}

function fieldsOfEveryType(): Field[] {
  const definition = { name: 'Every', slug: 'every', fields: everyType, delivery: { type: 'email' } };
  const checked = checkDefinition(definition, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition.fields;
}

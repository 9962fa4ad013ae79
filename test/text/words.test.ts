import { describe, expect, it } from 'vitest';
import { chooseLanguage, fill, languages } from '../../src/text/words.ts';

describe('the words', () => {
  it.each(Object.entries(languages))('are all there in %s, with the same places to fill', (_tag, words) => {
    expect(placesByKey(words)).toEqual(placesByKey(languages.en));
  });

  it.each([
    ['de', undefined, 'de', 'ltr', 'Absenden'],
    ['de-CH', 'fr', 'de-CH', 'ltr', 'Absenden'],
    ['', 'fr;q=0.5, ja, en;q=0.1', 'ja', 'ltr', '送信'],
    ['', 'de;q=0, xx, es-MX;q=0.2', 'es-MX', 'ltr', 'Enviar'],
    ['', undefined, 'en', 'ltr', 'Submit'],
    ['', '*', 'en', 'ltr', 'Submit'],
    ['ar', 'en', 'ar', 'rtl', 'إرسال'],
    ['he', 'de', 'he', 'rtl', 'Absenden'],
    ['constructor', '__proto__', 'constructor', 'ltr', 'Submit'],
  ])(
    'a form in "%s" for a person who reads "%s" is in %s, %s',
    (locale, accepted, tag, direction, submit) => {
      const language = chooseLanguage(locale, accepted);

      expect([language.tag, language.direction, language.words.submit]).toEqual([tag, direction, submit]);
    },
  );

  it('fill only the places that are given a value, and only once', () => {
    expect(fill('{a} {b} {c}', { a: '{b}', b: 2 })).toBe('{b} 2 {c}');
  });
});

/** The placeholders of each text, by its group and key. */
function placesByKey(words: Record<string, Record<string, string>>): Record<string, string[]> {
  const texts = Object.entries(words).flatMap(([group, named]) =>
    Object.entries(named).map(([key, text]): [string, string] => [`${group}.${key}`, text]),
  );
  for (const [key, text] of texts) expect([key, text.trim()]).not.toEqual([key, '']);
  return Object.fromEntries(
    texts.map(([key, text]) => [key, [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort()]),
  );
}

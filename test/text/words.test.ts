import { describe, expect, it } from 'vitest';
import { en } from '../../src/text/words/en.ts';
import { chooseLanguage, fill, languages } from '../../src/text/words/language.ts';
import { chooseMailLanguage } from '../../src/text/words/mails/index.ts';
import { en as ownerWords } from '../../src/text/words/owner/en.ts';
import { chooseOwnerLanguage } from '../../src/text/words/owner/index.ts';

describe('the words of the pages', () => {
  it.each(Object.entries(languages))('are all there in %s, with the same places to fill', (_tag, words) => {
    expect(Object.keys(words)).toEqual(Object.keys(en));
    for (const [key, text] of Object.entries(en)) {
      expect([key, placesOf(Reflect.get(words, key))]).toEqual([key, placesOf(text)]);
      expect(Reflect.get(words, key)).not.toBe('');
    }
  });

  it.each(Object.keys(languages))('of owners and of mails are all there in %s, too', (tag) => {
    const mailWords = chooseMailLanguage('en').mail;
    for (const [words, english] of [
      [chooseOwnerLanguage(tag).owner, ownerWords],
      [chooseMailLanguage(tag).mail, mailWords],
    ] as const) {
      for (const [key, text] of Object.entries(english)) {
        expect([key, placesOf(Reflect.get(words, key) ?? '')]).toEqual([key, placesOf(text)]);
        expect(Reflect.get(words, key)).not.toBe('');
      }
      expect(Object.keys(words).toSorted()).toEqual(Object.keys(english).toSorted());
    }
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

function placesOf(text: string): string[] {
  return [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();
}

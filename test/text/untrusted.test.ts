import { describe, expect, it } from 'vitest';
import { lettersAndDigits, withBrokenLinks, withoutLinks, withoutMarkup } from '../../src/text/untrusted.ts';

const links = [
  'https://evil.example/x',
  'HTTP://evil',
  'http:/evil',
  'http:\\\\evil',
  'hxxp://evil',
  'hxxps:evil',
  '//evil',
  'mailto:ada',
  'javascript:alert(1)',
  'ｈｔｔｐ：／／evil',
  'evil.example',
  'evil.co',
  'EVIL.COM.',
  '(evil.com)',
  'sub.evil.com/path?x',
  'пример.рф',
  'evil.xn--p1ai',
  'i❤.ws',
  '👍🏽.to/x',
  'evil。com',
  'evil．com',
  'evil｡com',
  'evil․com',
  'evil﹒com',
  'ev\u200bil.\u200dcom',
  'evil\u2060.com',
  'evil\u00ad.c\u034fom',
  'www',
  'ada@evil',
  'ada＠evil.com',
  '192.0.2.1',
  '192。0。2。1',
  '１９２.0.2.1',
  '①.②.③.④',
  '127.1',
  '127.0.1',
  '0177.0.0.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '192.0.2.1:8080/x',
  '[::1]',
  '::ffff:192.0.2.1',
  '2001:db8:1:2:3:4:5:6',
  'evil%2Ecom',
  'evil&#46;com',
  'evil&period;com',
];

const honestWords = [
  'Survey 2.0',
  'Anmeldung 22.11.2026, 9.30',
  'Essen z.B. am 3.4. um 10:30:15',
  'U.S. and Yes/No: R&D (2026)',
  'Wait...what… no',
  'お名前。ご住所・電話',
  'col·lecció',
  'नमस्ते 你好 السلام۔ عليكم',
  'Topic:Sales 50% 12345678',
];

describe('withoutLinks', () => {
  it.each(links)('leaves %j out', (link) => {
    expect(withoutLinks(`Win ${link} now`)).toBe('Win […] now');
  });

  it.each(honestWords)('keeps %j', (text) => {
    expect(withoutLinks(text)).toBe(text);
  });

  it('gives one line of at most 100 characters', () => {
    expect(withoutLinks(`a\r\nb\u2028c\u202ed ${'x'.repeat(200)}`)).toBe(`a b c d ${'x'.repeat(91)}…`);
  });
});

describe('withBrokenLinks', () => {
  it.each(links)('leaves no link of %j', (link) => {
    const broken = withBrokenLinks(link);

    expect(broken).not.toMatch(/:\/\/|[^\]]:[^\]]|[\p{L}\p{N}\p{S}][.。．｡․﹒][\p{L}\p{N}]|[^[][@＠]/u);
  });

  it.each([
    [
      'See https://example.com/a?b=c,\n\tor ada@example.com.',
      'See https[:]//example[.]com/a?b=c,\n\tor ada[@]example[.]com[.]',
    ],
    ['evil。com ev\u200bil.com evil\ufeff.com', 'evil[.]com evil[.]com evil[.]com'],
    ['Call +49 151 12345678 or 4915112345678', 'Call +49 151 12345678 or 4915112345678'],
  ])('keeps the words of %j readable', (text, broken) => {
    expect(withBrokenLinks(text)).toBe(broken);
  });

  it.each(honestWords)('keeps %j', (text) => {
    expect(withBrokenLinks(text)).toBe(text);
  });
});

describe('withoutMarkup', () => {
  it.each(links)('leaves no link of %j', (link) => {
    expect(withoutMarkup(link)).not.toMatch(/:\/\/|[@<>[\]]|[\p{L}\p{N}][.。．｡․﹒][\p{L}\p{N}]/u);
  });

  it.each([
    ['<!channel> & <@U1> [x](y)', '＜!channel＞ ＆ ＜［＠］U1＞ ［x］(y)'],
    ['**b** _i_ ~s~ `c` a|b \\*', '＊＊b＊＊ ＿i＿ ～s～ ｀c｀ a｜b ＼＊'],
    ['one\n    # two\n- three\n===\r\u202efour', 'one\n＃ two\n－ three\n＝==  four'],
    ['@everyone', '［＠］everyone'],
  ])('makes words of %j', (text, words) => {
    expect(withoutMarkup(text)).toBe(words);
  });

  it.each(honestWords.filter((text) => !/[&]/.test(text)))('keeps %j', (text) => {
    expect(withoutMarkup(text)).toBe(text);
  });
});

it.each([
  ['Contact', 'Contact'],
  ["Ada's form: https://evil.example/x?y=1", 'Ada s form https evil example x y 1'],
  ['ev\u200bil․com <b>&amp;', 'evil com b amp'],
  ['नमस्ते 你好 ２０２６', 'नमस्ते 你好 2026'],
  ['\u3164\u115f🎉 …', ''],
  ['😀'.repeat(3) + 'é'.repeat(100), 'é'.repeat(60)],
])('lettersAndDigits keeps nothing else of %j', (text, plain) => {
  expect(lettersAndDigits(text)).toBe(plain);
});

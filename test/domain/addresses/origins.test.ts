import { describe, expect, it } from 'vitest';
import { allowedRedirect, checkOrigin } from '../../../src/domain/addresses/origins.ts';

const own = { baseUrl: 'https://api.example.com/forms', hostedUrl: 'https://forms.example.com' };
const allowed = ['https://shop.example'];

describe('checkOrigin', () => {
  it.each([
    ['https://shop.example', allowed],
    ['https://api.example.com', allowed],
    ['https://forms.example.com', allowed],
    [undefined, allowed],
    ['https://anywhere.example', []],
    ['null', []],
  ])('lets %s post where %j may', (origin, origins) => {
    const header = new Headers(origin === undefined ? {} : { origin });

    expect(() => checkOrigin(header, origins, own)).not.toThrow();
  });

  it.each(['https://shop.example.evil', 'http://shop.example', 'https://shop.example:444', ''])(
    'refuses %s',
    (origin) => {
      expect(() => checkOrigin(new Headers({ origin }), allowed, own)).toThrow('may not post');
    },
  );

  it('refuses null', () => {
    expect(() => checkOrigin(new Headers({ origin: 'null' }), allowed, own)).toThrow('has no origin');
  });
});

describe('allowedRedirect', () => {
  const page = new Headers({ origin: 'https://blog.example' });

  it.each([
    ['https://blog.example/thanks?a=1', page, 'https://blog.example/thanks?a=1'],
    ['/thanks', page, 'https://blog.example/thanks'],
    ['https://shop.example/thanks', page, 'https://shop.example/thanks'],
    ['https://shop.example/thanks', new Headers(), 'https://shop.example/thanks'],
    [
      'https://blog.example/',
      new Headers({ referer: 'https://blog.example/contact' }),
      'https://blog.example/',
    ],
    [
      'https://blog.example/',
      new Headers({ origin: 'null', referer: 'https://blog.example/contact' }),
      'https://blog.example/',
    ],
    ['https://evil.example/', page, ''],
    ['//evil.example/', page, ''],
    ['/\\evil.example/', page, ''],
    ['https://blog.example@evil.example/', page, ''],
    ['javascript:alert(1)', page, ''],
    ['data:text/html,x', new Headers({ origin: 'null' }), ''],
    ['/thanks', new Headers(), ''],
    ['', page, ''],
  ])('reads %j', (next, header, expected) => {
    expect(allowedRedirect(next, header, allowed)).toBe(expected);
  });
});

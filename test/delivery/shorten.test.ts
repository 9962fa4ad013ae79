import { describe, expect, it } from 'vitest';
import { shortenRows } from '../../src/delivery/mail/shorten.ts';
import { html } from '../../src/domain/text/html.ts';

const MAX_ANSWER = 32 * 1024;
const MAX_MAIL = 128 * 1024;

describe('shortenRows', () => {
  it('leaves answers that fit as they are, up to the last byte', () => {
    const rows = [
      { label: 'a', text: 'x'.repeat(MAX_ANSWER) },
      { label: 'b', text: '字'.repeat(10_000) },
      { label: 'c', text: '' },
    ];

    expect(shortenRows(rows)).toEqual({ rows, shortened: false });
  });

  it.each(['x', '字', '😀', '&', '"', '\ud800'])(
    'cuts an answer of %j within its bytes, also as HTML',
    (char) => {
      const { rows, shortened } = shortenRows([{ label: 'a', text: char.repeat(100_000) }]);

      const text = rows[0]?.text ?? '';
      expect(shortened).toBe(true);
      expect(text).toBe(`${char.repeat([...text].length - 1)}…`);
      expect(bytes(text)).toBeLessThanOrEqual(MAX_ANSWER);
      expect(bytes(text)).toBeGreaterThan(MAX_ANSWER - 16);
    },
  );

  it.each([0, 1, 2, 3, 4, 5, 6, 7])('cuts no character that people see, after %i bytes', (more) => {
    const family = '👩‍👩‍👧‍👦';
    const given = 'x'.repeat(more) + family.repeat(2_000);

    const text = shortenRows([{ label: 'a', text: given }]).rows[0]?.text ?? '';

    expect(text.slice(more, -1).replaceAll(family, '')).toBe('');
    expect(text.length).toBeGreaterThan(1_000);
  });

  it('holds no more than a mail may in all, and leaves out what comes after that', () => {
    const many = Array.from({ length: 100 }, (_, n) => ({ label: `Field ${n}`, text: '<'.repeat(20_000) }));

    const { rows, shortened } = shortenRows(many);

    expect(shortened).toBe(true);
    expect(rows.map(({ label }) => label)).toEqual(['Field 0', 'Field 1', 'Field 2', 'Field 3']);
    expect(bytes(rows.map(({ label, text }) => label + text).join(''))).toBeLessThanOrEqual(MAX_MAIL);
  });
});

function bytes(text: string): number {
  return Buffer.byteLength(html`${text}`.text);
}

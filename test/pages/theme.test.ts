import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ThemeSchema } from '../../gen/forms/v1/definition_pb.js';
import { accentStyle, contrast, DARK_PAGE, LIGHT_PAGE, logoOf, parse } from '../../src/pages/theme.ts';

describe('the accent colour', () => {
  const colors = [
    '#000000',
    '#ffffff',
    '#ffff00',
    '#ff0000',
    '#00ff00',
    '#0000ff',
    '#808080',
    '#2f4fd0',
    '#FFC0CB',
  ];

  it.each(colors)('%s can be read on both pages, and text on it too', (accentColor) => {
    const style = accentStyle(create(ThemeSchema, { accentColor }));

    const found = [...style.matchAll(/--accent:(#\w+);--on-accent:(#\w+)/g)];
    expect(found).toHaveLength(3);
    for (const [index, page] of [LIGHT_PAGE, DARK_PAGE, DARK_PAGE].entries()) {
      const [accent = page, onAccent = page] = (found[index] ?? []).slice(1).map(parse);
      expect(contrast(accent, page)).toBeGreaterThanOrEqual(4.5);
      expect(contrast(accent, onAccent)).toBeGreaterThanOrEqual(4.5);
    }
  });

  it('stays what it is where it can be read already', () => {
    expect(accentStyle(create(ThemeSchema, { accentColor: '#0a7d5a' }))).toContain(':root{--accent:#0a7d5a');
  });

  it.each(['', 'red', '#fff', '#12345g', '#123456}body{display:none', '</style><script>'])(
    'is none where "%s" is no colour',
    (accentColor) => {
      expect(accentStyle(create(ThemeSchema, { accentColor }))).toBe('');
    },
  );
});

describe('the logo', () => {
  it('is a picture within the page', () => {
    const logo = 'data:image/png;base64,iVBORw0KGgo=';

    expect(logoOf(create(ThemeSchema, { logo }))).toBe(logo);
  });

  it.each([
    '',
    'https://example.com/logo.png',
    'data:image/svg+xml;base64,PHN2Zz4=',
    'data:text/html,<script>',
    'data:image/png;base64,"><script>',
    'javascript:alert(1)',
  ])('is left out where it is "%s"', (logo) => {
    expect(logoOf(create(ThemeSchema, { logo }))).toBeUndefined();
  });
});

import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ThemeSchema } from '../../gen/headlessforms/v1/definition_pb.js';
import { contrast, parseColor as parse } from '../../src/domain/text/color.ts';
import { accentStyle, DARK_PAGE, LIGHT_PAGE, logoOf } from '../../src/pages/layout.ts';

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

    const found = [...style.matchAll(/#\w+/g)].map(([each]) => parse(each));
    const [fill = DARK_PAGE, onFill = fill, light = DARK_PAGE, dark = LIGHT_PAGE] = found;
    expect(style).toMatch(/^:root\{--accent:#\w+;--on-accent:#\w+;--accent-text:light-dark\(#\w+,#\w+\)\}$/);
    expect(fill).toEqual(parse(accentColor));
    expect(contrast(fill, onFill)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(light, LIGHT_PAGE)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(dark, DARK_PAGE)).toBeGreaterThanOrEqual(4.5);
  });

  it('stays what it is, as text too where it can be read already', () => {
    expect(accentStyle(create(ThemeSchema, { accentColor: '#ffd400' }))).toContain(
      ':root{--accent:#ffd400;--on-accent:#000000;',
    );
    expect(accentStyle(create(ThemeSchema, { accentColor: '#0a7d5a' }))).toContain(
      '--accent-text:light-dark(#0a7d5a,',
    );
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

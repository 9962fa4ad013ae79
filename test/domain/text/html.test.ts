import { expect, it } from 'vitest';
import { attributes, html } from '../../../src/domain/text/html.ts';

it('escapes what is put into texts and attributes, and joins lists', () => {
  const hostile = `</p><script>alert("1")</script>&'`;

  expect(
    html`<p title="${hostile}">${[hostile, 1, false, null, undefined, [html`<b>ok</b>`]]}</p>`.text,
  ).toBe(
    '<p title="&lt;/p&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;">' +
      '&lt;/p&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;1<b>ok</b></p>',
  );
});

it('writes attributes that are there, and escapes their values', () => {
  expect(attributes({ value: '"', checked: true, disabled: false, min: 0, max: undefined }).text).toBe(
    ' value="&quot;" checked min="0"',
  );
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { givenSession, startBrowser, type TestBrowser } from '../support/browser.ts';
import { noBrowser } from '../support/chromium.ts';
import { startService, type TestService } from '../support/server.ts';

describe.skipIf(noBrowser)('what authors and prefill bring along', { timeout: 120_000 }, () => {
  let service: TestService;
  let browser: TestBrowser;

  beforeAll(async () => {
    service = await startService();
    browser = await startBrowser(service);
  }, 60_000);
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });
  afterEach(() => browser.expectNoProblems());

  it.each([...hostileTexts.entries()])('is shown as it is and runs nothing: text %i', async (_, text) => {
    const page = await browser.open('/health');

    const session = await givenSession(service, hostileForm(text));
    await page.goto(`${service.url}/f/${session.id}`);
    await page.hover('h1');
    const shown = [
      await page.textContent('h1'),
      await page.textContent('.lead'),
      await page.textContent('[id="note.help"]'),
      await page.inputValue('[name=line]'),
      await page.inputValue('[name=note]'),
      await page.getAttribute('[name=line]', 'placeholder'),
      await page.locator('[name=pick] option:checked').textContent(),
      await page.textContent('legend'),
      await page.locator('.choice span').first().textContent(),
    ];
    await page.click('button[value=forward]');
    await page.waitForSelector('.copy');
    shown.push(await page.textContent('.lead'), await page.locator('dd').first().textContent());

    expect([text, ...new Set(shown)]).toEqual([text, text]);
    expect([
      text,
      await page.evaluate('[window.hit, document.querySelectorAll("script:not([src])").length]'),
    ]).toEqual([text, [undefined, 0]]);
  });

  it('is said of refused answers too, and of files', async () => {
    const page = await browser.open('/health');

    for (const text of hostileTexts.filter((_, index) => index % 4 === 0)) {
      const session = await givenSession(service, {
        name: text,
        fields: [
          { id: 'email', type: 'email', label: text, required: true },
          { id: 'line', type: 'text', label: 'Line', pattern: 'x', patternMessage: text },
          { id: 'file', type: 'file', label: text },
        ],
      });
      await page.goto(`${service.url}/f/${session.id}`);
      await page.fill('[name=line]', text);
      await page.setInputFiles('[type=file]', {
        name: text,
        mimeType: 'text/html',
        buffer: Buffer.from(text),
      });
      await page.locator('.files button, .files .error').first().waitFor();
      await page.click('button[value=forward]');
      await page.waitForSelector('.summary');

      expect(await page.textContent('[id="line.error"]')).toContain(text);
      expect([text, await page.evaluate('window.hit')]).toEqual([text, undefined]);
    }
  });

  it('sends nobody anywhere but to an https address, and shows no logo but a picture', async () => {
    const bad = [
      { redirectUrl: 'javascript:window.hit=1' },
      { redirectUrl: 'https://user:secret@example.com/' },
      { redirectUrl: 'data:text/html,<script>window.hit=1</script>' },
      { redirectUrl: '//example.com' },
      { redirectUrl: 'https://example.com/\r\nset-cookie: a=b' },
      { theme: { logo: 'https://example.com/logo.png' } },
      { theme: { logo: 'javascript:window.hit=1' } },
      {
        theme: {
          logo: `data:image/svg+xml;base64,${Buffer.from('<svg onload="hit=1"/>').toString('base64')}`,
        },
      },
      {
        theme: { logo: `data:image/png;base64,${Buffer.from('<script>hit=1</script>').toString('base64')}` },
      },
      { theme: { logo: 'data:image/png;base64,iVBORw0KGgo=" onerror="window.hit=1' } },
      { theme: { accentColor: '#fff;} body{background:url(https://example.com)}' } },
      { embedOrigins: ["https://a.example; script-src 'unsafe-inline'"] },
    ];

    for (const settings of bad) {
      const created = await service.post('/api/forms/create', { ...form, settings });
      expect([settings, created.status]).toEqual([settings, 422]);
    }
  });
});

function hostileForm(text: string) {
  const options = [{ label: text, value: text }];
  return {
    ...form,
    name: text,
    description: text,
    fields: [
      { id: 'line', type: 'text', label: text, placeholder: text, defaultValue: text },
      { id: 'note', type: 'textarea', label: text, description: text },
      { id: 'pick', type: 'select', label: text, options },
      { id: 'mark', type: 'radio', label: text, options },
      { id: 'said', type: 'statement', label: text, description: text },
      { id: 'scale', type: 'scale', label: text, minLabel: text.slice(0, 100), maxLabel: text.slice(0, 100) },
      { id: 'order', type: 'ranking', label: text, options: [...options, { label: text, value: 'other' }] },
      { id: 'grid', type: 'matrix', label: text, rows: [{ label: text, value: 'row' }], options },
      { id: 'free', type: 'radio', label: text, options: [{ label: 'A', value: 'a' }], allowOther: true },
      { id: 'home', type: 'address', label: text },
    ],
    pages: [{ title: text, description: text }],
    settings: { successMessage: text, submitLabel: text.slice(0, 100), allowPartial: true },
    session: {
      prefill: { note: text, pick: text, mark: text, free: text, home: addressOf(text) },
      metadata: { [text]: text },
    },
  };
}

/** The same text in every part that is free. */
function addressOf(text: string) {
  const line = text.slice(0, 100);
  return {
    line1: line,
    line2: line,
    city: line,
    region: line,
    postal_code: line.slice(0, 20),
    country: 'US',
  };
}

const form = {
  name: 'Form',
  slug: 'form',
  fields: [{ id: 'line', type: 'text' }],
  delivery: { type: 'email' },
};

/** Each sets `window.hit`, opens a dialog, loads something or breaks out of where it stands, if it is let. */
const hostileTexts = [
  '<script>window.hit=1</script>',
  '<ScRiPt src=//example.com/x.js></sCrIpT>',
  '</script><script>window.hit=1</script>',
  '<script type=module>window.hit=1</script>',
  '"><script>window.hit=1</script>',
  "'><script>window.hit=1</script>",
  '"><img src=x onerror="window.hit=1">',
  '<img src=x onerror=window.hit=1>',
  '<img src="x` `<script>window.hit=1</script>"` `>',
  '<img/src/onerror=window.hit=1>',
  '<svg onload=window.hit=1>',
  '<svg><script>window.hit=1</script></svg>',
  '<svg><animate onbegin=window.hit=1 attributeName=x dur=1s>',
  '<svg><use href="data:image/svg+xml;base64,PHN2Zz4="/></svg>',
  '<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>',
  '</textarea><script>window.hit=1</script>',
  '</textarea></title></style><svg onload=window.hit=1>',
  '</title><script>window.hit=1</script>',
  '</select><img src=x onerror=window.hit=1>',
  '</option></select><svg onload=window.hit=1>',
  '</legend></fieldset><script>window.hit=1</script>',
  '<body onload=window.hit=1>',
  '<iframe src="javascript:parent.hit=1"></iframe>',
  '<iframe srcdoc="<script>parent.hit=1</script>">',
  '<object data="javascript:window.hit=1">',
  '<embed src="javascript:window.hit=1">',
  '<a href="javascript:window.hit=1" autofocus onfocus="window.hit=1">x</a>',
  '<base href="https://example.com/">',
  '<meta http-equiv="refresh" content="0;url=https://example.com">',
  '<link rel=stylesheet href="https://example.com/x.css">',
  '<style>@import "https://example.com/x.css";</style>',
  '<style>*{background:url(https://example.com/x)}</style>',
  '<form action="https://example.com"><input name=stolen>',
  '<input autofocus onfocus=window.hit=1>',
  '" autofocus onfocus="window.hit=1" x="',
  "' onmouseover='window.hit=1' x='",
  '" onmouseover="window.hit=1" style="position:fixed;inset:0" x="',
  '` onmouseover=`window.hit=1',
  '<details open ontoggle=window.hit=1>',
  '<video><source onerror=window.hit=1>',
  '<marquee onstart=window.hit=1>',
  '<template><script>window.hit=1</script></template>',
  '<noscript><p title="</noscript><img src=x onerror=window.hit=1>">',
  '<!--><script>window.hit=1</script>-->',
  '<!-- --!><script>window.hit=1</script>',
  ']]><script>window.hit=1</script><![CDATA[',
  'javascript:window.hit=1',
  'jAvAsCrIpT:alert(1)//',
  '{{constructor.constructor("window.hit=1")()}}',
  '\u0024{window.hit=1} <%= hit %> #{hit}',
  '&lt;script&gt;window.hit=1&lt;/script&gt; &amp;quot; &#x3c;',
  '&#60;script&#62;window.hit=1&#60;/script&#62;',
  '<script\u0001>window.hit=1</script\u0001>',
  '<\u202Etpircs>window.hit=1</script>',
  '\u202Ertl override \u2066isolate',
  '+ADw-script+AD4-window.hit=1+ADw-/script+AD4-',
  '%3Cscript%3Ewindow.hit=1%3C/script%3E',
  '\u2028window.hit=1\u2029//',
  "';window.hit=1;//",
  '\\";window.hit=1;//',
  '\\u003cscript\\u003ewindow.hit=1\\u003c/script\\u003e',
  '__proto__ constructor toString',
];

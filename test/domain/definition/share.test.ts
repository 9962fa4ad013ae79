import { describe, expect, it } from 'vitest';
import { checkDefinition, type FormDefinition } from '../../../src/domain/definition/definition.ts';
import { shareOf } from '../../../src/domain/definition/share.ts';

const addresses = { baseUrl: 'https://api.example', hostedUrl: 'https://forms.example', sample: {} };

describe('what a form is shared by', () => {
  it('asks in HTML all that plain inputs can ask, with words of the author as text', () => {
    const share = shareOf(
      'form_1',
      formOf([
        { id: 'email', type: 'email', label: 'Your "mail" <b>', required: true },
        { id: 'source', type: 'hidden', defaultValue: 'site' },
        { id: 'note', type: 'textarea' },
        { id: 'size', type: 'select', options: [{ label: 'S & M', value: '"s"' }] },
        { id: 'stars', type: 'rating', max: 5 },
        { id: 'ok', type: 'boolean', required: true },
        {
          id: 'terms',
          type: 'checkbox',
          visibleWhen: { field: 'ok', op: 'eq', value: true },
          required: true,
        },
        { id: 'cv', type: 'file', maxFiles: 2 },
        { id: 'by', type: 'text', answeredBy: 'agent' },
      ]),
      addresses,
    );

    expect(share.htmlSnippet).toMatchInlineSnapshot(`
      "<form action="https://api.example/api/forms/form_1/submissions" method="post" enctype="multipart/form-data" accept-charset="utf-8">
        <p><label>Your &quot;mail&quot; &lt;b&gt;<br>
          <input name="email" type="email" required maxlength="254"></label></p>
        <input name="source" type="hidden" value="site">
        <p><label>Note<br>
          <textarea name="note" maxlength="10000"></textarea></label></p>
        <p><label>Size<br>
          <select name="size">
            <option value=""></option>
            <option value="&quot;s&quot;">S &amp; M</option>
          </select></label></p>
        <p><label>Stars<br>
          <input name="stars" type="number" min="1" max="5"></label></p>
        <fieldset>
          <legend>Ok</legend>
          <label><input name="ok" type="radio" value="true" required> Yes</label>
          <label><input name="ok" type="radio" value="false" required> No</label>
        </fieldset>
        <p><label><input name="terms" type="checkbox" value="true"> Terms</label></p>
        <p><label>Cv<br>
          <input name="cv" type="file" multiple></label></p>
        <!-- Where to go next, on your site or one in allowedOrigins; and where answers come from. -->
        <input name="_next" type="hidden" value="">
        <input name="_source" type="hidden" value="website">
        <input name="_gotcha" tabindex="-1" autocomplete="off" style="position:absolute;left:-100vw" aria-hidden="true">
        <button>Send</button>
      </form>"
    `);
  });

  it.each([
    ['number', {}, 'step="any"'],
    ['number', { step: 0.5 }, 'step="0.5"'],
    ['number', { step: 0.1, min: 0.3, max: 2 }, 'min="0.3" max="2" step="0.1"'],
    ['number', { step: 2, min: -4 }, 'min="-4" step="2"'],
    // Browsers would count from 1.
    ['number', { step: 2, min: 1 }, 'min="1" step="any"'],
    ['number', { min: 1.5 }, 'min="1.5" step="any"'],
    ['date', { min: '2026-01-01', max: '2026-12-31' }, 'min="2026-01-01" max="2026-12-31"'],
    ['time', { min: '09:00', max: '17:30:15' }, 'min="09:00" max="17:30:15"'],
    ['time', { min: '09:00:30' }, 'min="09:00:30" step="any"'],
    ['datetime', { min: '2026-01-01T10:00:00+02:00' }, 'min="2026-01-01T08:00"'],
    ['datetime', { max: '2026-01-01T10:00:30Z' }, ''],
    ['text', { minLength: 2, maxLength: 9 }, 'maxlength="9" minlength="2"'],
    [
      'text',
      { pattern: '[A-Z]{2}\\d+', patternMessage: 'Like AB1' },
      'pattern="[A-Z]{2}\\d+" title="Like AB1"',
    ],
    // The service means spaces of ASCII, characters and no sets, and has flags.
    ['text', { pattern: '\\S+', patternMessage: 'One word' }, ''],
    ['text', { pattern: '[[a]' }, ''],
    ['text', { pattern: '[a&&b]' }, ''],
    ['text', { pattern: '[+--]' }, ''],
    ['text', { pattern: '[(]' }, ''],
    ['text', { pattern: '(?i)ab' }, ''],
    ['text', { pattern: '\\pL+' }, ''],
    // The service sees it folded.
    ['phone', { pattern: '\\d+', minLength: 5 }, 'maxlength="55"'],
    ['email', { pattern: '.+@example[.]com' }, ''],
    ['textarea', { minLength: 3 }, 'minlength="3"'],
  ])('lets browsers check a %s with %j by nothing but %s', (type, attributes, checks) => {
    const { htmlSnippet } = shareOf('form_1', formOf([{ id: 'a', type, ...attributes }]), addresses);

    const [, own = ''] = /name="a"( type="[^"]*")?([^>]*)>/.exec(htmlSnippet)?.slice(1) ?? [];
    const found = [...own.matchAll(/ (?:min|max|step|minlength|maxlength|pattern|title)="[^"]*"/g)].map(
      ([each]) => each,
    );
    const long = / maxlength="\d{3,}"/;
    expect(found.join('').replace(long, '').trim()).toBe(checks);
  });

  it('warns of options that read the same, and of hidden fields that the link must fill in', () => {
    const options = ['a', 'b', 'c'].map((value) => ({
      label: value === 'b' ? 'A' : value.toUpperCase(),
      value,
    }));
    const fields = [
      { id: 'plan', type: 'radio', options },
      { id: 'fit', type: 'matrix', options: options.slice(1), rows: options },
      { id: 'token', type: 'hidden', required: true },
      { id: 'tier', type: 'text', hidden: true, required: true, defaultValue: 'free' },
    ];
    const warningsOf = (settings: object) => shareOf('form_1', formOf(fields, settings), addresses).warnings;

    expect(warningsOf({})).toEqual([
      '“plan” has choices that read the same.',
      '“fit” has choices that read the same.',
      'The link of the page needs ?token=…: the hidden field “token” is required and has no default.',
    ]);
    expect(warningsOf({ publicPage: false })).toHaveLength(2);
  });

  it('warns of settings that own pages do nothing of', () => {
    const warningsOf = (settings: object) =>
      shareOf('form_1', formOf([{ id: 'email', type: 'email' }], settings), addresses).warnings;

    expect(warningsOf({})).toEqual([]);
    expect(warningsOf({ spam: { minSeconds: 3 }, redirectUrl: 'http://localhost:3000/' })).toEqual([
      expect.stringContaining('spam.minSeconds'),
      expect.stringContaining('redirectUrl'),
    ]);
  });

  it('warns where replies go to one of several email addresses', () => {
    const warningsOf = (fields: object[], delivery: object = {}) => {
      const form = formOf([
        { id: 'topic', type: 'text' },
        ...fields.map((field) => ({ type: 'email', ...field })),
      ]);
      return shareOf('form_1', { ...form, delivery: { type: 'email', ...delivery } }, addresses).warnings;
    };
    const several = [{ id: 'home' }, { id: 'work', required: true }];

    expect(warningsOf(several)).toEqual([expect.stringMatching(/“work”.*delivery\.replyTo/)]);
    expect(warningsOf(several, { replyTo: 'home' })).toEqual([]);
    expect(warningsOf([{ id: 'home' }, { id: 'agents', hidden: true }])).toEqual([]);
  });

  it('asks in HTML for a typed signature, and has no HTML where one must be drawn', () => {
    const snippetOf = (accept: string[]) => {
      const form = formOf([{ id: 'sign', type: 'signature', required: true, accept }]);
      return shareOf('form_1', form, addresses).htmlSnippet;
    };
    const input = '<input name="sign.text" type="text" autocomplete="name" required>';

    expect(snippetOf(['drawn', 'typed'])).toContain(input);
    expect(snippetOf(['typed'])).toContain(input);
    expect(snippetOf(['drawn'])).toBe('');
  });

  it.each([
    ['a person must answer', { answeredBy: 'human' }],
    ['an agent must answer', { answeredBy: 'agent' }],
  ])('has no HTML where %s', (_name, attributes) => {
    const form = formOf([{ id: 'consent', type: 'checkbox', required: true, ...attributes }]);

    expect(shareOf('form_1', form, addresses).htmlSnippet).toBe('');
  });

  it('has nothing of a page where there is none', () => {
    const form = formOf([{ id: 'email', type: 'email' }], { publicPage: false });

    expect(shareOf('form_1', form, { ...addresses, withQr: true })).toMatchObject({
      pageUrl: '',
      embedSnippet: '',
      qrUrl: '',
      qrSvg: '',
    });
  });

  it('lets no answer end the script that it stands in', () => {
    const sample = { text: '</script><script>alert(1)' };

    const { fetchSnippet } = shareOf('form_1', formOf([{ id: 'text', type: 'text' }]), {
      ...addresses,
      sample,
    });

    expect(fetchSnippet).not.toContain('</script');
    expect(JSON.parse(/stringify\((\{.*?\n {2}\})\)/s.exec(fetchSnippet)?.[1] ?? '')).toEqual({
      source: 'website',
      answers: sample,
    });
  });
});

function formOf(fields: object[], settings: object = {}): FormDefinition {
  const given = { name: 'Test', slug: 'test', fields, delivery: { type: 'email' }, settings };
  const checked = checkDefinition(given, { keyless: false, allowPrivateUrls: false });
  if (!checked.ok) throw new Error(JSON.stringify(checked.violations));
  return checked.definition;
}

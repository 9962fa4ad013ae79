import encodeQR from 'qr';
import type { Answers } from '../answers/answers.ts';
import { lackingFromAgent, lackingFromLink } from '../conditions/shown-fields.ts';
import type { Field } from '../fields/field.ts';
import type { Control, LineInput } from '../fields/field-type.ts';
import { fieldRules, longestAnswer } from '../fields/index.ts';
import { isMultiple } from '../fields/number.ts';
import { takesWay } from '../fields/signature.ts';
import { htmlPattern } from '../fields/text.ts';
import { isScalar } from '../json/json.ts';
import { memoize } from '../memoize.ts';
import { attributes, Html, html } from '../text/html.ts';
import type { FormDefinition } from './definition.ts';
import { fieldsToReplyTo } from './delivery.ts';

/**
 * How to reach a published form: addresses, and snippets for somebody's own site. What there is none of is empty: the
 * page's parts where it has no page of its own, the HTML where such a form can't ask all that is required.
 *
 * `sample` are made-up answers.
 */
export function shareOf(formId: string, definition: FormDefinition, to: ShareContext) {
  const submissionsUrl = `${to.baseUrl}/api/forms/${formId}/submissions`;
  const pageUrl = publicPageUrl(formId, definition, to.hostedUrl) ?? '';
  return {
    pageUrl,
    submissionsUrl,
    htmlSnippet: htmlSnippet(definition, submissionsUrl),
    fetchSnippet: fetchSnippet(submissionsUrl, to.sample),
    embedSnippet:
      pageUrl === '' ? '' : html`<script src="${to.hostedUrl}/embed.js" data-form="${formId}"></script>`.text,
    qrUrl: pageUrl === '' ? '' : `${pageUrl}${QR_PATH}`,
    qrSvg: pageUrl !== '' && to.withQr === true ? qrSvg(pageUrl) : '',
    warnings: warningsOf(definition),
  };
}

/** What the author of a form may expect, and what does not hold. */
export function warningsOf(definition: FormDefinition): string[] {
  const { fields, delivery } = definition;
  const { spam, redirectUrl } = definition.settings;
  const [replied, ...others] =
    delivery.type === 'email' && delivery.replyTo === undefined ? fieldsToReplyTo(fields) : [];
  const warnings = [
    ...fields.flatMap(({ id, options, rows }) =>
      [options, rows].some(readTheSame) ? `“${id}” has choices that read the same.` : [],
    ),
    ...(hasPublicPage(definition) ? lackingFromLink(fields, {}) : []).map(
      ({ id }) =>
        `The link of the page needs ?${id}=…: the hidden field “${id}” is required and has no default.`,
    ),
    others.length > 0 &&
      `The form asks for several email addresses, and replies go to “${replied?.id}”: name another field in delivery.replyTo.`,
    spam.minSeconds !== undefined &&
      'spam.minSeconds is measured on the form’s own page and its script embed.js only: posts of your own HTML are not timed.',
    redirectUrl !== undefined &&
      'redirectUrl is followed by the form’s own page only: your own HTML names the next page in “_next”.',
  ];
  return warnings.filter((warning) => warning !== false);
}

function readTheSame(choices: Field['options'] = []): boolean {
  return new Set(choices.map(({ label }) => label.trim())).size < choices.length;
}

/** The address of a form's own page; undefined if it has none. */
export function publicPageUrl(
  formId: string,
  definition: FormDefinition,
  hostedUrl: string,
): string | undefined {
  return hasPublicPage(definition) ? `${hostedUrl}/f/${formId}` : undefined;
}

/** JavaScript for a module; it may stand in a script element. */
function fetchSnippet(url: string, answers: Answers): string {
  const body = JSON.stringify({ source: 'website', answers }, null, 2)
    .replaceAll('<', '\\u003c')
    .replace(/\n/g, '\n  ');
  return `const response = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(${body}),
});
const { ok, submission_id, error } = await response.json();
// error.details names each refused answer.
console.log(ok ? submission_id : error);`;
}

/** A QR code as SVG: black on white, with the margin that readers need. Neighbours in a row are one line, which halves the text. */
export function qrSvg(text: string): string {
  const rows = encodeQR(text, 'raw', { border: QUIET_MODULES });
  const lines = rows.flatMap((row, y) => {
    const dark = row.map(Number).join('').matchAll(/1+/g);
    return [...dark].map(({ index, 0: run }) => `M${index} ${y}.5h${run.length}`);
  });
  const box = `<svg viewBox="0 0 ${rows.length} ${rows.length}" xmlns="http://www.w3.org/2000/svg">`;
  const ground = '<rect width="100%" height="100%" fill="#fff"/>';
  return `${box}${ground}<path stroke="#000" d="${lines.join('')}"/></svg>`;
}

const QUIET_MODULES = 4;

/** Where the QR code of a form's page is, from that page. */
export const QR_PATH = '/qr.svg';

export type Share = ReturnType<typeof shareOf>;

/** `withQr`: with the QR code itself, of some kilobytes. */
type ShareContext = { baseUrl: string; hostedUrl: string; sample: Answers; withQr?: boolean };

/**
 * Whether a form has a page of its own that everybody may fill in: not where its settings say so, nor where an agent
 * has to give answers first, since nobody could submit it. Versions that are older than the setting have none of it.
 */
export const hasPublicPage = memoize(
  ({ fields, settings }: FormDefinition): boolean =>
    settings.publicPage !== false && lackingFromAgent(fields, {}).length === 0,
);

/**
 * An HTML form for somebody's own site, which posts answers to `action`; empty if such a form can't ask for a required
 * answer. Conditions do not apply there: what is asked under one may be left empty.
 */
function htmlSnippet({ fields }: FormDefinition, action: string): string {
  const askable = fields.filter(({ answeredBy }) => (answeredBy ?? 'anyone') === 'anyone');
  const asked = new Map(askable.map((field) => [field, inputFor(field)]));
  if (fields.some((field) => field.required && asked.get(field) === undefined)) return '';
  const enctype = askable.some(({ type }) => type === 'file') && 'multipart/form-data';
  return html`<form${attributes({ action, method: 'post', enctype, 'accept-charset': 'utf-8' })}>
${[...asked.values()].map((input) => input && html`  ${indented(input)}\n`)}  <!-- Where to go next, on your site or one in allowedOrigins; and where answers come from. -->
  <input name="_next" type="hidden" value="">
  <input name="_source" type="hidden" value="website">
  <input name="_gotcha" tabindex="-1" autocomplete="off" style="position:absolute;left:-100vw" aria-hidden="true">
  <button>Send</button>
</form>`.text;
}

function inputFor(field: Field): Html | undefined {
  const { id: name, hidden, defaultValue } = field;
  if (hidden) return html`<input${attributes({ name, type: 'hidden', value: textOf(defaultValue) })}>`;
  return inputs[fieldRules[field.type].control](field, field.required && field.visibleWhen === undefined);
}

/** Undefined for controls whose answers an HTML form can't hold. */
const inputs: Record<Control, (field: Field, required: boolean) => Html | undefined> = {
  line: (field, required) => {
    const type = fieldRules[field.type].input ?? 'text';
    return input(field, { type, required, maxlength: longestAnswer(field), ...checks[type]?.(field) });
  },
  rating: points,
  scale: points,
  textarea: (field, required) =>
    labelled(
      field,
      html`<textarea${attributes({ name: field.id, required, minlength: field.minLength, maxlength: longestAnswer(field) })}></textarea>`,
    ),
  files: (field, required) => {
    const multiple = (field.maxFiles ?? 1) > 1;
    return input(field, { type: 'file', accept: field.accept?.join(','), required, multiple });
  },
  select: (field, required) => {
    const choices = [{ label: '', value: '' }, ...(field.options ?? [])].map(
      ({ label, value }) => html`  <option${attributes({ value })}>${label}</option>\n`,
    );
    return labelled(field, html`<select${attributes({ name: field.id, required })}>\n${choices}</select>`);
  },
  checkbox: ({ id: name, label }, required) =>
    html`<p><label><input${attributes({ name, type: 'checkbox', value: 'true', required })}> ${label}</label></p>`,
  yes_no: (field, required) =>
    group(field, { type: 'radio', required }, [
      { label: 'Yes', value: 'true' },
      { label: 'No', value: 'false' },
    ]),
  radios: (field, required) => group(field, { type: 'radio', required }),
  checkboxes: (field) => group(field, { type: 'checkbox' }),
  statement: ({ label }) => html`<p>${label}</p>`,
  signature: (field, required) =>
    takesWay(field, 'typed')
      ? input(field, { name: `${field.id}.text`, type: 'text', autocomplete: 'name', required })
      : undefined,
  ranking: () => undefined,
  matrix: () => undefined,
  address: () => undefined,
};

/** What browsers check as the service does, which sees telephone numbers and addresses folded. */
const checks: Partial<Record<LineInput, (field: Field) => Parameters<typeof attributes>[0]>> = {
  text: ({ minLength: minlength, pattern: own, patternMessage }) => {
    const pattern = htmlPattern(own);
    return { minlength, pattern, title: pattern && patternMessage };
  },
  // Browsers count steps from the least number, and take whole numbers alone without a step.
  number: ({ min, max, step }) => ({
    min,
    max,
    step: step !== undefined && isMultiple(Number(min ?? 0), step) ? step : 'any',
  }),
  date: ({ min, max }) => ({ min, max }),
  // Minutes are counted from the earliest time, which may have seconds.
  time: ({ min, max }) => ({ min, max, step: /:\d\d:(?!00)/.test(String(min)) ? 'any' : undefined }),
  'datetime-local': ({ min, max }) => ({ min: minuteOf(min?.toString()), max: minuteOf(max?.toString()) }),
};

/** An instant as the service reads such an input, in UTC; undefined if it is between two minutes. */
function minuteOf(instant = ''): string | undefined {
  return /^(.+):00\.000Z$/.exec(new Date(instant).toJSON() ?? '')?.[1];
}

function points(field: Field, required: boolean): Html {
  return input(field, { type: 'number', min: field.min ?? 1, max: field.max, required });
}

function input(field: Field, values: Parameters<typeof attributes>[0]): Html {
  return labelled(field, html`<input${attributes({ name: field.id, ...values })}>`);
}

function labelled({ label }: Field, control: Html): Html {
  return html`<p><label>${label}<br>\n  ${indented(control)}</label></p>`;
}

function group(
  { id: name, label, options = [] }: Field,
  { type, required = false }: { type: string; required?: boolean },
  choices: NonNullable<Field['options']> = options,
): Html {
  return html`<fieldset>
  <legend>${label}</legend>
${choices.map(
  (choice) =>
    html`  <label><input${attributes({ name, type, value: choice.value, required })}> ${choice.label}</label>\n`,
)}</fieldset>`;
}

/** All lines but the first, which stands behind what is before it. */
function indented({ text }: Html): Html {
  return new Html(text.replace(/\n/g, '\n  '));
}

function textOf(value: unknown): string | undefined {
  return isScalar(value) && value !== null ? String(value) : undefined;
}

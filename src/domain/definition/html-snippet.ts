import type { Field } from '../fields/field.ts';
import { fieldRules } from '../fields/index.ts';
import { takesWay } from '../fields/signature.ts';
import { escapeHtml } from '../text/escape-html.ts';
import type { FormDefinition } from './definition.ts';

/**
 * An HTML form for somebody's own site, which posts answers to `action`; empty if such a form can't ask for a required
 * answer. Conditions do not apply there: what is asked under one may be left empty.
 */
export function htmlSnippet({ fields }: FormDefinition, action: string): string {
  const askable = fields.filter(({ answeredBy }) => (answeredBy ?? 'anyone') === 'anyone');
  const asked = askable.map((field) => ({ field, html: inputFor(field) }));
  const lacks = fields.some(
    (field) => field.required && asked.find((each) => each.field === field)?.html === undefined,
  );
  if (lacks) return '';
  const enctype = askable.some(({ type }) => type === 'file') ? ' enctype="multipart/form-data"' : '';
  return [
    `<form action="${escapeHtml(action)}" method="post"${enctype}>`,
    ...asked.flatMap(({ html }) => (html === undefined ? [] : [html])).map(indent),
    '  <input name="_gotcha" tabindex="-1" autocomplete="off" style="position:absolute;left:-100vw" aria-hidden="true">',
    '  <button>Send</button>',
    '</form>',
  ].join('\n');
}

/** Undefined for types whose answers an HTML form can't hold. */
function inputFor(field: Field): string | undefined {
  const { id, type, hidden, options = [] } = field;
  const { control } = fieldRules[type];
  const required = field.required && field.visibleWhen === undefined && ' required';
  if (hidden) return tag('input', { name: id, type: 'hidden', value: textOf(field.defaultValue) });
  switch (control) {
    case 'line':
      return labelled(field, tag('input', { name: id, type: inputTypes[type] ?? 'text' }, required));
    case 'rating':
    case 'scale':
      return labelled(
        field,
        tag(
          'input',
          { name: id, type: 'number', min: textOf(field.min ?? 1), max: textOf(field.max) },
          required,
        ),
      );
    case 'textarea':
      return labelled(field, `${tag('textarea', { name: id }, required)}</textarea>`);
    case 'files': {
      const multiple = (field.maxFiles ?? 1) > 1 && ' multiple';
      return labelled(
        field,
        tag('input', { name: id, type: 'file', accept: field.accept?.join(',') }, required, multiple),
      );
    }
    case 'select': {
      const choices = [{ label: '', value: '' }, ...options].map(
        ({ label, value }) => `  ${tag('option', { value })}${escapeHtml(label)}</option>`,
      );
      return labelled(field, [tag('select', { name: id }, required), ...choices, '</select>'].join('\n'));
    }
    case 'checkbox':
      return `<p><label>${tag('input', { name: id, type: 'checkbox', value: 'true' }, required)} ${escapeHtml(field.label)}</label></p>`;
    case 'yes_no':
      return group(field, 'radio', yesNo, required);
    case 'radios':
      return group(field, 'radio', options, required);
    case 'checkboxes':
      return group(field, 'checkbox', options, false);
    case 'statement':
      return `<p>${escapeHtml(field.label)}</p>`;
    case 'signature':
      if (!takesWay(field, 'typed')) return undefined;
      return labelled(
        field,
        tag('input', { name: `${id}.text`, type: 'text', autocomplete: 'name' }, required),
      );
    case 'ranking':
    case 'matrix':
    case 'address':
      return undefined;
    default:
      return control satisfies never;
  }
}

const inputTypes: Partial<Record<Field['type'], string>> = {
  email: 'email',
  url: 'url',
  phone: 'tel',
  number: 'number',
  date: 'date',
  time: 'time',
  datetime: 'datetime-local',
};

const yesNo = [
  { label: 'Yes', value: 'true' },
  { label: 'No', value: 'false' },
];

function labelled({ label }: Field, control: string): string {
  return `<p><label>${escapeHtml(label)}<br>\n${indent(control)}</label></p>`;
}

function group(
  { id, label }: Field,
  type: string,
  options: readonly { label: string; value: string }[],
  required: string | false,
): string {
  const choices = options.map(
    (option) =>
      `  <label>${tag('input', { name: id, type, value: option.value }, required)} ${escapeHtml(option.label)}</label>`,
  );
  return ['<fieldset>', `  <legend>${escapeHtml(label)}</legend>`, ...choices, '</fieldset>'].join('\n');
}

function tag(name: string, values: Record<string, string | undefined>, ...flags: (string | false)[]): string {
  const attributes = Object.entries(values).map(([attribute, value]) =>
    value === undefined ? '' : ` ${attribute}="${escapeHtml(value)}"`,
  );
  return `<${name}${attributes.join('')}${flags.filter((flag) => flag !== false).join('')}>`;
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ');
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

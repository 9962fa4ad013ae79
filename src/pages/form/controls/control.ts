import type { Field } from '../../../domain/definition/definition.ts';
import { fieldRules } from '../../../domain/fields/index.ts';
import { attributes, type Html, html } from '../../../text/html.ts';
import { address } from './address.ts';
import { choices, otherInput, otherOf } from './choices.ts';
import { type ControlView, common, identity } from './control-view.ts';
import { files } from './files.ts';
import { matrix } from './matrix.ts';
import { points } from './points.ts';
import { ranking } from './ranking.ts';
import { signature } from './signature.ts';

/** The native control that takes a field's answer, with what was answered before. */
export function controlOf(field: Field, view: ControlView): Html {
  const last = view.texts.at(-1) ?? '';
  const { control } = fieldRules[field.type];
  switch (control) {
    case 'textarea':
      // A parser drops one line break behind the tag, so that the text's own first one would go.
      return html`<textarea${common(field, view)}${attributes({ rows: 5, placeholder: field.placeholder })}>
${last}</textarea>`;
    case 'select':
      return html`<select${common(field, view)}><option value="">${field.placeholder ?? view.language.words.choose}</option>${(
        field.options ?? []
      ).map(
        ({ label, value }) =>
          html`<option${attributes({ value, selected: value === last })}>${label}</option>`,
      )}${
        field.allowOther === true &&
        html`<option${attributes({ value: '', 'data-other': true, selected: otherOf(view) !== '' })}>${view.language.words.other}</option>`
      }</select>${field.allowOther === true && otherInput(field, view)}`;
    case 'radios':
      return choices(field, view, 'radio', field.options ?? []);
    case 'checkboxes':
      return choices(field, view, 'checkbox', field.options ?? []);
    case 'yes_no':
      return choices(field, view, 'radio', [
        { label: view.language.words.yes, value: 'true' },
        { label: view.language.words.no, value: 'false' },
      ]);
    case 'checkbox':
      return html`<input${attributes({
        ...identity(field, view),
        type: 'checkbox',
        'aria-describedby': view.describedBy,
        'aria-invalid': view.problem === undefined ? undefined : 'true',
        value: 'true',
        checked: /^(true|on|1|yes)$/.test(last),
      })}>`;
    case 'files':
      return files(field, view);
    case 'rating':
    case 'scale':
      return points(field, view);
    case 'ranking':
      return ranking(field, view);
    case 'matrix':
      return matrix(field, view);
    case 'address':
      return address(field, view);
    case 'signature':
      return signature(field, view);
    case 'statement':
      return html``;
    case 'line':
      return html`<input${common(field, view)}${attributes({
        ...inputKinds[field.type],
        ...numberKind(field),
        placeholder: field.placeholder,
        autocomplete: autocompleteOf(field),
        value: field.type === 'datetime' ? localTime(last) : last,
        'data-value': field.type === 'datetime' && last !== '' ? last : undefined,
        min: field.type === 'date' || field.type === 'time' ? field.min : undefined,
        max:
          field.type === 'date' || field.type === 'time'
            ? (field.max ?? latest[field.type])
            : latest[field.type],
        step: /^\d\d:\d\d:\d\d/.test(last) ? 1 : undefined,
      })}>`;
    default:
      return control satisfies never;
  }
}

/**
 * A datetime as the browser's control takes it, which has no offset: in UTC, as the hint says. The script
 * converts it into the person's own time and back.
 */
function localTime(text: string): string {
  const time = Date.parse(text);
  if (!/(Z|[+-]\d\d:\d\d)$/i.test(text) || Number.isNaN(time)) return text;
  return new Date(time).toISOString().replace(/(:00)?\.000Z$|Z$/, '');
}

/** Asks phones for a number pad where no number is negative: the pad has no minus. */
function numberKind({ type, min, step }: Field): Record<string, string> {
  if (type !== 'number' || typeof min !== 'number' || min < 0) return {};
  return { inputmode: step !== undefined && Number.isInteger(step) ? 'numeric' : 'decimal' };
}

/** The `autocomplete` of a field, by its type, else by its id if that is a usual name. */
function autocompleteOf(field: Field): string | undefined {
  if (field.type === 'email' || field.type === 'url') return field.type;
  if (field.type === 'phone') return 'tel';
  if (field.type === 'date' && /^(birth_?(day|date)|date_of_birth|bday)$/i.test(field.id)) return 'bday';
  if (field.type !== 'text') return undefined;
  return autocompleteNames.get(field.id.toLowerCase().replace(/[_-]/g, ''));
}

const autocompleteNames = new Map([
  ['name', 'name'],
  ['fullname', 'name'],
  ['yourname', 'name'],
  ['firstname', 'given-name'],
  ['givenname', 'given-name'],
  ['lastname', 'family-name'],
  ['familyname', 'family-name'],
  ['surname', 'family-name'],
  ['company', 'organization'],
  ['organization', 'organization'],
  ['organisation', 'organization'],
  ['jobtitle', 'organization-title'],
  ['street', 'street-address'],
  ['address', 'street-address'],
  ['zip', 'postal-code'],
  ['zipcode', 'postal-code'],
  ['postcode', 'postal-code'],
  ['postalcode', 'postal-code'],
  ['city', 'address-level2'],
  ['country', 'country-name'],
]);

/** Numbers are text inputs, so that a typing error is kept and can be reported. */
const inputKinds: Record<string, Record<string, string>> = {
  text: { type: 'text' },
  email: { type: 'email', inputmode: 'email', spellcheck: 'false', autocapitalize: 'none' },
  url: { type: 'url', inputmode: 'url', spellcheck: 'false', autocapitalize: 'none' },
  phone: { type: 'tel' },
  number: { type: 'text', autocomplete: 'off' },
  date: { type: 'date' },
  time: { type: 'time' },
  datetime: { type: 'datetime-local' },
};

/** Without these, browsers accept years of six digits. */
const latest: Record<string, string> = { date: '9999-12-31', datetime: '9999-12-31T23:59' };

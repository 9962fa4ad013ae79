import type { Field } from '../../../domain/definition/definition.ts';
import { autofillOf } from '../../../domain/fields/autofill.ts';
import type { LineInput } from '../../../domain/fields/field-type.ts';
import { fieldRules } from '../../../domain/fields/index.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import type { Words } from '../../../text/words.ts';
import { type ControlView, common } from './control-view.ts';

/** An input of one line. */
export function line(field: Field, view: ControlView): Html {
  const value = view.texts.at(-1) ?? '';
  const { input = 'text' } = fieldRules[field.type];
  const { placeholder } = field;
  const incomplete = incompleteWords[input];
  return html`${incomplete && html`<p id="${field.id}.incomplete" hidden><span class="sr">${view.language.words.error} </span>${view.language.words[incomplete]}</p>`}<input${common(field, view)}${attributes({ type: input, placeholder, value, ...ofInput[input](field, value), ...view.language.theirs })}>`;
}

/** What the script says where the browser has no value of what was typed. */
const incompleteWords: Partial<Record<LineInput, keyof Words>> = {
  date: 'incompleteDate',
  time: 'incompleteTime',
  'datetime-local': 'incompleteDatetime',
};

/** What each type of input has beside its type and value. Without `max`, browsers accept years of six digits. */
const ofInput: Record<LineInput, (field: Field, value: string) => Parameters<typeof attributes>[0]> = {
  text: ({ id }) => ({ autocomplete: autofillOf(id) }),
  email: () => ({ inputmode: 'email', spellcheck: 'false', autocapitalize: 'none', autocomplete: 'email' }),
  url: () => ({ inputmode: 'url', spellcheck: 'false', autocapitalize: 'none', autocomplete: 'url' }),
  tel: () => ({ autocomplete: 'tel' }),
  // A text, so that a typing error is kept and can be reported.
  number: (field) => ({ type: 'text', ...numberPad(field) }),
  date: ({ id, min, max = '9999-12-31' }) => ({
    min,
    max,
    autocomplete: /^(birth_?(day|date)|date_of_birth|bday)$/i.test(id) ? 'bday' : undefined,
  }),
  time: ({ min, max }, value) => ({ min, max, step: /^\d\d:\d\d:\d\d/.test(value) ? 1 : undefined }),
  'datetime-local': (_field, value) => ({
    value: localTime(value),
    'data-value': value === '' ? undefined : value,
    max: '9999-12-31T23:59',
  }),
};

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
function numberPad({ min, step }: Field): Record<string, string> {
  if (typeof min !== 'number' || min < 0) return {};
  return { inputmode: step !== undefined && Number.isInteger(step) ? 'numeric' : 'decimal' };
}

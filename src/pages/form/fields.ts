import type { Field } from '../../domain/definition/definition.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { memoize } from '../../domain/memoize.ts';
import { attributes, type Html, html } from '../../text/html.ts';
import type { Words } from '../../text/words/en.ts';
import { controlOf } from './controls/control.ts';
import type { FieldView } from './controls/control-view.ts';
import { hintOf, UNSAID_LENGTH } from './hints.ts';

/**
 * One field with its label, help, hint, problem and control.
 *
 * A field without an answer is the same for everybody with the same language, so its HTML is cached.
 */
export function renderField(field: Field, view: FieldView): Html {
  const { language, texts, parts, problem, visible } = view;
  if (texts.length > 0 || parts.size > 0 || problem !== undefined) return fieldOf(field, view);
  const known = looksOf(field);
  const look = `${visible} ${language.tag} ${language.spoken}`;
  const made = known.get(look);
  if (made !== undefined) return made;
  // Language tags come from clients, so their number has no limit.
  if (known.size === MAX_LOOKS) known.clear();
  const fresh = fieldOf(field, view);
  known.set(look, fresh);
  return fresh;
}

/** The HTML of each field without an answer, by visibility and language. */
const looksOf = memoize((_field: Field) => new Map<string, Html>());

const MAX_LOOKS = 16;

/**
 * A field whose condition is not met is on the page too, hidden and disabled, for the script to show. Field ids
 * contain no dot, so no two elements share an id.
 */
function fieldOf(field: Field, view: FieldView): Html {
  const { language, problem, visible } = view;
  const { words } = language;
  const hint = hintOf(field, language);
  const notes = [
    field.description !== undefined && { id: `${field.id}.help`, kind: 'help', text: field.description },
    hint !== '' && { id: `${field.id}.hint`, kind: 'hint', text: hint },
  ].filter((note) => note !== false);
  const described = [...notes.map(({ id }) => id), ...(problem === undefined ? [] : [`${field.id}.error`])];
  const describedBy = described.length === 0 ? undefined : described.join(' ');

  const grouped = isGroup(field);
  const mark =
    field.required &&
    html` <span class="mark" aria-hidden="true">*</span><span class="sr"> (${words.required})</span>`;
  const about = html`${notes.map(
    ({ id, kind, text }) =>
      html`<p class="${kind}" id="${id}"${kind === 'hint' && attributes(countOf(field, words))}>${text}</p>`,
  )}
${problem !== undefined && html`<p class="error" id="${field.id}.error"><span class="sr">${words.error} </span>${problem}</p>`}`;
  const frame = attributes({
    class: [
      'field',
      ...(field.type === 'statement' ? ['statement'] : []),
      ...(problem === undefined ? [] : ['wrong']),
    ].join(' '),
    'data-field': field.id,
    'data-type': field.type,
    'data-when': field.visibleWhen && JSON.stringify(field.visibleWhen),
    hidden: !visible,
  });
  if (field.type === 'statement') {
    return html`<section${frame}${attributes({ id: `${field.id}.0`, tabindex: -1 })}><h2>${field.label}</h2>
${field.description !== undefined && html`<p class="plain">${field.description}</p>`}</section>
`;
  }
  const control = controlOf(field, { ...view, describedBy });
  if (grouped) {
    return html`<fieldset${frame}${attributes({ 'aria-describedby': describedBy })}><legend>${field.label}${mark}</legend>
${about}${control}</fieldset>
`;
  }
  const label = html`<label for="${field.id}.0">${field.label}${mark}</label>`;
  // The box and its label are one target to click, followed by the help.
  if (field.type === 'checkbox') {
    return html`<div${frame}><label class="choice" for="${field.id}.0">${control}<span>${field.label}${mark}</span></label>
${about}</div>
`;
  }
  return html`<div${frame}>${label}
${about}${control}</div>
`;
}

/** What the script needs to say how many characters are left, of a field with a limit of its own. */
function countOf({ type, maxLength = UNSAID_LENGTH }: Field, words: Words) {
  const counts = (type === 'text' || type === 'textarea') && maxLength < UNSAID_LENGTH;
  return counts ? { 'data-count': maxLength, 'data-left': words.charactersLeft } : {};
}

/** Whether a field consists of several controls. */
function isGroup(field: Field): boolean {
  return groups.has(fieldRules[field.type].control);
}

const groups: ReadonlySet<string> = new Set([
  'radios',
  'checkboxes',
  'yes_no',
  'rating',
  'scale',
  'ranking',
  'matrix',
  'address',
  'signature',
]);

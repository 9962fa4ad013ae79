import { inputNames } from '../../domain/answers/answer-texts.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { OTHER } from '../../domain/fields/select.ts';
import { memoize } from '../../domain/memoize.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import type { Words } from '../../text/words.ts';
import { type FieldView, ownDir } from './controls/control-view.ts';
import { controlOf } from './controls/index.ts';
import { countedLength, hintOf, type Problem } from './field-words.ts';
import { withLinks } from './links.ts';

/**
 * One field with its label, help, hint, problem and control.
 *
 * A field without an answer is the same for everybody with the same language, so its HTML is cached.
 */
export function renderField(field: Field, view: FieldView): Html {
  const { language, texts, parts, problem, visible } = view;
  if (texts.length > 0 || parts.size > 0 || problem !== undefined) return fieldOf(field, view);
  const known = looksOf(field);
  const look = `${visible} ${language.tag} ${language.spoken} ${language.ownDirection} ${language.linksAddresses}`;
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
  const { id, type, label, description } = field;
  const { language, problem, visible } = view;
  const { words } = language;
  const { layout, render } = controlOf(field);
  const dir = ownDir(language);
  const frame = attributes({
    class: ['field', layout === 'statement' && layout, problem !== undefined && 'wrong']
      .filter(Boolean)
      .join(' '),
    'data-field': id,
    'data-type': type,
    'data-kind': fieldRules[type].kind,
    'data-when': field.visibleWhen && JSON.stringify(field.visibleWhen),
    hidden: !visible,
  });
  if (layout === 'statement') {
    return html`<section${frame}${attributes({ id: `${id}.0`, tabindex: -1 })}><h2${dir}>${label}</h2>
${description !== undefined && html`<p class="plain"${dir}>${withLinks(description, language)}</p>`}</section>
`;
  }

  const hint = hintOf(field, language);
  const notes = [
    description !== undefined && { id: `${id}.help`, kind: 'help', text: withLinks(description, language) },
    hint !== '' && { id: `${id}.hint`, kind: 'hint', text: hint },
  ].filter((note) => note !== false);
  const described = [...notes.map((note) => note.id), ...(problem === undefined ? [] : [`${id}.error`])];
  const describedBy = described.length === 0 ? undefined : described.join(' ');
  const name = html`${withLinks(label, language)}${
    field.required &&
    html` <span class="mark" aria-hidden="true">*</span><span class="sr"${attributes(language.ours)}> (${words.required})</span>`
  }`;
  const about = html`${notes.map(
    (note) =>
      html`<p class="${note.kind}" id="${note.id}"${note.kind === 'hint' ? attributes(countOf(field, words)) : dir}>${note.text}</p>`,
  )}
${problem !== undefined && html`<p class="error" id="${id}.error"><span class="sr">${words.error} </span>${problem}</p>`}`;
  const control = render(field, { ...view, describedBy });
  switch (layout) {
    case 'group':
      return html`<fieldset${frame}${attributes({ 'aria-describedby': describedBy })}><legend${dir}>${name}</legend>
${about}${control}${canBeCleared(field) && html`<button class="link clear" name="_go" value="clear:${id}">${words.signatureClear}</button>`}</fieldset>
`;
    case 'tick':
      // The box and its label are one target to click, followed by the help.
      return html`<div${frame}><label class="choice" for="${id}.0">${control}<span${dir}>${name}</span></label>
${about}</div>
`;
    case 'labelled':
      return html`<div${frame}><label for="${id}.0"${dir}>${name}</label>
${about}${control}</div>
`;
    default:
      return layout satisfies never;
  }
}

/** Whether the page has a button that takes back the answer; it shows while there is one. */
export function canBeCleared(field: Field): boolean {
  return controlOf(field).chooses === 'one' && field.required !== true;
}

/** What the script needs to say how many characters are left, of a field with a limit of its own. */
function countOf(field: Field, words: Words) {
  const most = countedLength(field);
  return most === undefined
    ? {}
    : {
        'data-count': most,
        'data-left': words.charactersLeft,
        'data-over': words.charactersOver,
        'data-over-one': words.charactersOverOne,
      };
}

/** The id of the control that a problem is about. */
export function anchorOf(field: Field, { part }: Pick<Problem, 'part'>): string {
  if (field.allowOther === true && part === OTHER) return `${field.id}.${OTHER}`;
  const [, ...parts] = inputNames(field);
  const place = part === undefined ? 0 : Math.max(0, parts.indexOf(`${field.id}.${part}`));
  return `${field.id}.${place * (controlOf(field).inputsAPart?.(field) ?? 1)}`;
}

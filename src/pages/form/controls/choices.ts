import type { Field } from '../../../domain/definition/definition.ts';
import { MAX_OTHER, OTHER, OTHER_CHOSEN } from '../../../domain/fields/select.ts';
import { attributes, Html, html } from '../../../domain/text/html.ts';
import { fill } from '../../../text/words.ts';
import { type ControlView, described, identity, ownDir } from './control-view.ts';

/** Radio buttons or boxes to tick, one for each option, and an input for another answer if the field takes one. */
export function choices(
  field: Field,
  view: ControlView,
  type: 'radio' | 'checkbox',
  options: Choice[],
): Html {
  const all = [
    ...options.map((option) => ({ ...option, checked: view.texts.includes(option.value), other: false })),
    ...(field.allowOther === true && type === 'radio'
      ? [{ label: view.language.words.other, value: OTHER_CHOSEN, checked: isOther(view), other: true }]
      : []),
  ];
  return html`<div class="choices ${layoutOf(all)}">${all.map(
    (each, index) =>
      html`<label class="choice"><input${attributes({
        type,
        id: `${field.id}.${index}`,
        name: field.id,
        value: each.value,
        checked: each.checked,
        'data-other': each.other,
        disabled: !view.visible,
      })}><span${each.other || each.isOurs ? false : ownDir(view.language)}>${each.label}</span></label>
`,
  )}</div>${field.allowOther === true && otherInput(field, view)}`;
}

/** The input of an answer that is none of the options. It is hidden while they have one that stands for it unchosen. */
export function otherInput(field: Field, view: ControlView): Html {
  const { words } = view.language;
  return html`<div class="other"><label for="${field.id}.other">${words.other}</label><input${attributes({
    class: 'control',
    type: 'text',
    id: `${field.id}.other`,
    name: `${field.id}.other`,
    value: otherOf(view),
    ...view.language.theirs,
    'aria-label': fill(words.otherOf, { label: field.label }),
    ...(view.problemParts?.includes(OTHER) && described(view)),
    maxlength: MAX_OTHER,
    disabled: !view.visible,
  })}></div>`;
}

/** Whether something beside the options was chosen, written or not. */
export function isOther(view: ControlView): boolean {
  return otherOf(view) !== '' || view.texts.includes(OTHER_CHOSEN);
}

/** What was answered beside the options. */
function otherOf({ parts }: ControlView): string {
  return parts.get('other')?.at(-1) ?? '';
}

/** Short options stand side by side, where that leaves none alone. */
function layoutOf(options: readonly { label: string }[]): string {
  const longest = Math.max(...options.map(({ label }) => label.length));
  if (options.length === 3 && longest <= SHORTER_LABEL) return 'three';
  return options.length % 2 === 0 && (options.length === 2 || longest <= SHORT_LABEL) ? 'row' : '';
}

/** Choices up to this length are shown two in a row where the page is wide enough. */
const SHORT_LABEL = 16;

/** And up to this length three in a row. */
const SHORTER_LABEL = 9;

/** A table with a row of radio buttons or boxes for each row; on a phone each row is a list of its options. */
export function matrix(field: Field, view: ControlView): Html {
  const { id, rows = [], options = [], multiple } = field;
  const dir = ownDir(view.language);
  const narrow = options.length > MOST_COLUMNS || options.some(({ label }) => label.length > LONGEST_HEAD);
  return html`<table class="${narrow ? 'matrix narrow' : 'matrix'}"><thead><tr><td></td>${options.map(
    ({ label }, column) =>
      html`<th scope="col" class="column-head" id="${id}.column.${column}"${dir}>${label}</th>`,
  )}</tr></thead><tbody>${rows.map(({ label, value: row }, number) => {
    const chosen = view.parts.get(row) ?? [];
    return html`<tr class="matrix-row"><th scope="row" class="row-head" id="${id}.row.${number}"${dir}>${label}</th>${options.map(
      (option, column) =>
        html`<td><label class="cell"><input${attributes({
          type: multiple === true ? 'checkbox' : 'radio',
          id: `${id}.${number * options.length + column}`,
          name: `${id}.${row}`,
          value: option.value,
          'aria-labelledby': `${id}.row.${number} ${id}.column.${column}`,
          checked: chosen.includes(option.value),
          disabled: !view.visible,
        })}><span class="cell-name" aria-hidden="true"${dir}>${option.label}</span></label></td>`,
    )}</tr>
`;
  })}</tbody></table>`;
}

/** Beyond these a table is wider than the page. */
const MOST_COLUMNS = 6;
const LONGEST_HEAD = 16;

/** Radio buttons in one row, from the least point to the greatest, as stars or numbers, with words below both ends. */
export function points(field: Field, view: ControlView): Html {
  const { words } = view.language;
  const { minLabel, maxLabel } = field;
  const dir = ownDir(view.language);
  const stars = field.icon === 'star';
  const [min, max] = [Number(field.min ?? 1), Number(field.max ?? 5)];
  const each = Array.from({ length: max - min + 1 }, (_, index) => min + index);
  const ends = new Map([
    [min, minLabel],
    [max, maxLabel],
  ]);
  return html`<div class="${stars ? 'points stars' : 'points'}">${each.map((point, index) => {
    const end = ends.get(point);
    const name = stars ? fill(words.points, { n: point, max }) : String(point);
    return html`<label class="point"><input${attributes({
      ...identity(field, view),
      id: `${field.id}.${index}`,
      type: 'radio',
      value: point,
      checked: view.texts.at(-1) === String(point),
    })}>${
      stars ? html`${star}<span class="sr">${name}</span>` : html`<span>${name}</span>`
    }${end !== undefined && html`<span class="sr"> – ${end}</span>`}</label>
`;
  })}</div>
${
  (minLabel !== undefined || maxLabel !== undefined) &&
  html`<p class="ends" aria-hidden="true"><span${dir}>${minLabel}</span><span${dir}>${maxLabel}</span></p>`
}`;
}

const star = new Html(
  '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 2.6l2.9 6.1 6.6.9-4.8 4.6 1.2 6.6-5.9-3.2-5.9 3.2 1.2-6.6-4.8-4.6 6.6-.9z"/></svg>',
);

type Choice = { label: string; value: string; isOurs?: boolean };

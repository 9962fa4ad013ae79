import type { Field } from '../../../domain/definition/definition.ts';
import { MAX_OTHER } from '../../../domain/fields/select.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { fill } from '../../../text/words.ts';
import { type ControlView, ownDir } from './control-view.ts';

/** Radio buttons or boxes to tick, one for each option, and an input for another answer if the field takes one. */
export function choices(
  field: Field,
  view: ControlView,
  type: 'radio' | 'checkbox',
  options: Choice[],
): Html {
  const other = otherOf(view);
  const all = [
    ...options.map((option) => ({ ...option, checked: view.texts.includes(option.value), other: false })),
    ...(field.allowOther === true && type === 'radio'
      ? [{ label: view.language.words.other, value: '', checked: other !== '', other: true }]
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
      })}><span${each.other ? false : ownDir(view.language)}>${each.label}</span></label>
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
    'aria-label': fill(words.otherOf, { label: field.label }),
    maxlength: MAX_OTHER,
    disabled: !view.visible,
  })}></div>`;
}

/** What was answered beside the options. */
export function otherOf({ parts }: ControlView): string {
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

type Choice = { label: string; value: string };

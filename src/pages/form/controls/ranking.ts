import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { fill } from '../../../text/words.ts';
import { type ControlView, ownDir } from './control-view.ts';

/**
 * The options in their order, with buttons that move each up and down. Without script a button posts the page, which
 * comes back with the new order.
 *
 * The order that a person leaves as it is counts as their answer where there must be one; elsewhere its inputs have no
 * name before the first move.
 */
export function ranking(field: Field, view: ControlView): Html {
  const { id, options = [] } = field;
  const { words } = view.language;
  const order = orderOf(field, view.texts);
  const named = field.required || view.texts.some((text) => order.includes(text));
  return html`<ol class="ranking" data-ranking="${id}" data-moved="${words.moved}">${order.map(
    (value, index) => {
      const label = options.find((option) => option.value === value)?.label ?? value;
      const button = (by: -1 | 1, text: string, sign: string) => {
        const possible = index + by >= 0 && index + by < order.length;
        const { moved } = view;
        return html`<button${attributes({
          class: 'quiet move',
          id: by === 1 && index === 0 ? `${id}.0` : undefined,
          name: '_go',
          value: `move:${id}:${index}:${by}`,
          'aria-label': fill(text, { option: label }),
          'aria-disabled': possible ? undefined : 'true',
          autofocus: moved !== undefined && moved.to === index && moved.by === by,
        })}>${sign}</button>`;
      };
      return html`<li><input${attributes({
        type: 'hidden',
        name: named ? id : undefined,
        'data-name': id,
        value,
        disabled: !view.visible,
      })}><span class="grip" aria-hidden="true"></span><span class="option"${ownDir(view.language)}>${label}</span>${button(-1, words.moveUp, '↑')}${button(1, words.moveDown, '↓')}</li>
`;
    },
  )}</ol>`;
}

/** The order after a button was pressed that moves the option at `index` up (-1) or down (1). */
export function movedOrder(field: Field, texts: readonly string[], { index, by }: Move): string[] {
  const order = orderOf(field, texts);
  const [one, other] = [order[index], order[index + by]];
  if (one !== undefined && other !== undefined) {
    order[index] = other;
    order[index + by] = one;
  }
  return order;
}

/** The values of all options: those that were given in their order, then the others. */
function orderOf({ options = [] }: Field, texts: readonly string[]): string[] {
  const values = options.map(({ value }) => value);
  return [...new Set([...texts.filter((text) => values.includes(text)), ...values])];
}

/** A button of a ranking that was pressed. */
export type Move = { fieldId: string; index: number; by: -1 | 1 };

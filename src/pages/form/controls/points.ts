import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, Html, html } from '../../../domain/text/html.ts';
import { fill } from '../../../text/words.ts';
import { type ControlView, identity, ownDir } from './control-view.ts';

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

import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html, html } from '../../../text/html.ts';
import type { ControlView } from './control-view.ts';

/** Radio buttons or boxes to tick, one for each option. */
export function choices(
  field: Field,
  view: ControlView,
  type: 'radio' | 'checkbox',
  options: Choice[],
): Html {
  const short = options.length <= 2 || options.every(({ label }) => label.length <= SHORT_LABEL);
  return html`<div class="${short ? 'choices row' : 'choices'}">${options.map(
    ({ label, value }, index) =>
      html`<label class="choice"><input${attributes({
        type,
        id: `${field.id}.${index}`,
        name: field.id,
        value,
        checked: view.texts.includes(value),
        disabled: !view.visible,
      })}><span>${label}</span></label>
`,
  )}</div>`;
}

/** Choices up to this length are shown two in a row where the page is wide enough. */
const SHORT_LABEL = 16;

type Choice = { label: string; value: string };

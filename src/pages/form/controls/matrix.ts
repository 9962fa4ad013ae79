import type { Field } from '../../../domain/definition/definition.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { type ControlView, ownDir } from './control-view.ts';

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

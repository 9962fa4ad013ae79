import type { Field } from '../../../domain/definition/definition.ts';
import type { Control } from '../../../domain/fields/field-type.ts';
import { fieldRules } from '../../../domain/fields/index.ts';
import { OTHER_CHOSEN } from '../../../domain/fields/select.ts';
import { attributes, type Html, html } from '../../../domain/text/html.ts';
import { address } from './address.ts';
import { choices, isOther, matrix, otherInput, points } from './choices.ts';
import { type ControlView, common, described, identity, ownDir } from './control-view.ts';
import { files } from './files.ts';
import { line } from './line.ts';
import { ranking } from './ranking.ts';
import { signature } from './signature.ts';

/** What takes a field's answer on the page. */
export function controlOf({ type }: Pick<Field, 'type'>): ControlRules {
  return controls[fieldRules[type].control];
}

const controls: Record<Control, ControlRules> = {
  line: { layout: 'labelled', render: line },
  textarea: { layout: 'labelled', render: textarea },
  select: { layout: 'labelled', render: select },
  radios: {
    layout: 'group',
    chooses: 'one',
    render: (field, view) => choices(field, view, 'radio', field.options ?? []),
  },
  checkboxes: {
    layout: 'group',
    render: (field, view) => choices(field, view, 'checkbox', field.options ?? []),
  },
  yes_no: {
    layout: 'group',
    chooses: 'one',
    render: (field, view) =>
      choices(field, view, 'radio', [
        { label: view.language.words.yes, value: 'true', isOurs: true },
        { label: view.language.words.no, value: 'false', isOurs: true },
      ]),
  },
  checkbox: { layout: 'tick', render: checkbox },
  files: { layout: 'labelled', render: files },
  rating: { layout: 'group', chooses: 'one', render: points },
  scale: { layout: 'group', chooses: 'one', render: points },
  ranking: { layout: 'group', render: ranking, movesOptions: true },
  matrix: { layout: 'group', render: matrix, inputsAPart: ({ options = [] }) => options.length },
  address: { layout: 'group', render: address },
  signature: { layout: 'group', render: signature },
  statement: { layout: 'statement', render: () => html`` },
};

function textarea(field: Field, view: ControlView): Html {
  // A parser drops one line break behind the tag, so that the text's own first one would go.
  return html`<textarea${common(field, view)}${attributes({ rows: 5, placeholder: field.placeholder, ...view.language.theirs })}>
${view.texts.at(-1)}</textarea>`;
}

function select(field: Field, view: ControlView): Html {
  const { options = [], allowOther = false, placeholder } = field;
  const { words } = view.language;
  const last = view.texts.at(-1) ?? '';
  return html`<select${common(field, view)}><option value=""${placeholder !== undefined && ownDir(view.language)}>${placeholder ?? words.choose}</option>${options.map(
    ({ label, value }) =>
      html`<option${attributes({ value, selected: value === last })}${ownDir(view.language)}>${label}</option>`,
  )}${
    allowOther &&
    html`<option${attributes({ value: OTHER_CHOSEN, 'data-other': true, selected: isOther(view) })}>${words.other}</option>`
  }</select>${allowOther && otherInput(field, view)}`;
}

function checkbox(field: Field, view: ControlView): Html {
  return html`<input${attributes({
    ...identity(field, view),
    type: 'checkbox',
    ...described(view),
    value: 'true',
    checked: /^(true|on|1|yes)$/.test(view.texts.at(-1) ?? ''),
  })}>`;
}

type ControlRules = {
  /**
   * How it stands with the field's label: below it; as several inputs in a group that has the label; as a box to tick
   * that is one target with the label; or as a text on the page, without an input.
   */
  layout: 'labelled' | 'group' | 'tick' | 'statement';
  /** The native control, with what was answered before. */
  render: (field: Field, view: ControlView) => Html;
  /** Whether one of several radio buttons is its answer, which a browser can't take back. */
  chooses?: 'one';
  /** Whether it has buttons that post the page and move an option. */
  movesOptions?: true;
  /** How many inputs stand for one part of an answer of several; one if absent. */
  inputsAPart?: (field: Field) => number;
};

import { evaluate } from '../../domain/conditions/condition.ts';
import { withScheme } from '../../domain/fields/web-address.ts';
import { instantOf } from './inputs.ts';

/**
 * Shows and hides the fields of the step by their conditions, with the same code as the server.
 *
 * A hidden field is disabled too, so that the browser does not send it.
 */
export function followConditions(root: Element): void {
  const answers: Record<string, unknown> = {};
  for (const [id, { kind, inputs }] of carriedInputs(root)) answers[id] = typed(kind, id, inputs);
  for (const field of root.querySelectorAll<HTMLElement>('[data-field]')) {
    const condition = field.getAttribute('data-when');
    const visible = condition === null || evaluate(JSON.parse(condition), answers);
    if (field.hidden === visible) setVisible(field, visible);
    const id = field.getAttribute('data-field') ?? '';
    if (visible) answers[id] = typed(field.getAttribute('data-kind') ?? '', id, inputsIn(field, id));
  }
}

/** The inputs of other steps by the field they belong to. */
function carriedInputs(root: Element): Map<string, { kind: string; inputs: Input[] }> {
  const fields = new Map<string, { kind: string; inputs: Input[] }>();
  for (const { name, value, dataset } of root.querySelectorAll<HTMLInputElement>('input[data-carried]')) {
    const [id = ''] = name.split('.', 1);
    const { kind, inputs } = fields.get(id) ?? { kind: dataset.carried ?? '', inputs: [] };
    fields.set(id, { kind, inputs: [...inputs, { name, value }] });
  }
  return fields;
}

/** The ids of the fields of this step that can be seen. */
export function shownFields(root: Element): string[] {
  return [...root.querySelectorAll('[data-field]:not([hidden])')].map(
    (field) => field.getAttribute('data-field') ?? '',
  );
}

function setVisible(field: HTMLElement, visible: boolean): void {
  field.hidden = !visible;
  for (const control of field.querySelectorAll('input, select, textarea')) {
    control.toggleAttribute('disabled', !visible);
  }
}

function inputsIn(field: Element, id: string): Input[] {
  const controls = field.querySelectorAll<HTMLInputElement>('input, select, textarea');
  return [...controls].flatMap(({ name, type, checked, value }) => {
    if (name.split('.', 1)[0] !== id || ((type === 'radio' || type === 'checkbox') && !checked)) return [];
    return [{ name, value: type === 'datetime-local' ? instantOf(value) : value }];
  });
}

/**
 * The texts of inputs as the answer they stand for, as the server reads them; of several parts only whether there is
 * one.
 */
function typed(kind: string, id: string, inputs: Input[]): unknown {
  const values = inputs.filter(({ name }) => name === id).map(({ value }) => value);
  const others = inputs.filter(({ name }) => name !== id).map(({ value }) => value.trim());
  const last = values.at(-1) ?? '';
  switch (kind) {
    case 'number':
      return last.trim() === '' || Number.isNaN(Number(last)) ? last : Number(last);
    case 'boolean':
      return last === 'true' ? true : last === 'false' ? false : undefined;
    case 'url':
      return withScheme(last);
    case 'list':
      return [...values, ...others].filter((value) => value !== '');
    case 'parts':
      return [...values, ...others].some((value) => value !== '') ? {} : undefined;
    default:
      return last.replace(/\r\n?/g, '\n') || (others.at(-1) ?? '');
  }
}

type Input = { name: string; value: string };

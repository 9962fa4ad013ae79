import { evaluate } from '../../domain/conditions/condition.ts';
import { instantOf } from './zones.ts';

/**
 * Shows and hides the fields of the step by their conditions, with the same code as the server.
 *
 * A hidden field is disabled too, so that the browser does not send it.
 */
export function followConditions(root: Element): void {
  const answers: Record<string, unknown> = {};
  for (const input of root.querySelectorAll<HTMLInputElement>('input[data-carried]')) {
    const earlier = answers[input.name];
    const value = typed(input.getAttribute('data-carried') ?? '', [...listOf(earlier), input.value]);
    answers[input.name] = value;
  }
  for (const field of root.querySelectorAll<HTMLElement>('[data-field]')) {
    const condition = field.getAttribute('data-when');
    const visible = condition === null || evaluate(JSON.parse(condition), answers);
    if (field.hidden === visible) setVisible(field, visible);
    const id = field.getAttribute('data-field') ?? '';
    if (visible) answers[id] = typed(field.getAttribute('data-type') ?? '', valuesOf(field, id));
  }
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

function valuesOf(field: Element, id: string): string[] {
  const controls = field.querySelectorAll<HTMLInputElement>('input, select, textarea');
  return [...controls].flatMap(({ name, type, checked, value }) => {
    if (name !== id || ((type === 'radio' || type === 'checkbox') && !checked)) return [];
    return [type === 'datetime-local' ? instantOf(value) : value];
  });
}

/** The texts of inputs as the answer they stand for, as the server reads them. */
function typed(type: string, values: string[]): unknown {
  const last = values.at(-1) ?? '';
  switch (type) {
    case 'number':
    case 'rating':
    case 'scale':
      return last.trim() === '' || Number.isNaN(Number(last)) ? last : Number(last);
    case 'boolean':
    case 'checkbox':
      return last === 'true' ? true : last === 'false' ? false : undefined;
    case 'multi_select':
    case 'file':
      return values.filter((value) => value !== '');
    default:
      return last.replace(/\r\n?/g, '\n');
  }
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value : [];
}

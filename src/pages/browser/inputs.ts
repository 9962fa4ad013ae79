import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { evaluate } from '../../domain/conditions/condition.ts';
import { readNumber } from '../../domain/fields/number-text.ts';
import { withScheme } from '../../domain/fields/web-address.ts';
import { foldPhone, isInvisible } from '../../domain/text/typed-signs.ts';
import { inDigits } from '../../text/quantities.ts';

/**
 * Follows what a person types: a field that is corrected is no longer shown as wrong, and one that takes only so many
 * characters says how many are left.
 */
export function followTyping(target: EventTarget | null): void {
  const field = target instanceof Element ? target.closest('[data-field]') : null;
  if (field === null) return;
  forgetProblem(field);
  const hint = field.querySelector('[data-count]');
  const control = field.querySelector<HTMLInputElement>('input, textarea');
  if (hint && control) showLeft(hint, [...control.value].length);
}

/** Whether an answer is good now is for the server to say, so that nothing takes the place of the problem. */
export function forgetProblem(field: Element): void {
  if (!field.classList.contains('wrong')) return;
  field.classList.remove('wrong');
  for (const control of field.querySelectorAll('[aria-invalid]')) control.removeAttribute('aria-invalid');
  for (const error of field.querySelectorAll<HTMLElement>('p.error')) error.hidden = true;
}

/**
 * The inputs of dates and times of which the browser has no value, though something was typed: `05/01`, 30 February.
 * Each says so, but for one that is still typed in.
 */
export function showIncomplete(root: Element, typing: Element | null = null): HTMLInputElement[] {
  const inputs = [...root.querySelectorAll<HTMLInputElement>('input:enabled')];
  const incomplete = inputs.filter(({ validity }) => validity.badInput);
  for (const input of incomplete.filter((each) => each !== typing)) {
    const id = `${input.name}.incomplete`;
    const field = input.closest('.field') ?? input;
    forgetProblem(field);
    field.classList.add('wrong');
    Object.assign(document.getElementById(id) ?? {}, { className: 'error', hidden: false });
    input.setAttribute('aria-invalid', 'true');
    const described = new Set(input.getAttribute('aria-describedby')?.split(' ')).add(id);
    input.setAttribute('aria-describedby', [...described].join(' '));
  }
  return incomplete;
}

/** Takes back what was chosen in the field of a button, which then has nothing to clear. */
export function clearChoice(button: Element): void {
  const inputs = [...(button.closest('.field')?.querySelectorAll('input') ?? [])];
  for (const input of inputs) {
    if (input.type === 'text') input.value = '';
    input.checked = false;
  }
  inputs[0]?.focus();
}

function showLeft(hint: Element, length: number): void {
  const max = Number(hint.getAttribute('data-count'));
  const left = max - length;
  // A screen reader would read out each key otherwise.
  hint.setAttribute('aria-live', left <= ANNOUNCED ? 'polite' : 'off');
  hint.classList.toggle('over', left < 0);
  const { lang } = document.documentElement;
  const isOne = new Intl.PluralRules(lang).select(-left) === 'one';
  const text = left >= 0 ? 'data-left' : isOne ? 'data-over-one' : 'data-over';
  hint.textContent = (hint.getAttribute(text) ?? '')
    .replace('{n}', inDigits(Math.abs(left), lang))
    .replace('{max}', inDigits(max, lang));
}

const ANNOUNCED = 20;

/** Shows the times of inputs in the person's own time zone, and names it. */
export function showLocalZones(root: Element, words: (name: string) => string): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('input[type=datetime-local]')) {
    const instant = input.getAttribute('data-value');
    const time = new Date(instant ?? '');
    if (!Number.isNaN(time.getTime()) && /(Z|[+-]\d\d:\d\d)$/i.test(instant ?? '')) {
      // Seconds are shown where there are some: a person who changes the day keeps them.
      input.value = localText(time).slice(0, time.getTime() % 60_000 === 0 ? 16 : 19);
      input.dataset.shown = input.value;
    }
    const hint = document.getElementById(`${input.name}.hint`);
    if (hint === null) continue;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    hint.textContent = hint.textContent.replace(words('zone-utc'), words('zone').replace('{zone}', zone));
  }
}

/**
 * The time of an input with the offset that the person's time zone has then: as it came if nobody has touched it, and
 * moved as the browser moves it if the clocks skip it.
 */
export function withOwnOffset({
  value: local,
  dataset,
}: Pick<HTMLInputElement, 'value' | 'dataset'>): string {
  const time = new Date(local);
  if (local === '' || Number.isNaN(time.getTime())) return local;
  if (local === dataset.shown) return dataset.value ?? local;
  const minutes = -time.getTimezoneOffset();
  const two = (part: number) => String(Math.floor(Math.abs(part))).padStart(2, '0');
  return `${localText(time).slice(0, local.length)}${minutes < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`;
}

function localText(time: Date): string {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString();
}

/**
 * Shows and hides the fields of the step by their conditions, with the same code as the server.
 *
 * A hidden field is disabled too, so that the browser does not send it.
 */
export function followConditions(root: Element): void {
  const answers: Record<string, unknown> = {};
  const carried = new Map<string, HTMLInputElement[]>();
  for (const input of root.querySelectorAll<HTMLInputElement>('input[data-carried]')) {
    const [id = ''] = input.name.split('.', 1);
    carried.set(id, [...(carried.get(id) ?? []), input]);
  }
  for (const [id, inputs] of carried) answers[id] = typed(inputs[0]?.dataset.carried ?? '', id, inputs);
  for (const field of root.querySelectorAll<HTMLElement>('[data-field]')) {
    const condition = field.getAttribute('data-when');
    const visible = condition === null || evaluate(JSON.parse(condition), answers);
    if (field.hidden === visible) setVisible(field, visible);
    const id = field.getAttribute('data-field') ?? '';
    if (visible) answers[id] = typed(field.getAttribute('data-kind') ?? '', id, inputsIn(field, id));
  }
}

/** The ids of the fields of this step that can be seen. */
export function shownFieldIds(root: Element): string[] {
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
  return [...controls].flatMap(({ name, type, checked, value, dataset }) => {
    if (name.split('.', 1)[0] !== id || ((type === 'radio' || type === 'checkbox') && !checked)) return [];
    return [{ name, value: type === 'datetime-local' ? withOwnOffset({ value, dataset }) : value }];
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
      return readNumber(last, document.querySelector<HTMLInputElement>('input[name=_lang]')?.value);
    case 'boolean':
      return last === 'true' ? true : last === 'false' ? false : undefined;
    case 'url':
      return asciiAddress(withScheme(last));
    case 'email':
      return asciiAddress(last);
    case 'phone':
      return foldPhone(last);
    case 'list':
      return [...values, ...others].filter((value) => value !== '');
    case 'parts':
      return [...values, ...others].some((value) => value !== '') ? {} : undefined;
    default:
      return (isInvisible(last) ? '' : last.replace(/\r\n?/g, '\n')) || (others.at(-1) ?? '');
  }
}

type Input = { name: string; value: string };

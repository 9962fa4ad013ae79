import { momentInWords } from '../../text/quantities.ts';

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

function showLeft(hint: Element, length: number): void {
  const max = Number(hint.getAttribute('data-count'));
  const left = max - length;
  // A screen reader would read out each key otherwise.
  hint.setAttribute('aria-live', left <= ANNOUNCED ? 'polite' : 'off');
  hint.classList.toggle('over', left < 0);
  hint.textContent = (hint.getAttribute('data-left') ?? '')
    .replace('{n}', String(left))
    .replace('{max}', String(max));
}

const ANNOUNCED = 20;

/** Shows the times that the page names in the person's own time zone. */
export function showLocalTimes(root: Element): void {
  for (const time of root.querySelectorAll('time')) {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    time.textContent = momentInWords(new Date(time.dateTime), document.documentElement.lang, timeZone);
  }
}

/** Shows the times of inputs in the person's own time zone, and names it. */
export function showLocalZones(root: Element, words: (name: string) => string): void {
  for (const input of root.querySelectorAll<HTMLInputElement>('input[type=datetime-local]')) {
    const instant = input.getAttribute('data-value');
    const time = new Date(instant ?? '');
    if (!Number.isNaN(time.getTime()) && /(Z|[+-]\d\d:\d\d)$/i.test(instant ?? '')) {
      input.value = new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
    }
    const hint = document.getElementById(`${input.name}.hint`);
    if (hint === null) continue;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    hint.textContent = hint.textContent.replace(words('zone-utc'), words('zone').replace('{zone}', zone));
  }
}

/** A local time with the offset that the person's time zone has at that time. */
export function instantOf(local: string): string {
  const time = new Date(local);
  if (local === '' || Number.isNaN(time.getTime())) return local;
  const minutes = -time.getTimezoneOffset();
  const two = (part: number) => String(Math.floor(Math.abs(part))).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`;
}

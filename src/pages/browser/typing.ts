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

/** Keeps in a form's own page which session it has begun, so that its further posts go on with it. */
export function keepSession(id: unknown): void {
  const input = sessionInput();
  if (input !== null && typeof id === 'string' && id !== '') input.value = id;
}

/** What tells the page of a form apart where there are no inputs to send; empty on the page of a session. */
export function visitHeaders(): Record<string, string> {
  const input = sessionInput();
  if (input === null) return {};
  const issued = document.querySelector<HTMLInputElement>('main input[name=_issued]')?.value ?? '';
  return { 'x-form-session': input.value, 'x-form-issued': issued };
}

/** Whether the page is a form's own and has begun no session yet. */
export function hasNoSessionYet(): boolean {
  return sessionInput()?.value === '';
}

function sessionInput(): HTMLInputElement | null {
  return document.querySelector<HTMLInputElement>('main input[name=_session]');
}

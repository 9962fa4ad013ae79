/**
 * Keeps in the browser's tab what could not be sent, so that it outlasts a reload. It is the inputs of the page with
 * the token that tells it apart: sent again, it makes no second submission.
 */
export function keepDraft(form: HTMLFormElement): void {
  const inputs = [...new FormData(form)].flatMap(
    ([name, value]): Inputs => (typeof value === 'string' ? [[name, value]] : []),
  );
  const files = [...form.querySelectorAll<HTMLElement>('[data-unsent]')].map((row): Inputs[number] => [
    row.closest('[data-field]')?.getAttribute('data-field') ?? '',
    row.dataset.unsent ?? '',
  ]);
  const draft: Draft = { inputs, files, at: readDraft()?.at ?? new Date().toISOString() };
  withStorage((storage) => storage.setItem(location.pathname, JSON.stringify(draft)));
}

/** What this tab has kept of the page; undefined: nothing. */
export function readDraft(): Draft | undefined {
  const text = withStorage((storage) => storage.getItem(location.pathname));
  return typeof text === 'string' ? JSON.parse(text) : undefined;
}

/** It was sent, or is not wanted. */
export function forgetDraft(): void {
  withStorage((storage) => storage.removeItem(location.pathname));
}

/** A browser that refuses to store, or has no room, leaves the page as it is without a draft. */
function withStorage<Result>(use: (storage: Storage) => Result): Result | undefined {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}

type Inputs = [name: string, value: string][];

/** `files` could not be uploaded, and a page can't keep them: the ids of their fields, and their names. */
type Draft = { inputs: Inputs; files: Inputs /** When it was first kept. */; at: string };

/** Keeps in a form's own page which session it has begun, so that its further posts go on with it. */
export function keepSession(id: unknown): void {
  const input = sessionInput();
  if (input !== null && typeof id === 'string' && id !== '') input.value = id;
}

/** What tells the page of a form apart where there are no inputs to send; empty on the page of a session. */
export function sessionHeaders(): Record<string, string> {
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

/**
 * Saves the answers on the server while the person types, if the form allows it: one request at a time, a moment
 * after the last change. What could not be sent, or not be taken just now, is sent again after a while.
 */
export function createSaver(formOf: () => HTMLFormElement | undefined) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  let pending = false;
  let stopped = false;

  /** Something was typed or chosen. */
  function changed(): void {
    if (formOf()?.getAttribute('data-saves') === null) return;
    saveIn(QUIET_MS);
  }

  function saveIn(ms: number): void {
    pending = true;
    clearTimeout(timer);
    timer = setTimeout(begin, ms);
  }

  function begin(): void {
    const form = formOf();
    if (form === undefined || running !== undefined || !pending) return;
    running = save(form).then((arrived) => {
      running = undefined;
      if (pending) saveIn(QUIET_MS);
      else if (!arrived && !stopped) saveIn(RETRY_MS);
    });
  }

  /** Returns whether the answers have arrived, though they may have been refused. */
  async function save(form: HTMLFormElement): Promise<boolean> {
    pending = false;
    stopped = false;
    say('saving');
    try {
      const response = await fetch(location.href, request(form));
      const { saved, session_id } = response.ok ? await response.json() : { saved: false };
      keepSession(session_id);
      if (!pending) say(saved === true ? 'saved' : 'not-saved');
      return !forNow.has(response.status);
    } catch {
      say('not-saved');
      return false;
    }
  }

  /** `text` is what the service says of a failure. */
  function say(what: Said, text = formOf()?.getAttribute(`data-${what}`) ?? ''): void {
    const status = document.getElementById('status');
    if (status === null) return;
    status.textContent = text;
    status.classList.toggle('good', what === 'saved');
    status.classList.toggle('bad', unsent.has(what));
  }

  return {
    changed,
    say,
    /** Sends what is pending, at once. */
    flush() {
      const form = formOf();
      if (form !== undefined && pending && running === undefined)
        fetch(location.href, request(form)).catch(() => {});
    },
    /** Settles when what is being saved has been; undefined if nothing is. */
    underWay: () => running,
    /** Drops what is pending: the step that is being sent contains it. */
    stop() {
      clearTimeout(timer);
      pending = false;
      stopped = true;
    },
  };
}

function request(form: HTMLFormElement): RequestInit {
  const body = new URLSearchParams(postedInputs(form));
  body.set('_go', 'save');
  return {
    method: 'POST',
    body,
    headers: { accept: 'application/json' },
    // The page may be closing. Browsers send no larger body then, and refuse it at any time.
    keepalive: body.toString().length <= MAX_KEPT_ALIVE,
  };
}

const MAX_KEPT_ALIVE = 60 * 1024;

/** What the form would post, without files, which are uploaded on their own. */
export function postedInputs(form: HTMLFormElement): Inputs {
  return [...new FormData(form)].flatMap(
    ([name, value]): Inputs => (typeof value === 'string' ? [[name, value]] : []),
  );
}

/** Long enough to finish a word, short enough to lose little. */
const QUIET_MS = 700;

const RETRY_MS = 5_000;

/** Refused for now: too many calls, or the service can't take them. */
const forNow = new Set([429, 503]);

/** What keeps a page from being sent, and is not to be missed. */
const unsent: ReadonlySet<Said> = new Set(['offline', 'not-sent', 'failed']);

type Said = 'saving' | 'saved' | 'not-saved' | 'offline' | 'not-sent' | 'failed';

/**
 * Keeps in the browser's tab what could not be sent, so that it outlasts a reload. It is the inputs of the page with
 * the token that tells it apart: sent again, it makes no second submission.
 */
export function keepDraft(form: HTMLFormElement): void {
  const files = [...form.querySelectorAll<HTMLElement>('[data-unsent]')].map((row): Inputs[number] => [
    row.closest('[data-field]')?.getAttribute('data-field') ?? '',
    row.dataset.unsent ?? '',
  ]);
  const draft: Draft = { inputs: postedInputs(form), files, at: readDraft()?.at ?? new Date().toISOString() };
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

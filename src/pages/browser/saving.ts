import { keepSession } from './visits.ts';

/**
 * Saves the answers on the server while the person types, if the form allows it: one request at a time, a moment
 * after the last change.
 */
export function createSaver(formOf: () => HTMLFormElement | undefined): Saver {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  let pending = false;

  function changed(): void {
    if (formOf()?.getAttribute('data-saves') === null) return;
    pending = true;
    clearTimeout(timer);
    timer = setTimeout(begin, QUIET_MS);
  }

  function begin(): void {
    const form = formOf();
    if (form === undefined || running !== undefined || !pending) return;
    running = save(form).finally(() => {
      running = undefined;
      if (pending) changed();
    });
  }

  async function save(form: HTMLFormElement): Promise<void> {
    pending = false;
    say('saving');
    try {
      const response = await fetch(location.href, request(form));
      const { saved, session_id } = response.ok ? await response.json() : { saved: false };
      keepSession(session_id);
      if (!pending) say(saved === true ? 'saved' : 'notSaved');
    } catch {
      say('notSaved');
    }
  }

  function say(what: 'saving' | 'saved' | 'notSaved'): void {
    const status = document.getElementById('status');
    const name = what === 'notSaved' ? 'data-not-saved' : `data-${what}`;
    if (status === null) return;
    status.textContent = formOf()?.getAttribute(name) ?? '';
    status.classList.toggle('good', what === 'saved');
  }

  return {
    changed,
    say,
    flush() {
      const form = formOf();
      if (form !== undefined && pending && running === undefined)
        fetch(location.href, request(form)).catch(() => {});
    },
    underWay: () => running,
    stop() {
      clearTimeout(timer);
      pending = false;
    },
  };
}

/** The texts of the form, without files, which are uploaded on their own. */
function request(form: HTMLFormElement): RequestInit {
  const data = new FormData(form);
  data.set('_go', 'save');
  const texts = [...data].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
  return {
    method: 'POST',
    body: new URLSearchParams(texts),
    headers: { accept: 'application/json' },
    // The page may be closing.
    keepalive: true,
  };
}

/** Long enough to finish a word, short enough to lose little. */
const QUIET_MS = 700;

export type Saver = {
  /** Something was typed or chosen. */
  changed(): void;
  say(what: 'saving' | 'saved' | 'notSaved'): void;
  /** Sends what waits, at once. */
  flush(): void;
  /** Settles when what is being saved has been; undefined if nothing is. */
  underWay(): Promise<void> | undefined;
  /** Drops what waits: the step that is being sent contains it. */
  stop(): void;
};

import { keepSession } from './kept.ts';

/**
 * Saves the answers on the server while the person types, if the form allows it: one request at a time, a moment
 * after the last change. What could not be sent, or not be taken just now, is sent again after a while.
 */
export function createSaver(formOf: () => HTMLFormElement | undefined): Saver {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running: Promise<void> | undefined;
  let pending = false;
  let stopped = false;

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
    flush() {
      const form = formOf();
      if (form !== undefined && pending && running === undefined)
        fetch(location.href, request(form)).catch(() => {});
    },
    underWay: () => running,
    stop() {
      clearTimeout(timer);
      pending = false;
      stopped = true;
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

const RETRY_MS = 5_000;

/** Refused for now: too many calls, or the service can't take them. */
const forNow = new Set([429, 503]);

/** What keeps a page from being sent, and is not to be missed. */
const unsent: ReadonlySet<Said> = new Set(['offline', 'not-sent', 'failed']);

type Said = 'saving' | 'saved' | 'not-saved' | 'offline' | 'not-sent' | 'failed';

export type Saver = {
  /** Something was typed or chosen. */
  changed(): void;
  /** `text` is what the service says of a failure. */
  say(what: Said, text?: string): void;
  /** Sends what waits, at once. */
  flush(): void;
  /** Settles when what is being saved has been; undefined if nothing is. */
  underWay(): Promise<void> | undefined;
  /** Drops what waits: the step that is being sent contains it. */
  stop(): void;
};

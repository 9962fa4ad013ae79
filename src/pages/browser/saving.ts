/**
 * Keeps the answers on the server as the person goes, if the form does that at all.
 *
 * One request at a time, a little after the last change. "Saved" is said only once it is.
 */
export function createSaver(formOf: () => HTMLFormElement | undefined): Saver {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running = false;
  let pending = false;

  function changed(): void {
    if (formOf()?.getAttribute('data-saves') === null) return;
    pending = true;
    clearTimeout(timer);
    timer = setTimeout(save, QUIET_MS);
  }

  async function save(): Promise<void> {
    const form = formOf();
    if (form === undefined || running || !pending) return;
    running = true;
    pending = false;
    say('saving');
    try {
      const response = await fetch(location.href, request(form));
      const { saved } = response.ok ? await response.json() : { saved: false };
      if (!pending) say(saved === true ? 'saved' : 'notSaved');
    } catch {
      say('notSaved');
    } finally {
      running = false;
      if (pending) changed();
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
      if (form !== undefined && pending && !running) fetch(location.href, request(form)).catch(() => {});
    },
    stop() {
      clearTimeout(timer);
      pending = false;
    },
  };
}

/** Files are uploaded by themselves; here go texts only. */
function request(form: HTMLFormElement): RequestInit {
  const data = new FormData(form);
  data.set('_go', 'save');
  const texts = [...data].flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []));
  return {
    method: 'POST',
    body: new URLSearchParams(texts),
    headers: { accept: 'application/json' },
    // The page may be on its way out.
    keepalive: true,
  };
}

/** Long enough that a word is typed to its end, short enough that little is lost. */
const QUIET_MS = 700;

export type Saver = {
  /** Something was typed or chosen. */
  changed(): void;
  say(what: 'saving' | 'saved' | 'notSaved'): void;
  /** Sends what waits, at once. */
  flush(): void;
  /** What waits goes along with the step that is being sent. */
  stop(): void;
};

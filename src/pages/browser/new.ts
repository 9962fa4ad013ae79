import './copying.ts';
import { element } from './element.ts';

/**
 * Checks the form that a person writes whenever they stop typing, shows its page beside it, and makes it. The key that
 * they paste is read from its input for each call and kept nowhere else.
 */
const editor = the('#editor', HTMLElement);
const definition = the('#definition', HTMLTextAreaElement);
const outcome = the('#outcome', HTMLElement);
const problemList = the('#problems', HTMLElement);
const keyInput = the('#key', HTMLInputElement);
const create = the('#create', HTMLButtonElement);
const stepChoice = the('#step', HTMLSelectElement);
const root = new URL(editor.dataset.root ?? './', location.href);

/** The service previews 60 times a minute. */
const PAUSE_MS = 1000;

/** Of this tab: what was written is still there after a reload, or after coming back. */
const DRAFT = 'new-form';

let timer = 0;
let latest = new AbortController();

editor.hidden = false;
definition.value = sessionStorage.getItem(DRAFT) ?? definition.value;
definition.addEventListener('input', changed);
keyInput.addEventListener('change', () => void preview());
stepChoice.addEventListener('change', () => void preview());
create.addEventListener('click', () => void createForm());
for (const button of editor.querySelectorAll<HTMLButtonElement>('[data-example]')) {
  button.addEventListener('click', () => {
    replaceText(button.dataset.example ?? '');
    button.focus();
    void preview();
  });
}
void preview();

/** Replaces the text so that the browser's own undo brings the former one back. */
function replaceText(text: string): void {
  definition.focus();
  definition.select();
  if (!document.execCommand('insertText', false, text)) definition.value = text;
  changed();
}

function changed(): void {
  sessionStorage.setItem(DRAFT, definition.value);
  later(PAUSE_MS);
}

function later(ms: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void preview(), ms);
}

/** Shows the page of what is written by now, or what is wrong with it. */
async function preview(): Promise<void> {
  clearTimeout(timer);
  latest.abort();
  latest = new AbortController();
  const address = new URL('new', root);
  address.search = String(new URLSearchParams({ step: stepChoice.value, nonce: editor.dataset.nonce ?? '' }));
  const reply = await post(address, definition.value, latest.signal);
  if (reply === undefined) return;
  const { problems = [], html, steps = [], step, error } = reply.body;
  if (error !== undefined) {
    say(error.message);
    if (error.retry_after !== undefined) later(error.retry_after * 1000);
    return;
  }
  showProblems(problems);
  if (html !== undefined) showPage(html, steps, step);
}

function showPage(html: string, steps: [number, string][], step: number | undefined): void {
  // A new frame adds nothing to the browser's history.
  const frame = element('iframe', { title: 'Preview of the form', srcdoc: html });
  frame.setAttribute('sandbox', '');
  the('#preview', HTMLElement).replaceChildren(frame);
  stepChoice.replaceChildren(
    ...steps.map(([number, title]) => new Option(title, String(number), false, number === step)),
  );
  stepChoice.parentElement?.toggleAttribute('hidden', steps.length < 2);
}

/** Each problem leads to its line. */
function showProblems(problems: readonly Problem[]): void {
  problemList.replaceChildren(...problems.map(itemOf));
  problemList.hidden = problems.length === 0;
  definition.setAttribute('aria-invalid', String(problems.length > 0));
  const [first] = problems;
  const counted =
    problems.length === 1 ? `1 problem, in line ${first?.line}.` : `${problems.length} problems.`;
  say(first === undefined ? 'No problems.' : `${counted} The preview shows the form as it was before.`);
}

function itemOf({ line, path, message }: Problem): HTMLElement {
  const link = element('a', { href: '#definition', textContent: `Line ${line}` });
  link.addEventListener('click', (event) => {
    event.preventDefault();
    selectLine(line);
  });
  const item = element('li');
  item.append(link, `: ${path === '' ? '' : `${path}: `}${message}`);
  return item;
}

function selectLine(line: number): void {
  const lines = definition.value.split('\n');
  const start = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
  definition.focus();
  // Browsers scroll to where the selection ends, once something is typed or the focus comes.
  definition.setSelectionRange(start, start + (lines[line - 1] ?? '').length);
  const share = (line - 1) / lines.length;
  definition.scrollTop = Math.max(0, share * definition.scrollHeight - definition.clientHeight / 2);
}

async function createForm(): Promise<void> {
  if (create.getAttribute('aria-disabled') === 'true') return;
  await preview();
  if (!problemList.hidden) {
    problemList.querySelector('a')?.focus();
    return;
  }
  create.setAttribute('aria-disabled', 'true');
  const { $schema: _, ...form } = JSON.parse(definition.value);
  const reply = await post(new URL('api/forms/create', root), JSON.stringify(form));
  create.removeAttribute('aria-disabled');
  const path = reply?.body.form?.activate_url;
  if (path === undefined) return say(reply?.body.error?.message ?? '');
  sessionStorage.removeItem(DRAFT);
  location.assign(new URL(path.slice(1), root));
}

/** Undefined if a later call has taken its place, or nothing came back, which is said. */
async function post(address: URL, body: string, signal?: AbortSignal): Promise<{ body: Reply } | undefined> {
  const key = keyInput.value.trim();
  const headers = {
    'content-type': 'application/json',
    ...(key !== '' && { authorization: `Bearer ${key}` }),
  };
  try {
    const response = await fetch(address, { method: 'POST', body, headers, ...(signal && { signal }) });
    return { body: await response.json() };
  } catch {
    if (signal?.aborted !== true) say('The service can’t be reached. Try again in a moment.');
    return undefined;
  }
}

function say(text: string): void {
  outcome.textContent = text;
}

function the<E extends Element>(selector: string, kind: new () => E): E {
  const found = document.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`${selector} is missing`);
  return found;
}

type Problem = { line: number; path: string; message: string };

type Reply = {
  problems?: Problem[];
  html?: string;
  step?: number;
  steps?: [number, string][];
  form?: { activate_url: string };
  error?: { message: string; retry_after?: number };
};

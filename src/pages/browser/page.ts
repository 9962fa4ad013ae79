import './copying.ts';
import {
  clearChoice,
  followConditions,
  followTyping,
  showIncomplete,
  showLocalZones,
  shownFieldIds,
  withOwnOffset,
} from './inputs.ts';
import { prepareRankings } from './ranking.ts';
import { createSaver, forgetDraft, hasNoSessionYet, keepDraft, postedInputs, readDraft } from './saving.ts';
import { prepareSignatures } from './signatures.ts';
import { showLocalTimes } from './times.ts';
import { prepareUploads, showUnsent, uploadsUnderWay } from './uploads.ts';

/**
 * Improves the page, which works without this script too: conditions apply while a person types, answers are
 * saved, uploads show their progress, steps change without a reload and stay in the browser's history, what can't be
 * sent stays, and a second click sends nothing twice.
 *
 * An input can have any name, such as that of a form's own property, so nothing is read from the form element.
 */
const main = document.querySelector('main') ?? document.body;
const saver = createSaver(formOf);
let busy = false;
/** Where the person was when answers went off. */
let focusBefore: Element | null = null;
/** Whether the page has what could not be sent, and keeps it up to date. */
let keepsDraft = false;

const FORM = 'form[data-saved]';

/** Submitted or closed: the page, which shows what was typed, takes the place of the form. */
const endStatuses: ReadonlySet<number> = new Set([409, 410]);

main.addEventListener('submit', onSubmit);
main.addEventListener('formdata', onFormData);
main.addEventListener('input', onInput);
main.addEventListener('click', onClick);
addEventListener('popstate', onPopState);
addEventListener('pageshow', (event) => {
  // A page from the browser's cache may have been submitted since.
  if (event.persisted) location.reload();
});
addEventListener('pagehide', () => {
  if (keepsDraft) keep();
});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') saver.flush();
});
prepare();
restoreDraft();
tellHeight();

function prepare(): void {
  showLocalTimes(main);
  const form = formOf();
  if (form !== undefined) {
    showLocalZones(main, wordsOf(form));
    followConditions(main);
    prepareRankings(main, () => onInput());
    prepareSignatures(main, wordsOf(form), () => saver.changed());
    prepareUploads(main, wordsOf(form), () => saver.changed());
    history.replaceState({ page: pageOf() }, '');
  }
  const print = main.querySelector<HTMLElement>('#print');
  if (print !== null) {
    print.hidden = false;
    print.onclick = () => window.print();
  }
}

/** Shows what could not be sent before the page was loaded anew. */
function restoreDraft(): void {
  const form = formOf();
  const draft = readDraft();
  if (draft === undefined) return;
  if (form === undefined) {
    forget();
    return;
  }
  const inputs = new Map(draft.inputs);
  const body = new URLSearchParams([...draft.inputs, ['_kept', draft.at]]);
  void go(body, `page:${inputs.get('_page')}`, { push: false }).then((arrived) => {
    const shown = formOf();
    if (!arrived || shown === undefined) return;
    keepsDraft = true;
    showUnsent(shown, draft.files, wordsOf(shown));
  });
}

function onInput(event?: Event): void {
  followTyping(event?.target ?? null);
  followConditions(main);
  saver.changed();
}

/** A link to a field adds no entry to the history; one to another language keeps what is typed. */
function onClick(event: MouseEvent): void {
  const form = formOf();
  const language = event.target instanceof Element ? event.target.closest('.languages a') : null;
  const plain = !event.metaKey && !event.ctrlKey && !event.shiftKey;
  if (form !== undefined && language instanceof HTMLAnchorElement && plain) {
    event.preventDefault();
    if (!busy && isComplete()) void switchLanguage(form, language.href);
    return;
  }
  const clearing = event.target instanceof Element ? event.target.closest('button.clear') : null;
  if (clearing !== null) {
    event.preventDefault();
    clearChoice(clearing);
    onInput();
    return;
  }
  const link = event.target instanceof Element ? event.target.closest('.summary a, .notice a') : null;
  const control = document.getElementById(link?.getAttribute('href')?.slice(1) ?? '');
  if (control === null) return;
  event.preventDefault();
  control.focus({ preventScroll: true });
  (control.closest('.field') ?? control).scrollIntoView();
}

/**
 * Corrects the form data when the browser collects it. A date of which it has no value is left out, so that what is
 * saved of it stays, and said to be incomplete if the person has left it.
 */
function onFormData(event: FormDataEvent): void {
  const incomplete = showIncomplete(main, document.activeElement).map(({ name }) => name);
  const shown = shownFieldIds(main).filter((id) => !incomplete.includes(id));
  event.formData.set('_shown', shown.join(' '));
  for (const input of main.querySelectorAll<HTMLInputElement>('input[type=datetime-local]:enabled')) {
    event.formData.set(input.name, withOwnOffset(input));
  }
  for (const name of incomplete) event.formData.delete(name);
}

/** Whether the browser has a value of every date and time. Else it is said where not. */
function isComplete(): boolean {
  const [first] = showIncomplete(main);
  first?.focus();
  return first === undefined;
}

function onSubmit(event: SubmitEvent): void {
  const form = formOf();
  if (form === undefined) return;
  // The only other form on the page discards the draft and starts over.
  if (event.target !== form) {
    saver.stop();
    forget();
    return;
  }
  const { submitter } = event;
  if (busy || !isComplete()) {
    event.preventDefault();
    return;
  }
  // Of what is being saved, a form's own page does not know yet which session it will be in.
  const work = uploadsUnderWay() ?? (hasNoSessionYet() ? saver.underWay() : undefined);
  if (work !== undefined) {
    event.preventDefault();
    void work.then(() => HTMLFormElement.prototype.requestSubmit.call(form, submitter));
    return;
  }
  if (isTooLong(form)) {
    event.preventDefault();
    saver.say('failed', wordsOf(form)('too-long'));
    return;
  }
  setBusy(true);
  saver.stop();
  // The browser posts what stands in for a site's own form, since the reply may redirect to that site.
  if (form.hasAttribute('data-uploads')) return;
  event.preventDefault();
  void go(dataOf(form), submitter?.getAttribute('value') ?? 'forward', { push: true });
}

function onPopState(event: PopStateEvent): void {
  const form = formOf();
  if (form === undefined) {
    location.reload();
    return;
  }
  const { page } = event.state ?? {};
  if (typeof page === 'number' && page !== pageOf()) void go(dataOf(form), `page:${page}`, { push: false });
}

async function switchLanguage(form: HTMLFormElement, address: string): Promise<void> {
  await (uploadsUnderWay() ?? saver.underWay());
  saver.stop();
  await go(dataOf(form), `page:${pageOf()}`, { push: false, address });
}

/**
 * Posts the step, and replaces the page by the one that comes back. If none comes, or one that says to try again, the
 * page stays with what was typed, and says so. Returns whether it was replaced.
 */
async function go(
  body: FormData | URLSearchParams,
  goal: string,
  { push, address = location.href }: { push: boolean; address?: string },
): Promise<boolean> {
  setBusy(true);
  const before = pageOf();
  body.set('_go', goal);
  body.set('_fetched', 'true');
  try {
    const response = await fetch(address, { method: 'POST', body, headers: { accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    if (push && !response.ok) keep();
    if (!response.ok && !endStatuses.has(response.status) && page.querySelector(FORM) === null) {
      const said = [...page.querySelectorAll('main h1, main .lead')];
      saver.say('failed', said.map(({ textContent }) => textContent).join('. '));
      return false;
    }
    const next = page.querySelector('main');
    main.replaceChildren(...(next?.childNodes ?? []));
    for (const name of ['lang', 'dir']) main.toggleAttribute(name, next?.hasAttribute(name) === true);
    Object.assign(main, next?.hasAttribute('lang') && { lang: next.lang, dir: next.dir });
    document.title = page.title;
    const { lang, dir } = page.documentElement;
    Object.assign(document.documentElement, { lang, dir });
    if (address !== location.href) history.replaceState({ page: pageOf() }, '', response.url);
    const moved = push && formOf() !== undefined && pageOf() !== before;
    if (moved) history.pushState({ page: pageOf() }, '', response.url);
    prepare();
    if (formOf() === undefined || (push && response.ok)) forget();
    main.querySelector<HTMLAnchorElement>('a#continue')?.click();
    takeFocus();
    return true;
  } catch {
    if (push) keep();
    saver.say(navigator.onLine ? 'not-sent' : 'offline');
    return false;
  } finally {
    setBusy(false);
  }
}

function keep(): void {
  const form = formOf();
  if (form === undefined) return;
  keepDraft(form);
  keepsDraft = true;
}

function forget(): void {
  forgetDraft();
  keepsDraft = false;
}

function takeFocus(): void {
  const target = main.querySelector<HTMLElement>('[autofocus]') ?? main.querySelector('h1');
  if (target === null) return;
  target.tabIndex = -1;
  target.focus();
  scrollTo(0, 0);
}

/** While answers are under way nothing can be typed: it would not be among them, and the reply would replace it. */
function setBusy(now: boolean): void {
  if (now && !busy) focusBefore = document.activeElement;
  busy = now;
  for (const button of main.querySelectorAll('.actions button')) {
    button.setAttribute('aria-disabled', String(now));
  }
  for (const field of main.querySelectorAll('.field')) field.toggleAttribute('inert', now);
  const isLost = document.activeElement === document.body;
  if (!now && isLost && focusBefore instanceof HTMLElement) focusBefore.focus({ preventScroll: true });
}

function formOf(): HTMLFormElement | undefined {
  return main.querySelector<HTMLFormElement>(FORM) ?? undefined;
}

function wordsOf(form: HTMLFormElement): (name: string) => string {
  return (name) => form.getAttribute(`data-${name}`) ?? '';
}

function pageOf(): number {
  return Number(main.querySelector<HTMLInputElement>('input[name=_page]')?.value ?? 1);
}

/** Whether the texts of the answers alone have more bytes than the form takes. */
function isTooLong(form: HTMLFormElement): boolean {
  const texts = postedInputs(form).flatMap(([name, value]) => (name.startsWith('_') ? [] : [value]));
  return new Blob(texts).size > Number(wordsOf(form)('max-bytes') || Infinity);
}

/** The inputs as the form would post them. */
function dataOf(form: HTMLFormElement): FormData | URLSearchParams {
  return form.getAttribute('enctype') === null ? new URLSearchParams(postedInputs(form)) : new FormData(form);
}

/**
 * Reports the page's height and the key that closes dialogs, and nothing of the answers, to the page that frames it.
 */
function tellHeight(): void {
  if (window.parent === window) return;
  document.documentElement.classList.add('embedded');
  document.documentElement.classList.toggle('transparent', window.name === 'form-transparent');
  const reportHeight = () => {
    const height = Math.ceil(document.body.getBoundingClientRect().height);
    window.parent.postMessage({ type: 'form-height', height }, '*');
  };
  new ResizeObserver(reportHeight).observe(document.body);
  // A dialog around the frame does not hear of keys pressed within it.
  addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') window.parent.postMessage({ type: 'form-escape' }, '*');
  });
  reportHeight();
}

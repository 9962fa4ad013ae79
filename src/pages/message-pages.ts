import type { IncomingMessage } from 'node:http';
import type { Theme } from '../../gen/forms/v1/definition_pb.js';
import type { Ending } from '../../gen/forms/v1/submissions_pb.js';
import { type Html, html } from '../text/html.ts';
import type { Words } from '../text/words/en.ts';
import { chooseLanguage, fill, type Language } from '../text/words/language.ts';
import { type Page, renderPage, rootOf } from './layout.ts';

/**
 * Thanks a person, with a copy of what they answered.
 *
 * `embedOrigins` are those of the page that was submitted, so that an embedded form keeps its frame.
 */
export function renderEnding(ending: Ending, request: IncomingMessage, embedOrigins: string[] = []): Page {
  const language = languageOf(request, ending.locale);
  const { words } = language;
  const copy = ending.answers.map(
    ({ label, text }) => html`<div><dt>${label}</dt><dd>${text === '' ? words.noAnswer : text}</dd></div>
`,
  );
  const body = html`<h1 class="done">${words.thanksTitle}</h1>
<p class="lead" role="status">${ending.successMessage || words.thanksText}</p>
${ending.redirectUrl !== '' && html`<p class="actions"><a class="button" id="continue" href="${ending.redirectUrl}">${words.next}</a></p>`}
${
  copy.length > 0 &&
  html`<section class="copy"><h2>${words.copyTitle}</h2>
<p class="note">${words.copyText}</p>
<dl>${copy}</dl>
<p class="actions" id="print" hidden><button class="quiet" type="button">${words.print}</button></p></section>`
}`;
  return renderPage({
    language,
    root: rootOf(request),
    title: ending.formName === '' ? words.thanksTitle : `${words.thanksTitle} – ${ending.formName}`,
    theme: ending.theme,
    embedOrigins,
    body,
    script: true,
  });
}

/** Names what was wrong with the answers that a static site's own form has posted. */
export function renderProblems(
  violations: readonly { path: string; message: string }[],
  request: IncomingMessage,
): Page {
  const language = languageOf(request);
  const { words } = language;
  const body = html`<h1>${words.problemsTitle}</h1>
<p>${words.problemsText}</p>
<dl>${violations.map(
    ({
      path,
      message,
    }) => html`<div><dt>${path.replace(/^answers\.?/, '') || '–'}</dt><dd>${message}</dd></div>
`,
  )}</dl>`;
  return renderPage({ language, root: rootOf(request), title: words.problemsTitle, body });
}

/** Says why something was refused or failed; `reason` is the JSON error's, `requestId` is in the log. */
export function renderError(
  status: number,
  reason: string,
  request: IncomingMessage,
  options: ErrorOptions = {},
): Page {
  const language = languageOf(request, options.locale);
  const { words } = language;
  const [title, text] = wordsFor(status, reason, words);
  const told = status === 500 ? fill(text, { id: options.requestId ?? '–' }) : text;
  return renderMessage({ request, language, title, text: told, ...options });
}

/** A page with a title and a sentence, and perhaps more below. */
export function renderMessage(message: Message): Page {
  const { title, text, request, language } = message;
  const body = html`<h1>${title}</h1>
<p class="lead">${text}</p>
${message.more}`;
  return renderPage({
    language,
    root: rootOf(request),
    title: message.formName ? `${title} – ${message.formName}` : title,
    theme: message.theme,
    embedOrigins: message.embedOrigins ?? [],
    body,
    // An embedded page tells its height in every state.
    script: (message.embedOrigins ?? []).length > 0,
  });
}

/** The language of a page for whoever sent the request. */
export function languageOf(request: IncomingMessage, locale = ''): Language {
  return chooseLanguage(locale, request.headers['accept-language']);
}

function wordsFor(status: number, reason: string, words: Words): [title: string, text: string] {
  switch (reason) {
    case 'conflict':
      return [words.submittedTitle, words.submittedText];
    case 'expired':
      return [words.expiredTitle, words.expiredText];
    case 'closed':
    case 'archived':
      return [words.closedTitle, words.closedText];
    case 'invalid_token':
    case 'token_used':
      return [words.linkInvalidTitle, words.linkInvalidText];
    case 'origin_not_allowed':
      return [words.refusedTitle, words.refusedText];
    default:
      return wordsForStatus(status, words);
  }
}

function wordsForStatus(status: number, words: Words): [title: string, text: string] {
  switch (status) {
    case 404:
      return [words.notFoundTitle, words.notFoundText];
    case 413:
      return [words.tooLargeTitle, words.tooLargeText];
    case 429:
      return [words.limitedTitle, words.limitedText];
    case 500:
      return [words.faultTitle, words.faultText];
    case 503:
      return [words.unavailableTitle, words.unavailableText];
    default:
      return [words.badRequestTitle, words.badRequestText];
  }
}

/** The looks of the form that a message is about, as far as they are known. */
type Looks = { theme?: Theme | undefined; formName?: string; embedOrigins?: string[] };

export type Message = Looks & {
  request: IncomingMessage;
  language: Language;
  title: string;
  text: string;
  more?: Html | false;
};

type ErrorOptions = Looks & { locale?: string; requestId?: string };

import type { IncomingMessage } from 'node:http';
import type { Theme } from '../../gen/forms/v1/definition_pb.js';
import type { ErrorReason, HttpError } from '../http/errors.ts';
import type { Page } from '../http/reply.ts';
import { type Html, html } from '../text/html.ts';
import type { Words } from '../text/words/en.ts';
import { chooseLanguage, fill, type Language } from '../text/words/language.ts';
import { type IconName, icon } from './icons.ts';
import { renderPage, rootOf } from './layout.ts';

/** A page with a title and a sentence, and perhaps more below. */
export function renderMessage(message: Message): Page {
  const { title, text, request, language } = message;
  const body = html`${message.icon !== undefined && icon(message.icon)}
${message.formName !== undefined && message.formName !== '' && html`<p class="form-name">${message.formName}</p>`}
<h1>${title}</h1>
<p class="lead">${text}</p>
${message.next !== undefined && html`<p class="note">${message.next}</p>`}
${message.more}`;
  return renderPage({
    language,
    root: rootOf(request),
    title: message.formName ? `${title} – ${message.formName}` : title,
    theme: message.theme,
    embedOrigins: message.embedOrigins ?? [],
    body,
    // The script reports the height of an embedded page to the page around it.
    script: message.script === true || (message.embedOrigins ?? []).length > 0,
  });
}

/** Says why a request was refused or failed. The log has a fault under `requestId`. */
export function renderError(error: HttpError, request: IncomingMessage, options: ErrorOptions): Page {
  const language = languageOf(request, options.locale);
  const [title, text] = wordsFor(error.reason, language.words);
  return renderMessage({
    request,
    language,
    title,
    text: fill(text, { id: options.requestId }),
    icon: iconFor(error.reason),
    next: nextFor(error.reason, language.words),
    ...options,
  });
}

/** The language of a page, by the form's `locale` and the request's `Accept-Language`. */
export function languageOf(request: IncomingMessage, locale = ''): Language {
  return chooseLanguage(locale, request.headers['accept-language']);
}

function iconFor(reason: ErrorReason): IconName {
  if (reason === 'conflict') return 'done';
  if (reason === 'expired') return 'clock';
  if (reason === 'cancelled' || reason === 'closed' || reason === 'archived') return 'closed';
  return reason === 'not_found' || reason === 'method' || reason === 'deleted' ? 'unknown' : 'problem';
}

/** What a person can do next, where the text does not say it. */
function nextFor(reason: ErrorReason, words: Words): string | undefined {
  if (reason === 'conflict' || reason === 'cancelled') return words.closePage;
  return reason === 'closed' || reason === 'archived' || reason === 'not_found' ? words.askSender : undefined;
}

function wordsFor(reason: ErrorReason, words: Words): [title: string, text: string] {
  switch (reason) {
    case 'conflict':
      return [words.submittedTitle, words.submittedText];
    case 'expired':
      return [words.expiredTitle, words.expiredText];
    case 'cancelled':
      return [words.cancelledTitle, words.cancelledText];
    case 'closed':
    case 'archived':
      return [words.closedTitle, words.closedText];
    case 'invalid_token':
    case 'token_used':
      return [words.linkInvalidTitle, words.linkInvalidText];
    case 'origin_not_allowed':
      return [words.refusedTitle, words.refusedText];
    case 'deleted':
      return [words.fileDeletedTitle, words.fileDeletedText];
    case 'not_found':
    case 'method':
      return [words.notFoundTitle, words.notFoundText];
    case 'too_large':
      return [words.tooLargeTitle, words.tooLargeText];
    case 'rate_limited':
      return [words.limitedTitle, words.limitedText];
    case 'internal':
      return [words.faultTitle, words.faultText];
    case 'unavailable':
      return [words.unavailableTitle, words.unavailableText];
    case 'bad_request':
    case 'media_type':
    case 'invalid':
    case 'missing_key':
    case 'invalid_key':
    case 'insufficient_scope':
      return [words.badRequestTitle, words.badRequestText];
    default:
      return reason satisfies never;
  }
}

/** The looks of the form that a message is about, as far as they are known. */
type Looks = { theme?: Theme | undefined; formName?: string; embedOrigins?: string[] };

export type Message = Looks & {
  request: IncomingMessage;
  language: Language;
  title: string;
  text: string;
  icon?: IconName;
  /** What the person can do next. */
  next?: string | undefined;
  more?: Html | false;
  /** Whether what is below needs the script. */
  script?: boolean;
};

type ErrorOptions = Looks & { locale?: string; requestId: string };

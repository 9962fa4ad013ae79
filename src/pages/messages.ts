import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import type { Theme } from '../../gen/headlessforms/v1/definition_pb.js';
import type { ReasonName } from '../domain/errors/failure.ts';
import { isLanguageTag } from '../domain/text/accept-language.ts';
import { Html, html } from '../domain/text/html.ts';
import type { RestError } from '../http/errors.ts';
import type { Page } from '../http/reply.ts';
import { chooseLanguage, fill, type Language, type Words } from '../text/words.ts';
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
export function renderError(error: RestError, request: IncomingMessage, options: ErrorOptions): Page {
  const language = languageOf(request, options.locale);
  const { words, owner } = language;
  const { requestId, isOwners = false, locale: _, ...looks } = options;
  const [title, text] = isOwners ? wordsForOwner(error.reason, language) : wordsFor(error.reason, words);
  const home = html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${owner.title}</a></p>`;
  return renderMessage({
    request,
    language,
    title,
    text: fill(text, { id: requestId }),
    ...looks,
    ...(isOwners
      ? { icon: 'problem', more: home }
      : { icon: iconFor(error.reason), next: nextFor(error.reason, words) }),
  });
}

/** The language of a page, by the form's `locale` and the request's `Accept-Language`. */
export function languageOf(request: IncomingMessage, locale = ''): Language {
  return chooseLanguage(locale, request.headers['accept-language']);
}

/** Puts the language that a page's address names before those that the browser prefers, for all that follows. */
export function preferNamedLanguage(request: Request): void {
  const { lang } = request.query;
  if (typeof lang !== 'string' || !isLanguageTag(lang)) return;
  request.headers['accept-language'] = [lang, request.headers['accept-language'] ?? []].flat().join(', ');
}

function iconFor(reason: ReasonName): IconName {
  if (reason === 'conflict' || reason === 'declined') return 'done';
  if (reason === 'expired') return 'clock';
  if (reason === 'cancelled' || reason === 'closed' || reason === 'archived') return 'closed';
  return reason === 'not_found' || reason === 'method' || reason === 'deleted' ? 'unknown' : 'problem';
}

/** What a person can do next, where the text does not say it. */
function nextFor(reason: ReasonName, words: Words): string | undefined {
  if (reason === 'conflict' || reason === 'cancelled' || reason === 'declined') return words.closePage;
  return reason === 'closed' || reason === 'archived' || reason === 'not_found' ? words.askSender : undefined;
}

function wordsFor(reason: ReasonName, words: Words): [title: string, text: string] {
  switch (reason) {
    case 'conflict':
      return [words.submittedTitle, words.submittedText];
    case 'expired':
      return [words.expiredTitle, words.expiredText];
    case 'cancelled':
      return [words.cancelledTitle, words.cancelledText];
    case 'declined':
      return [words.declinedTitle, words.declinedText];
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
    case 'sign_in_again':
      return [words.badRequestTitle, words.badRequestText];
    default:
      return reason satisfies never;
  }
}

/** Owners read their own pages, where no answers are sent. */
function wordsForOwner(reason: ReasonName, { words, owner }: Language): [title: string, text: string] {
  if (reason === 'rate_limited' || reason === 'unavailable') return wordsFor(reason, words);
  if (reason === 'origin_not_allowed') return [words.refusedTitle, owner.refusedText];
  const isUnknown = reason === 'not_found' || reason === 'invalid' || reason === 'bad_request';
  return isUnknown ? [owner.notFoundTitle, owner.notFoundText] : [words.faultTitle, owner.failedText];
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

type ErrorOptions = Looks &
  Pick<Message, 'more' | 'script'> & { locale?: string; requestId: string; isOwners?: boolean };

/**
 * A picture above the title of a page that says how something stands. Readers of the page get the same from its words.
 */
export function icon(name: IconName): Html {
  const marks: Record<IconName, string> = {
    done: '<path d="M15 24.5l6.5 6.5L33.5 18"/>',
    clock: '<path d="M24 14v11l7 5"/>',
    closed: '<path d="M17 22h14v11H17zM20 22v-4a4 4 0 0 1 8 0v4"/>',
    unknown: '<path d="M19 20a5 5 0 1 1 7 4.6c-1.4.8-2 1.7-2 3.4M24 33v.1"/>',
    problem: '<path d="M24 14v13M24 33v.1"/>',
  };
  return new Html(
    `<svg class="icon ${name}" viewBox="0 0 48 48" width="48" height="48" aria-hidden="true"><circle cx="24" cy="24" r="24"/>${marks[name]}</svg>`,
  );
}

type IconName = 'done' | 'clock' | 'closed' | 'unknown' | 'problem';

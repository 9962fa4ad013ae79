import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import type { Theme } from '../../gen/headlessforms/v1/definition_pb.js';
import type { ReasonName } from '../domain/errors/failure.ts';
import { isLanguageTag } from '../domain/text/accept-language.ts';
import { attributes, Html, html } from '../domain/text/html.ts';
import type { RestError } from '../http/errors.ts';
import type { HtmlPage } from '../http/reply.ts';
import { chooseLanguage, fill, type Language, type Words } from '../text/words.ts';
import { renderPage, rootOf } from './layout.ts';

/** A page with a title and a sentence, and perhaps more below. */
export function renderMessage(message: Message): HtmlPage {
  const { title, text, request, language } = message;
  const body = html`${message.icon !== undefined && icon(message.icon)}
${message.formName !== undefined && message.formName !== '' && html`<p class="form-name"${attributes(language.theirs)}>${message.formName}</p>`}
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
export function renderError(error: RestError, request: IncomingMessage, options: ErrorOptions): HtmlPage {
  const language = languageOf(request, options.locale);
  const { words, owner } = language;
  const { requestId, isOwners = false, locale: _, ...looks } = options;
  const page = { request, language, ...looks };
  if (isOwners) {
    const [title, text] = wordsForOwner(error.reason, language);
    const more = html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${owner.title}</a></p>`;
    return renderMessage({ ...page, icon: 'problem', title, text: fill(text, { id: requestId }), more });
  }
  const { title, text, icon: name, next } = said[error.reason];
  return renderMessage({
    ...page,
    icon: name,
    title: words[title],
    text: fill(words[text], { id: requestId }),
    next: next && words[next],
  });
}

/** The language of a page, by the form's `locale` and the request's `Accept-Language`. */
export function languageOf(request: IncomingMessage, locale = '', linksAddresses = false): Language {
  return { ...chooseLanguage(locale, request.headers['accept-language']), linksAddresses };
}

/** Puts the language that a page's address names before those that the browser prefers, for all that follows. */
export function preferNamedLanguage(request: Request): void {
  const { lang } = request.query;
  if (typeof lang !== 'string' || !isLanguageTag(lang)) return;
  request.headers['accept-language'] = [lang, request.headers['accept-language'] ?? []].flat().join(', ');
}

const closed: Said = { title: 'closedTitle', text: 'closedText', icon: 'closed', next: 'askSender' };
const unusableLink: Said = { title: 'linkInvalidTitle', text: 'linkInvalidText', icon: 'problem' };
const notFound: Said = { title: 'notFoundTitle', text: 'notFoundText', icon: 'unknown' };
const badRequest: Said = { title: 'badRequestTitle', text: 'badRequestText', icon: 'problem' };

/** What a page says of each reason. */
const said: Readonly<Record<ReasonName, Said>> = {
  conflict: { title: 'submittedTitle', text: 'submittedText', icon: 'done', next: 'closePage' },
  expired: { title: 'expiredTitle', text: 'expiredText', icon: 'clock' },
  cancelled: { title: 'cancelledTitle', text: 'cancelledText', icon: 'closed', next: 'closePage' },
  declined: { title: 'declinedTitle', text: 'declinedText', icon: 'done', next: 'closePage' },
  closed,
  archived: closed,
  invalid_token: unusableLink,
  token_used: unusableLink,
  origin_not_allowed: { title: 'refusedTitle', text: 'refusedText', icon: 'problem' },
  deleted: { title: 'fileDeletedTitle', text: 'fileDeletedText', icon: 'unknown' },
  not_found: { ...notFound, next: 'askSender' },
  method: notFound,
  too_large: { title: 'tooLargeTitle', text: 'tooLargeText', icon: 'problem' },
  rate_limited: { title: 'limitedTitle', text: 'limitedText', icon: 'problem' },
  internal: { title: 'faultTitle', text: 'faultText', icon: 'problem' },
  unavailable: { title: 'unavailableTitle', text: 'unavailableText', icon: 'problem' },
  bad_request: badRequest,
  media_type: badRequest,
  invalid: badRequest,
  missing_key: badRequest,
  invalid_key: badRequest,
  insufficient_scope: badRequest,
  sign_in_again: badRequest,
  breaking_change: badRequest,
  code_needed: { title: 'codeTitle', text: 'codeRefusedText', icon: 'closed' },
};

/** Owners read their own pages, where no answers are sent. */
function wordsForOwner(reason: ReasonName, { words, owner }: Language): [title: string, text: string] {
  if (reason === 'rate_limited' || reason === 'unavailable')
    return [words[said[reason].title], words[said[reason].text]];
  if (reason === 'origin_not_allowed') return [words.refusedTitle, owner.refusedText];
  const isUnknown = reason === 'not_found' || reason === 'invalid' || reason === 'bad_request';
  return isUnknown ? [owner.notFoundTitle, owner.notFoundText] : [words.faultTitle, owner.failedText];
}

/** `next`: what a person can do next, where the text does not say it. */
type Said = { title: keyof Words; text: keyof Words; icon: IconName; next?: keyof Words };

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

import type { Request } from 'express';
import type { HostedSession } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { isLanguageTag } from '../../domain/text/accept-language.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import type { Language } from '../../text/words.ts';

/** Puts the language that a page's address names before those that the browser prefers, for all that follows. */
export function preferNamedLanguage(request: Request): void {
  const { lang } = request.query;
  if (typeof lang !== 'string' || !isLanguageTag(lang)) return;
  request.headers['accept-language'] = [lang, request.headers['accept-language'] ?? []].flat().join(', ');
}

/** The query of the page's address with another language or step, and all else that it has. */
export function queryWith({ query }: Pick<Request, 'query'>, changed: Record<string, string>): string {
  const kept = Object.entries(query).flatMap(([name, values]) =>
    [values]
      .flat()
      .flatMap((value): [string, string][] =>
        typeof value === 'string' && !(name in changed) ? [[name, value]] : [],
      ),
  );
  return `?${new URLSearchParams([...kept, ...Object.entries(changed)]).toString()}`;
}

/** Links to the page in the languages that it can be read in; nothing if there is but one. */
export function languageSwitch(session: HostedSession, { request, language }: Reader): Html | false {
  const { languages, locale } = session;
  if (languages.length < 2) return false;
  return html`<nav class="languages" aria-label="${language.words.language}">${languages.map((tag) => {
    const name = nameOf(tag);
    return tag === locale
      ? html`<span${attributes({ lang: tag, 'aria-current': 'true' })}>${name}</span>\n`
      : html`<a${attributes({ href: queryWith(request, { lang: tag }), lang: tag, hreflang: tag })}>${name}</a>\n`;
  })}</nav>`;
}

/** The name of a language in itself: `Deutsch`. */
function nameOf(tag: string): string {
  const name = new Intl.DisplayNames(tag, { type: 'language' }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

type Reader = { request: Request; language: Language };

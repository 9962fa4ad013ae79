import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Theme, ThemeMode } from '../../gen/headlessforms/v1/definition_pb.js';
import { MAX_ADDRESS_LENGTH } from '../domain/addresses/email-address.ts';
import { isOrigin } from '../domain/definition/settings.ts';
import { BLACK, contrast, hex, parseColor, READABLE, type Rgb, textOn, WHITE } from '../domain/text/color.ts';
import { attributes, Html, html } from '../domain/text/html.ts';
import type { HtmlPage } from '../http/reply.ts';
import type { Language, Words } from '../text/words.ts';
import { loadAssets } from './assets.ts';

/** The files that the pages load. */
export const assets = loadAssets();

/**
 * A whole page and the headers it needs.
 *
 * The content security policy allows only our own files, the style of the accent colour by its hash, and a logo
 * within the page. Since its address is a secret, no cache keeps the page and no other site gets a referrer from it.
 */
export function renderPage(content: PageContent): HtmlPage {
  const { language, theme, title, root } = content;
  const style = accentStyle(theme);
  const logo = logoOf(theme);
  const page = html`<!doctype html>
<html${attributes({ lang: language.tag, dir: language.direction, 'data-mode': modeOf(theme) })}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="color-scheme" content="${{ light: 'light', dark: 'dark', auto: 'light dark' }[modeOf(theme)]}">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${assets.path('style.css')}">
${content.ofOwner === true && html`<link rel="stylesheet" href="${root}${assets.path('owner.css')}">`}
${content.isGuide === true && html`<link rel="stylesheet" href="${root}${assets.path('guides.css')}">`}
${style !== '' && html`<style${attributes({ nonce: content.nonce })}>${new Html(style)}</style>`}
${content.isEditor === true && html`<link rel="stylesheet" href="${root}${assets.path('new.css')}">`}
${content.script === true && html`<script type="module" src="${root}${assets.path(scriptOf(content))}"></script>`}
</head>
<body>
<main${attributes({ ...language.ours, class: (content.isWide === true && 'wide') || (content.isEditor === true && 'editor') })}>
${logo !== undefined && html`<img class="logo" alt="" src="${logo}">`}
${content.body}
</main>
</body>
</html>
`;
  return { html: page.text, headers: headersOf(style, content) };
}

/** The input of an email address with its label. */
export function emailField(field: InputField, own: Attributes): Html {
  const email = { name: 'email', type: 'email', required: true, maxlength: MAX_ADDRESS_LENGTH };
  return inputField(field, { ...email, ...own });
}

/** An input with its label; `problem` says what is wrong with what was given. */
export function inputField({ id, label, problem, words }: InputField, own: Attributes): Html {
  const isWrong = problem !== undefined;
  return html`<div class="${isWrong ? 'field wrong' : 'field'}"><label for="${id}">${label}</label>
${isWrong && html`<p class="error" id="${id}.error"><span class="sr">${words.error} </span>${problem}</p>`}
<input${attributes({
    class: 'control',
    id,
    'aria-invalid': isWrong && 'true',
    'aria-describedby': isWrong && `${id}.error`,
    ...own,
  })}></div>`;
}

/** Fills in the placeholders of a text by markup. */
export function fillHtml(text: string, values: Readonly<Record<string, Html>>): Html {
  // Every second part is the name of a placeholder.
  return html`${text.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : values[part]))}`;
}

/** The relative path from a page to the service's root, which a proxy may have moved: `../` for `/f/sess_1`. */
export function rootOf(request: IncomingMessage): string {
  const [path = ''] = (request.url ?? '').split('?', 1);
  return '../'.repeat(Math.max(0, path.split('/').length - 2)) || './';
}

function scriptOf({ ofOwner, isEditor }: PageContent): string {
  if (ofOwner === true) return 'owner.js';
  return isEditor === true ? 'new.js' : 'page.js';
}

function headersOf(
  style: string,
  { embedOrigins = [], ofOwner, isEditor, leadsTo = '', images, nonce }: PageContent,
): Record<string, string> {
  const hash = createHash('sha256').update(style).digest('base64');
  const frames = embedOrigins.filter(isOrigin);
  const policy = [
    "default-src 'none'",
    `style-src 'self'${style === '' ? '' : ` 'sha256-${hash}'`}${nonce === undefined ? '' : ` 'nonce-${nonce}'`}`,
    "script-src 'self'",
    "connect-src 'self'",
    `img-src ${images === true ? "'self' " : ''}data:`,
    // Browsers hold a form's redirect to this too, and an author may send people to any https page.
    `form-action 'self'${ofOwner === true ? '' : ' https:'}${isOrigin(leadsTo) ? ` ${leadsTo}` : ''}`,
    "base-uri 'none'",
  ];
  const headers = securityHeaders(policy, frames);
  // Without a referrer browsers send no origin with a post either.
  return ofOwner === true || isEditor === true ? { ...headers, 'referrer-policy': 'same-origin' } : headers;
}

/** The headers of a page with a content security policy, which the origins in `frames` may frame. */
export function securityHeaders(
  policy: readonly string[],
  frames: readonly string[],
): Record<string, string> {
  const framedBy = `frame-ancestors ${frames.length === 0 ? "'none'" : frames.join(' ')}`;
  return {
    'content-security-policy': [...policy, framedBy].join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=()',
    'x-robots-tag': 'noindex',
    ...(frames.length === 0 ? { 'x-frame-options': 'DENY' } : {}),
  };
}

type PageContent = {
  language: Language;
  /** The relative path to the service's root, from `rootOf`. */
  root: string;
  title: string;
  body: Html;
  theme?: Theme | undefined;
  /** Who may frame the page; nobody if absent. */
  embedOrigins?: readonly string[];
  /** Whether it is a page for owners of forms, posted to this service alone. */
  ofOwner?: boolean;
  /** Whether it has room for tables. */
  isWide?: boolean;
  /** Whether it is a guide, whose text has the styles of a document. */
  isGuide?: boolean;
  /** Whether it is the page where forms are written. */
  isEditor?: boolean;
  /** What styles of the page have to be allowed, beside those that its headers name. */
  nonce?: string | undefined;
  /** The origin of a site that may be sent to after a post of the page, though it is not of https. */
  leadsTo?: string | undefined;
  /** Whether it shows pictures of this service. */
  images?: boolean;
  /** Whether the page needs the script; one of owners needs it to copy. */
  script?: boolean;
};

type InputField = { id: string; label: string; problem: string | undefined; words: Words };
type Attributes = Parameters<typeof attributes>[0];

/** The mode of a theme as the stylesheet names it. */
function modeOf(theme: Theme | undefined): 'light' | 'dark' | 'auto' {
  if (theme?.mode === ThemeMode.LIGHT) return 'light';
  return theme?.mode === ThemeMode.DARK ? 'dark' : 'auto';
}

/** The logo if it is a picture that a page may show, else undefined. */
export function logoOf(theme: Theme | undefined): string | undefined {
  const logo = theme?.logo ?? '';
  return /^data:image\/(png|jpeg|webp);base64,[A-Za-z0-9+/=]+$/.test(logo) ? logo : undefined;
}

/**
 * The style rules of an accent colour, empty if there is none.
 *
 * Buttons have the very colour, with whichever of black and white stands out more on it. Where it is text, a line or
 * a mark on the page, it is moved towards black on the light page, and towards white on the dark one, until it can be
 * read. Whatever an author picks, the contrast is that of WCAG 2.2 AA.
 */
export function accentStyle(theme: Theme | undefined): string {
  const color = parseColor(theme?.accentColor ?? '');
  if (color === undefined) return '';
  const [light, dark] = [towards(color, BLACK, LIGHT_PAGE), towards(color, WHITE, DARK_PAGE)];
  return `:root{--accent:${hex(color)};--on-accent:${hex(textOn(color))};--accent-text:light-dark(${hex(light)},${hex(dark)})}`;
}

function towards(color: Rgb, goal: Rgb, page: Rgb): Rgb {
  let moved = color;
  for (let share = 0; share <= 1 && contrast(moved, page) < READABLE; share += STEP) {
    const mix = (index: 0 | 1 | 2) => Math.round(color[index] + (goal[index] - color[index]) * share);
    moved = [mix(0), mix(1), mix(2)];
  }
  return contrast(moved, page) < READABLE ? goal : moved;
}

/** How far a colour is moved at a time. */
const STEP = 0.04;

/** The darkest background of the light page, and the lightest one of the dark page, in style.css. */
export const LIGHT_PAGE: Rgb = [0xf4, 0xf5, 0xf7];
export const DARK_PAGE: Rgb = [0x1c, 0x1f, 0x26];

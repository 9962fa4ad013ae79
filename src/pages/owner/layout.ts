import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { Request } from 'express';
import { attributes, type Content, type Html, html } from '../../domain/text/html.ts';
import type { HtmlPage } from '../../http/reply.ts';
import { present } from '../../http/shape.ts';
import { timeInWords } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { emailField, renderPage, rootOf } from '../layout.ts';
import { CSRF_INPUT } from './session.ts';

/** A page for owners; with `signedIn` it says as whom and lets them sign out. */
export function renderOwnerPage(
  request: Request,
  language: Language,
  { title, body, signedIn, script, images, nonce }: OwnerContent & { signedIn?: SignedIn },
): HtmlPage {
  const { owner } = language;
  const root = rootOf(request);
  const head =
    signedIn !== undefined &&
    html`<nav class="owner" aria-label="${owner.title}">
<a href="${root}owner">${owner.title}</a>
<span class="who">${fill(owner.signedInAs, { email: signedIn.address })}</span>
<form method="post" action="${root}owner/sign-out">${csrfInput(signedIn.csrf)}<button class="link">${owner.signOut}</button>
<button class="link" name="everywhere" value="yes">${owner.signOutEverywhere}</button></form>
</nav>`;
  return renderPage({
    language,
    root,
    title,
    ofOwner: true,
    isWide: signedIn !== undefined,
    script: script === true,
    images: images === true,
    nonce,
    body: html`${head}
${body}`,
  });
}

/** The page that asks for an address; `known` fills it in. With `isWrong` it is one that was given and is none. */
export function signInPage(
  request: Request,
  { owner, words }: Language,
  known = '',
  isWrong = false,
): OwnerContent {
  const body = html`<h1>${words.signIn}</h1>
<p class="lead">${owner.signInText}</p>
<form method="post" action="${rootOf(request)}owner/sign-in" novalidate>
${emailField(
  { id: 'email', label: words.emailLabel, problem: isWrong ? owner.wrongEmail : undefined, words },
  { autocomplete: 'email', value: known === '' ? undefined : known },
)}
<div class="actions"><button>${owner.signInButton}</button></div>
</form>`;
  return { title: isWrong ? fill(words.errorTitle, { title: words.signIn }) : words.signIn, body };
}

/** The page that asks an owner to sign in again, whose session is too old for what was to be done. */
export function signInAgainPage(request: Request, language: Language, address: string): OwnerContent {
  const { signInAgainTitle: title, signInAgainText } = language.owner;
  const body = html`<h1>${title}</h1>
<p class="lead">${signInAgainText}</p>
${newLinkForm(request, language, address)}`;
  return { title, body, status: 401 };
}

/** A button that emails a link to sign in with in this browser. */
export function newLinkForm(request: Request, { owner }: Language, address: string): Html {
  return html`<form method="post" action="${rootOf(request)}owner/sign-in"><input type="hidden" name="email" value="${address}">
<div class="actions"><button>${owner.signInButton}</button></div></form>`;
}

/** Says what was done, if it was done here. The address of the page leads to it, so that it has the focus. */
export function banner(done: string, here: readonly Done[], { owner }: Language): Html | false {
  const name = here.find((each) => each === done);
  return name !== undefined && html`<p class="done" id="done" role="status" tabindex="-1">${owner[name]}</p>`;
}

/** A time in UTC, which the script changes to the reader's time zone. */
export function timeElement(timestamp: Timestamp | undefined, { tag }: Language): Html {
  const time = timestampDate(present(timestamp));
  const inUtc = timeInWords(time, tag);
  return html`<time datetime="${time.toISOString()}" title="${inUtc}" data-long>${inUtc}</time>`;
}

/** What every form of an owner's page sends with it. */
export function csrfInput(csrf: string): Html {
  return html`<input type="hidden" name="${CSRF_INPUT}" value="${csrf}">`;
}

/** A form that is one button. `name` is what assistive technology calls it, where its label is short. */
export function buttonForm({
  action,
  csrf,
  label,
  name,
  describedBy,
  quiet = false,
  danger = false,
  more,
}: ButtonForm): Html {
  const button = attributes({
    class: (danger && 'danger') || (quiet && 'quiet'),
    'aria-label': name,
    'aria-describedby': describedBy,
  });
  return html`<form class="inline" method="post" action="${action}">${csrfInput(csrf)}${more}<button${button}>${label}</button></form>`;
}

/**
 * A table that scrolls where it is wider than the page. `name` says what it shows. With `cards` each row is a card
 * where the page is narrow.
 */
export function dataTable(
  name: string,
  columns: readonly Content[],
  rows: readonly Html[],
  cards = false,
): Html {
  return html`<div class="${cards ? 'scroll cards' : 'scroll'}" role="region" aria-label="${name}" tabindex="0"><table>
<thead><tr>${columns.map((column) => html`<th scope="col" dir="auto">${column}</th>`)}</tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

type ButtonForm = {
  action: string;
  csrf: string;
  label: string;
  name?: string;
  /** The id of what tells it from others of the same name. */
  describedBy?: string;
  quiet?: boolean;
  /** Whether it takes away what can't be brought back. */
  danger?: boolean;
  more?: Content;
};

type SignedIn = { address: string; csrf: string };

/** What an action has done, by the name of its words. */
export type Done = Extract<keyof Language['owner'], `done${string}`>;

/** What a page for owners shows. */
export type OwnerContent = {
  title: string;
  body: Html;
  /** 200 if absent. */
  status?: number;
  /** Whether there is something to copy, or a time to show in the reader's zone. */
  script?: boolean;
  /** Whether it shows pictures that were uploaded. */
  images?: boolean;
  /** What styles of a page within it have to be allowed. */
  nonce?: string;
  /** Whether the owner has just signed out. */
  signedOut?: boolean;
};

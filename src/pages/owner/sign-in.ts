import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { readableAddress } from '../../domain/addresses/readable-address.ts';
import { type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { lastOf } from '../../http/multipart.ts';
import { fill } from '../../text/words.ts';
import { fillHtml, rootOf } from '../layout.ts';
import { answerAt, type HandleOpen, type HandleOwner, type OwnerExchange, redirect } from './handler.ts';
import { buttonForm, newLinkForm, type OwnerContent, signInPage, timeElement } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Emails a link to the address that was entered, if it owns a form; the answer is the same if it does not. */
export const askForLink: HandleOpen = async ({ request, call, language, inputs, cookies }) => {
  const email = lastOf(inputs, 'email').trim();
  // The link leads to the public address.
  const browser = cookies.isAtPublicAddress ? cookies.browser() : '';
  const asked = await call(rpcs.requestSignIn, {
    email,
    deviceToken: cookies.deviceToken(),
    browser,
  }).catch(undefinedFor('invalid'));
  if (asked === undefined) return { ...signInPage(request, language, email, true), status: 422 };
  const { sentTitle: title, sentText, writtenText, sentNote } = language.owner;
  const text = fill(asked.mailWritten ? writtenText : sentText, { email });
  return message(title, text, html`<p class="note">${sentNote}</p>`);
};

/** Shows whom an emailed link signs in; its button posts to the same address. Email scanners open links, too. */
export const showSignInLink: HandleOpen = async (exchange) => {
  const { request, call, language, cookies } = exchange;
  const { linkTitle: title, linkText, stay, elsewhereText } = language.owner;
  const asked = { token: String(request.params.token), browser: cookies.browser() };
  const link = await call(rpcs.getSignInLink, asked).catch(unusable);
  if (link === undefined) return unusableLink(exchange);
  const { address } = link;
  if (link.elsewhere) return message(title, elsewhereText, newLinkForm(request, language, address));
  const form = html`<form method="post"><label class="choice"><input type="checkbox" name="stay" value="yes"><span>${stay}</span></label>
<div class="actions"><button>${title}</button></div></form>`;
  return message(title, fill(linkText, { email: readableAddress(address) }), form);
};

/** Signs in by an emailed link, and goes on to the page that was asked for. */
export const followSignInLink: HandleOpen = async (exchange) => {
  const { request, response, call, inputs, cookies } = exchange;
  const opened = await call(rpcs.signIn, {
    token: String(request.params.token),
    browser: cookies.browser(),
    stay: inputs.has('stay'),
    formerSessionToken: cookies.session() ?? '',
  }).catch(unusable);
  if (opened === undefined) return unusableLink(exchange);
  cookies.signIn(opened);
  const page = cookies.takePage();
  return redirect(response, `${rootOf(request)}owner${page === '' ? '' : `/${page}`}`);
};

/** Ends another session of the owner. */
export const postSessionEnd: HandleOwner = async (exchange) => {
  await exchange.call(rpcs.endOwnerSession, { sessionId: lastOf(exchange.inputs, 'session') });
  return answerAt(exchange, `${rootOf(exchange.request)}owner`, 'doneSignedOut');
};

/** The sessions of the owner, which can be ended each but the one that is read in. */
export async function sessionsOf({ request, call, language, csrf }: OwnerExchange): Promise<Html> {
  const { owner } = language;
  const { sessions } = await call(rpcs.listOwnerSessions, {});
  const rows = sessions.map(({ id, browser, createTime, lastUseTime, current }) => {
    const name = browser === '' ? owner.unknownBrowser : browser;
    const when = fillHtml(owner.signedInSince, {
      date: timeElement(createTime, language),
      used: timeElement(lastUseTime, language),
    });
    const end = buttonForm({
      action: `${rootOf(request)}owner/sessions/end`,
      csrf,
      label: owner.endSession,
      describedBy: id,
      quiet: true,
      more: html`<input type="hidden" name="session" value="${id}">`,
    });
    return html`<li>${name} <span class="note" id="${id}">${when}</span> ${current ? html`<span class="tag">${owner.thisBrowser}</span>` : end}</li>
`;
  });
  return html`<h2>${owner.sessions}</h2>
<ul class="files">${rows}</ul>`;
}

/** Ends the session of this browser, or all of the owner's. */
export const signOut: HandleOwner = async ({ request, response, call, language, inputs, cookies }) => {
  await call(rpcs.signOut, { everywhere: inputs.has('everywhere') });
  cookies.setSession();
  // So that nobody goes back to the owner's pages. Drafts of forms, which are storage of the same origin, stay.
  response.setHeader('clear-site-data', '"cache"');
  const { signedOutTitle: title, signInAgain } = language.owner;
  const body = html`<h1>${title}</h1>
<p class="actions"><a class="button" href="${rootOf(request)}owner">${signInAgain}</a></p>`;
  return { title, body, signedOut: true };
};

function unusableLink({ request, language }: Parameters<HandleOpen>[0]): OwnerContent {
  const { linkInvalidTitle: title, linkWrongText } = language.words;
  const more = html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${language.owner.askAgain}</a></p>`;
  return { ...message(title, linkWrongText, more), status: 401 };
}

function message(title: string, text: string, more: Html): OwnerContent {
  const body = html`<h1>${title}</h1>
<p class="lead">${text}</p>
${more}`;
  return { title, body };
}

const unusable = undefinedFor('invalid_token', 'token_used');

import { timestampDate } from '@bufbuild/protobuf/wkt';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { lastOf } from '../../http/multipart.ts';
import { present } from '../../http/shape.ts';
import { timeInWords } from '../../text/quantities.ts';
import { fill } from '../../text/words.ts';
import { rootOf } from '../layout.ts';
import {
  type HandleOpen,
  type HandleOwner,
  type OwnerExchange,
  type OwnerPageOptions,
  redirect,
} from './handler.ts';
import { buttonForm, newLinkForm, type OwnerContent, signInPage } from './layout.ts';
import { browserOf, deviceTokenOf, sessionOf, setDeviceToken, setSession, takePage } from './session.ts';

const { method: rpcs } = OwnersService;

/** Mails a link to the address that was entered, if it owns a form; the answer is the same if it does not. */
export function askForLink(options: OwnerPageOptions): HandleOpen {
  return async ({ request, response, call, language, inputs }) => {
    const email = lastOf(inputs ?? new Map(), 'email').trim();
    // The link leads to the public address, where a browser that called another has other cookies.
    const isThere = request.headers.host === new URL(options.baseUrl).host;
    const browser = isThere ? browserOf(request, response, options) : '';
    const deviceToken = deviceTokenOf(request, options);
    const asked = await call(rpcs.requestSignIn, { email, deviceToken, browser }).catch(
      undefinedFor('invalid'),
    );
    if (asked === undefined) return { ...signInPage(request, language, email), status: 422 };
    const { sentTitle: title, sentText, writtenText, sentNote } = language.owner;
    const text = fill(asked.mailWritten ? writtenText : sentText, { email });
    return message(title, text, html`<p class="note">${sentNote}</p>`);
  };
}

/** Shows whom a mailed link signs in; its button posts to the same address. Mail scanners open links, too. */
export function showSignInLink(options: OwnerPageOptions): HandleOpen {
  return async (exchange) => {
    const { request, response, call, language } = exchange;
    const { linkTitle: title, linkText, stay, elsewhereText } = language.owner;
    const browser = browserOf(request, response, options);
    const link = await call(rpcs.getSignInLink, { token: tokenIn(request.params), browser }).catch(unusable);
    if (link === undefined) return unusableLink(exchange);
    const { address } = link;
    if (link.elsewhere) return message(title, elsewhereText, newLinkForm(request, language, address));
    const form = html`<form method="post"><label class="choice"><input type="checkbox" name="stay" value="yes"><span>${stay}</span></label>
<div class="actions"><button>${title}</button></div></form>`;
    return message(title, fill(linkText, { email: address }), form);
  };
}

/** Signs in by a mailed link, and goes on to the page that was asked for. */
export function followSignInLink(options: OwnerPageOptions): HandleOpen {
  return async (exchange) => {
    const { request, response, call, inputs } = exchange;
    const opened = await call(rpcs.signIn, {
      token: tokenIn(request.params),
      browser: browserOf(request, response, options),
      stay: inputs?.has('stay') === true,
      formerSessionToken: sessionOf(request, options) ?? '',
    }).catch(unusable);
    if (opened === undefined) return unusableLink(exchange);
    const { sessionToken: token, expireTime, deviceToken } = opened;
    setSession(request, response, options, { token, expires: timestampDate(present(expireTime)) });
    setDeviceToken(request, response, options, deviceToken);
    const page = takePage(request, response, options);
    return redirect(response, `${rootOf(request)}owner${page === '' ? '' : `/${page}`}`);
  };
}

/** Ends another session of the owner. */
export const endSession: HandleOwner = async ({ request, response, call, inputs }) => {
  await call(rpcs.endOwnerSession, { sessionId: lastOf(inputs, 'session') });
  return redirect(response, `${rootOf(request)}owner`);
};

/** The sessions of the owner, each of which can be ended but the one that is read in. */
export async function sessionsOf({ request, call, language, csrf }: OwnerExchange): Promise<Html> {
  const { owner, tag } = language;
  const { sessions } = await call(rpcs.listOwnerSessions, {});
  const rows = sessions.map(({ id, browser, createTime, lastUseTime, current }) => {
    const name = browser === '' ? owner.unknownBrowser : browser;
    const when = fill(owner.signedInSince, {
      date: timeInWords(timestampDate(present(createTime)), tag),
      used: timeInWords(timestampDate(present(lastUseTime)), tag),
    });
    const end = buttonForm({
      action: `${rootOf(request)}owner/sessions/end`,
      csrf,
      label: owner.endSession,
      name: `${owner.endSession}: ${name}, ${when}`,
      quiet: true,
      more: html`<input type="hidden" name="session" value="${id}">`,
    });
    return html`<li>${name} <span class="note">${when}</span> ${current ? html`<span class="tag">${owner.thisBrowser}</span>` : end}</li>
`;
  });
  return html`<h2>${owner.sessions}</h2>
<ul class="files">${rows}</ul>`;
}

/** Ends the session of this browser, or all of the owner's. */
export function signOut(options: OwnerPageOptions): HandleOwner {
  return async ({ request, response, call, language, inputs }) => {
    await call(rpcs.signOut, { everywhere: inputs.has('everywhere') });
    setSession(request, response, options);
    // What browsers keep to go back to; what people have typed into forms, by the same origin, stays.
    response.setHeader('clear-site-data', '"cache"');
    const { signedOutTitle: title, signInAgain } = language.owner;
    const body = html`<h1>${title}</h1>
<p class="actions"><a class="button" href="${rootOf(request)}owner">${signInAgain}</a></p>`;
    return { title, body, signedOut: true };
  };
}

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

function tokenIn({ token }: Record<string, unknown>): string {
  return typeof token === 'string' ? token : '';
}

import { timestampDate } from '@bufbuild/protobuf/wkt';
import { OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { httpErrorOf } from '../../http/errors.ts';
import { sendPage } from '../../http/reply.ts';
import { present } from '../../http/values.ts';
import { type Html, html } from '../../text/html.ts';
import { fill } from '../../text/words/language.ts';
import { rootOf } from '../layout.ts';
import type { HandleOpen, HandleOwner, OwnerPageOptions } from './handler.ts';
import { renderOwnerPage } from './layout.ts';
import { deviceTokenOf, setDeviceToken, setSession, takePage } from './session.ts';
import { renderSignIn } from './sign-in-page.ts';

const { method: rpcs } = OwnersService;

/** Mails a link to the address that was entered, if it owns a form; the answer is the same if it does not. */
export function askForLink(options: OwnerPageOptions): HandleOpen {
  return async ({ request, response, call, language, inputs }) => {
    const email = (inputs?.get('email')?.at(-1) ?? '').trim();
    try {
      const asked = { email, deviceToken: deviceTokenOf(request, options) };
      const { mailWritten } = await call(rpcs.requestSignIn, asked);
      const { sentTitle: title, sentText, writtenText, sentNote } = language.owner;
      const note = html`<p class="note">${sentNote}</p>`;
      const body = message(title, fill(mailWritten ? writtenText : sentText, { email }), note);
      await sendPage(request, response, 200, renderOwnerPage({ request, language, title, body }));
    } catch (error) {
      if (httpErrorOf(error).reason !== 'invalid') throw error;
      await sendPage(request, response, 422, renderSignIn(request, language, email));
    }
  };
}

/** Shows whom a mailed link signs in; its button posts to the same address. Mail scanners open links, too. */
export const showSignInLink: HandleOpen = async (exchange) => {
  const { request, response, call, language } = exchange;
  const { linkTitle: title, linkText, linkButton } = language.owner;
  const link = await call(rpcs.getSignInLink, { token: tokenIn(request.params) }).catch(unusable);
  if (link === undefined) return sendUnusable(exchange);
  const form = html`<form method="post"><div class="actions"><button>${linkButton}</button></div></form>`;
  const body = message(title, fill(linkText, { email: link.address }), form);
  await sendPage(request, response, 200, renderOwnerPage({ request, language, title, body }));
};

/** Signs in by a mailed link, and goes on to the page that was asked for. */
export function followSignInLink(options: OwnerPageOptions): HandleOpen {
  return async (exchange) => {
    const { request, response, call } = exchange;
    const opened = await call(rpcs.signIn, { token: tokenIn(request.params) }).catch(unusable);
    if (opened === undefined) return sendUnusable(exchange);
    const { sessionToken: token, expireTime, deviceToken } = opened;
    setSession(request, response, options, { token, expires: timestampDate(present(expireTime)) });
    setDeviceToken(request, response, options, deviceToken);
    const page = takePage(request, response, options);
    response.redirect(303, `${rootOf(request)}owner${page === '' ? '' : `/${page}`}`);
  };
}

/** Ends the session of this browser, or all of the owner's. */
export function signOut(options: OwnerPageOptions): HandleOwner {
  return async ({ request, response, call, language, inputs }) => {
    await call(rpcs.signOut, { everywhere: inputs.has('everywhere') });
    setSession(request, response, options);
    const { signedOutTitle: title, signInAgain } = language.owner;
    const body = html`<h1>${title}</h1>
<p class="actions"><a class="button" href="${rootOf(request)}owner">${signInAgain}</a></p>`;
    await sendPage(request, response, 200, renderOwnerPage({ request, language, title, body }));
  };
}

const sendUnusable: HandleOpen = async ({ request, response, language }) => {
  const { linkWrongTitle: title, linkWrongText, askAgain } = language.owner;
  const more = html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${askAgain}</a></p>`;
  const body = message(title, linkWrongText, more);
  await sendPage(request, response, 401, renderOwnerPage({ request, language, title, body }));
};

function message(title: string, text: string, more: Html | false): Html {
  return html`<h1>${title}</h1>
<p class="lead">${text}</p>
${more}`;
}

/** Undefined where a link is refused; other failures are thrown. */
function unusable(error: unknown): undefined {
  const { reason } = httpErrorOf(error);
  if (reason !== 'invalid_token' && reason !== 'token_used') throw error;
  return undefined;
}

function tokenIn({ token }: Record<string, unknown>): string {
  return typeof token === 'string' ? token : '';
}

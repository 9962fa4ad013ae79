import { timestampDate } from '@bufbuild/protobuf/wkt';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import { restErrorOf } from '../../http/errors.ts';
import { present } from '../../http/shape.ts';
import { fill } from '../../text/words.ts';
import { rootOf } from '../layout.ts';
import { type HandleOpen, type HandleOwner, type OwnerPageOptions, redirect } from './handler.ts';
import { type OwnerContent, signInPage } from './layout.ts';
import { deviceTokenOf, setDeviceToken, setSession, takePage } from './session.ts';

const { method: rpcs } = OwnersService;

/** Mails a link to the address that was entered, if it owns a form; the answer is the same if it does not. */
export function askForLink(options: OwnerPageOptions): HandleOpen {
  return async ({ request, call, language, inputs }) => {
    const email = (inputs?.get('email')?.at(-1) ?? '').trim();
    try {
      const asked = { email, deviceToken: deviceTokenOf(request, options) };
      const { mailWritten } = await call(rpcs.requestSignIn, asked);
      const { sentTitle: title, sentText, writtenText, sentNote } = language.owner;
      const note = html`<p class="note">${sentNote}</p>`;
      return message(title, fill(mailWritten ? writtenText : sentText, { email }), note);
    } catch (error) {
      if (restErrorOf(error).reason !== 'invalid') throw error;
      return { ...signInPage(request, language, email), status: 422 };
    }
  };
}

/** Shows whom a mailed link signs in; its button posts to the same address. Mail scanners open links, too. */
export const showSignInLink: HandleOpen = async (exchange) => {
  const { request, call, language } = exchange;
  const { linkTitle: title, linkText } = language.owner;
  const link = await call(rpcs.getSignInLink, { token: tokenIn(request.params) }).catch(unusable);
  if (link === undefined) return unusableLink(exchange);
  const form = html`<form method="post"><div class="actions"><button>${title}</button></div></form>`;
  return message(title, fill(linkText, { email: link.address }), form);
};

/** Signs in by a mailed link, and goes on to the page that was asked for. */
export function followSignInLink(options: OwnerPageOptions): HandleOpen {
  return async (exchange) => {
    const { request, response, call } = exchange;
    const opened = await call(rpcs.signIn, { token: tokenIn(request.params) }).catch(unusable);
    if (opened === undefined) return unusableLink(exchange);
    const { sessionToken: token, expireTime, deviceToken } = opened;
    setSession(request, response, options, { token, expires: timestampDate(present(expireTime)) });
    setDeviceToken(request, response, options, deviceToken);
    const page = takePage(request, response, options);
    return redirect(response, `${rootOf(request)}owner${page === '' ? '' : `/${page}`}`);
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

/** Undefined where a link is refused; other failures are thrown. */
function unusable(error: unknown): undefined {
  const { reason } = restErrorOf(error);
  if (reason !== 'invalid_token' && reason !== 'token_used') throw error;
  return undefined;
}

function tokenIn({ token }: Record<string, unknown>): string {
  return typeof token === 'string' ? token : '';
}

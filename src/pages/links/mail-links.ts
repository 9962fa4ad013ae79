import {
  type FollowMailLinkResponse,
  type GetMailLinkResponse,
  MailLinkPurpose,
  MailService,
} from '../../../gen/forms/v1/mail_pb.js';
import { HttpError } from '../../http/errors.ts';
import { noFiles, readForm } from '../../http/multipart.ts';
import { type Page, prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import type { Words } from '../../text/words/en.ts';
import { fill } from '../../text/words/language.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { languageOf, renderMessage } from '../messages.ts';
import { renderStarted, renderStop, renderStopped, scopeIn } from './stop-link.ts';

const { method: rpcs } = MailService;

/** Shows what a mailed link stands for; its button posts to the same address. */
export async function showMailLink({ call, request, response }: PageExchange): Promise<void> {
  const link = await call(rpcs.getMailLink, { token: tokenOf(request) });
  await sendPage(request, response, 200, renderLink(link, request));
}

/** Does what a mailed link stands for. A mail program's one-click unsubscription (RFC 8058) is the same post. */
export async function followMailLink({ call, request, response }: PageExchange): Promise<void> {
  const token = tokenOf(request);
  const inputs = await readForm(request, noFiles);
  const isOneClick = inputs.get('List-Unsubscribe')?.at(-1) === 'One-Click';
  if (isOneClick) {
    // One click stops mail and nothing else, whichever link a program finds.
    const { purpose } = await call(rpcs.getMailLink, { token });
    if (purpose !== MailLinkPurpose.STOP) throw new HttpError('bad_request', 'The link does not stop mail');
  }
  const done =
    inputs.has('start') && !isOneClick
      ? renderStarted(await call(rpcs.startMail, { token }), request)
      : renderDone(await call(rpcs.followMailLink, { token, stopScope: scopeIn(inputs) }), request);
  if (prefersJson(request)) return sendJson(response, 200, { ok: true });
  await sendPage(request, response, 200, done);
}

function renderLink(link: Link, request: PageExchange['request']): Page {
  if (link.purpose === MailLinkPurpose.STOP) return renderStop(link, request);
  const language = languageOf(request);
  const { title, text, button } = wordsFor(link.purpose, language.words);
  return renderMessage({
    request,
    language,
    title,
    text: inserted(text, link),
    more: html`<form method="post"><div class="actions"><button>${button}</button></div></form>`,
  });
}

function renderDone(link: Link, request: PageExchange['request']): Page {
  if (link.purpose === MailLinkPurpose.STOP) return renderStopped(link, request);
  const language = languageOf(request);
  const { words } = language;
  const isOwner = link.purpose !== MailLinkPurpose.CONFIRM_RECIPIENT;
  return renderMessage({
    request,
    language,
    icon: 'done',
    title: words.doneTitle,
    text: inserted(wordsFor(link.purpose, words).done, link),
    more:
      isOwner &&
      html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${words.signIn}</a></p>`,
  });
}

function inserted(text: string, { address, formName }: Link): string {
  return fill(text, { email: address, form: withoutLinks(formName) });
}

function wordsFor(purpose: Exclude<MailLinkPurpose, MailLinkPurpose.STOP>, words: Words): LinkWords {
  switch (purpose) {
    case MailLinkPurpose.CONFIRM_OWNER:
      return {
        title: words.ownerTitle,
        text: words.ownerText,
        button: words.ownerButton,
        done: words.ownerDone,
      };
    case MailLinkPurpose.CHANGE_OWNER:
      return {
        title: words.takeOverTitle,
        text: words.takeOverText,
        button: words.takeOverButton,
        done: words.takeOverDone,
      };
    case MailLinkPurpose.CONFIRM_RECIPIENT:
      return {
        title: words.recipientTitle,
        text: words.recipientText,
        button: words.recipientButton,
        done: words.recipientDone,
      };
    case MailLinkPurpose.UNSPECIFIED:
      throw new Error('A mailed link without a purpose');
    default:
      return purpose satisfies never;
  }
}

function tokenOf(request: PageExchange['request']): string {
  return String(request.params.token);
}

type Link = GetMailLinkResponse | FollowMailLinkResponse;

type LinkWords = { title: string; text: string; button: string; done: string };

import { createClient, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { MailLinkPurpose, MailService, StopScope } from '../../../gen/forms/v1/mail_pb.js';
import { html } from '../../text/html.ts';
import type { Words } from '../../text/words/en.ts';
import { fill } from '../../text/words/language.ts';
import { readPost } from '../body.ts';
import { Refused } from '../failure.ts';
import type { Page } from '../layout.ts';
import { languageOf, renderMessage } from '../message-pages.ts';
import { callOptions, prefersJson, sendJson, sendPage } from '../reply.ts';

/**
 * The pages behind the links in mails: `show` tells what a link stands for, and its button posts to
 * `follow`, which does it. A mail program's one-click unsubscription (RFC 8058) is the same post.
 */
export function createMailPages(transport: Transport): MailPages {
  const mail = createClient(MailService, transport);
  return {
    async show(request, response) {
      const link = await mail.getMailLink({ token: tokenOf(request) }, callOptions(request, response));
      await sendPage(request, response, 200, renderLink(link, request));
    },

    async follow(request, response) {
      const inputs = await readPost(request, async () => {});
      const oneClick = inputs.get('List-Unsubscribe')?.at(-1) === 'One-Click';
      if (oneClick) await expectStop(request, response);
      const stopScope = inputs.get('stop')?.at(-1) === 'all' ? StopScope.ALL : StopScope.FORM;
      const done = await mail.followMailLink(
        { token: tokenOf(request), stopScope },
        callOptions(request, response),
      );
      if (prefersJson(request)) return sendJson(response, 200, { ok: true });
      await sendPage(request, response, 200, renderDone(done, request));
    },
  };

  /** One click stops mail and nothing else, whichever link a program finds. */
  async function expectStop(request: Request, response: Response): Promise<void> {
    const { purpose } = await mail.getMailLink({ token: tokenOf(request) }, callOptions(request, response));
    if (purpose !== MailLinkPurpose.STOP)
      throw new Refused(Reason.BAD_REQUEST, 'The link does not stop mail');
  }
}

function renderLink(link: Link, request: Request): Page {
  const language = languageOf(request);
  const { words } = language;
  const { title, text, button } = wordsFor(link.purpose, words);
  const stop = link.purpose === MailLinkPurpose.STOP;
  return renderMessage({
    request,
    language,
    title,
    text: inserted(text, link),
    more: html`<form method="post">${
      stop &&
      html`<fieldset class="field"><legend class="sr">${title}</legend><div class="choices">
<label class="choice"><input type="radio" name="stop" value="form" checked><span>${inserted(words.stopForm, link)}</span></label>
<label class="choice"><input type="radio" name="stop" value="all"><span>${words.stopAll}</span></label>
</div></fieldset>`
    }
<div class="actions"><button>${button}</button></div>
</form>`,
  });
}

function renderDone(link: Link, request: Request): Page {
  const language = languageOf(request);
  const text = inserted(wordsFor(link.purpose, language.words).done, link);
  return renderMessage({ request, language, title: language.words.doneTitle, text });
}

function inserted(text: string, { address, formName }: Link): string {
  return fill(text, { email: address, form: formName });
}

function wordsFor(purpose: MailLinkPurpose, words: Words): LinkWords {
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
    case MailLinkPurpose.STOP:
      return { title: words.stopTitle, text: words.stopText, button: words.stopButton, done: words.stopDone };
    case MailLinkPurpose.UNSPECIFIED:
      throw new Error('A mailed link without a purpose');
    default:
      return purpose satisfies never;
  }
}

function tokenOf(request: Request): string {
  return String(request.params.token);
}

export type MailPages = {
  show: (request: Request, response: Response) => Promise<void>;
  follow: (request: Request, response: Response) => Promise<void>;
};

type Link = { purpose: MailLinkPurpose; address: string; formName: string };

type LinkWords = { title: string; text: string; button: string; done: string };

import { MailLinkPurpose, MailService, StopScope } from '../../../gen/forms/v1/mail_pb.js';
import { HttpError } from '../../http/errors.ts';
import { noFiles, readForm } from '../../http/multipart.ts';
import { type Page, prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { attributes, html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import type { Words } from '../../text/words/en.ts';
import { fill } from '../../text/words/language.ts';
import type { PageExchange } from '../handler.ts';
import { languageOf, renderMessage } from '../messages.ts';

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
  if (inputs.get('List-Unsubscribe')?.at(-1) === 'One-Click') {
    // One click stops mail and nothing else, whichever link a program finds.
    const { purpose } = await call(rpcs.getMailLink, { token });
    if (purpose !== MailLinkPurpose.STOP) throw new HttpError('bad_request', 'The link does not stop mail');
  }
  const stopScope = inputs.get('stop')?.at(-1) === 'all' ? StopScope.ALL : StopScope.FORM;
  const done = await call(rpcs.followMailLink, { token, stopScope });
  if (prefersJson(request)) return sendJson(response, 200, { ok: true });
  await sendPage(request, response, 200, renderDone(done, request));
}

function renderLink(link: Link, request: PageExchange['request']): Page {
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
${link.formName !== '' && html`<label class="choice"><input type="radio" name="stop" value="form" checked><span>${inserted(words.stopForm, link)}</span></label>`}
<label class="choice"><input type="radio" name="stop" value="all"${attributes({ checked: link.formName === '' })}><span>${words.stopAll}</span></label>
</div></fieldset>`
    }
<div class="actions"><button>${button}</button></div>
</form>`,
  });
}

function renderDone(link: Link, request: PageExchange['request']): Page {
  const language = languageOf(request);
  const text = inserted(wordsFor(link.purpose, language.words).done, link);
  return renderMessage({ request, language, icon: 'done', title: language.words.doneTitle, text });
}

function inserted(text: string, { address, formName }: Link): string {
  return fill(text, { email: address, form: withoutLinks(formName) });
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

function tokenOf(request: PageExchange['request']): string {
  return String(request.params.token);
}

type Link = { purpose: MailLinkPurpose; address: string; formName: string };

type LinkWords = { title: string; text: string; button: string; done: string };

import type { Request } from 'express';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import {
  type FollowMailLinkResponse,
  type GetMailLinkResponse,
  MailLinkPurpose,
  MailService,
  StopScope,
} from '../../../gen/headlessforms/v1/mail_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { type FormInputs, noFiles, readForm } from '../../http/multipart.ts';
import { type Page, prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import { fill, type Words } from '../../text/words.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
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
  const isOneClick = inputs.get('List-Unsubscribe')?.at(-1) === 'One-Click';
  if (isOneClick) {
    // One click stops mail and nothing else, whichever link a program finds.
    const { purpose } = await call(rpcs.getMailLink, { token });
    if (purpose !== MailLinkPurpose.STOP) throw failed(Reason.BAD_REQUEST, 'The link does not stop mail');
  }
  const done =
    inputs.has('start') && !isOneClick
      ? renderStarted(await call(rpcs.startMail, { token }), request)
      : renderDone(await call(rpcs.followMailLink, followed(token, inputs)), request);
  if (prefersJson(request)) return sendJson(response, 200, { ok: true });
  await sendPage(request, response, 200, done);
}

function followed(token: string, inputs: FormInputs) {
  return { token, stopScope: scopeIn(inputs), keepRecipients: inputs.has('keep-recipients') };
}

function renderLink(link: GetMailLinkResponse, request: PageExchange['request']): Page {
  if (link.purpose === MailLinkPurpose.STOP) return renderStop(link, request);
  const language = languageOf(request);
  const { title, text, button } = wordsFor(link.purpose, language.words);
  return renderMessage({
    request,
    language,
    title,
    text: inserted(text, link),
    more: html`<form method="post">${keepRecipients(link, language.words)}<div class="actions"><button>${button}</button></div></form>`,
  });
}

/** Whoever takes a form over decides whether those whom the former owner added go on getting its answers. */
function keepRecipients({ recipients }: GetMailLinkResponse, words: Words): Html | false {
  if (recipients.length === 0) return false;
  const label = fill(words.keepRecipients, { emails: recipients.join(', ') });
  return html`<label class="choice"><input type="checkbox" name="keep-recipients" value="yes"><span>${label}</span></label>
`;
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

/** The page behind the link that stops mail: what can be stopped, and what is stopped already. */
function renderStop(link: StopLink, request: Request): Page {
  const language = languageOf(request);
  const { words } = language;
  const choices = choicesOf(link, words);
  const isStopped = link.stopped !== StopScope.UNSPECIFIED;
  return renderMessage({
    request,
    language,
    title: words.stopTitle,
    text: isStopped ? stoppedText(link, words) : fill(words.stopText, { email: link.address }),
    more: html`${isStopped && startForm(words)}
${choices.length > 0 && stopForm(choices, words)}`,
  });
}

/** The page after mail was stopped, which lets its reader take that back. */
function renderStopped(link: StopLink, request: Request): Page {
  const language = languageOf(request);
  const { words } = language;
  return renderMessage({
    request,
    language,
    icon: 'done',
    title: words.doneTitle,
    text: stoppedText(link, words),
    next: words.startNote,
    more: startForm(words),
  });
}

/** The page after mail was started again. */
function renderStarted({ address }: Pick<StopLink, 'address'>, request: Request): Page {
  const language = languageOf(request);
  const { words } = language;
  const text = fill(words.startDone, { email: address });
  return renderMessage({ request, language, icon: 'done', title: words.doneTitle, text });
}

/** How much a post of the page stops. */
function scopeIn(inputs: FormInputs): StopScope {
  return scopes.get(inputs.get('stop')?.at(-1) ?? '') ?? StopScope.FORM;
}

function startForm(words: Words): Html {
  return html`<form method="post"><div class="actions"><button name="start" value="yes">${words.startButton}</button></div></form>`;
}

function stopForm(choices: Choice[], words: Words): Html {
  const rows = choices.map(
    ({ value, label }, index) =>
      html`<label class="choice"><input type="radio" name="stop"${attributes({ value, checked: index === 0 })}><span>${label}</span></label>
`,
  );
  return html`<form method="post"><fieldset class="field"><legend class="sr">${words.stopTitle}</legend><div class="choices">
${rows}</div></fieldset>
<div class="actions"><button>${words.stopButton}</button></div>
</form>`;
}

/** What is not stopped yet, the least first. */
function choicesOf({ stopped, formName, aboutSignIn }: StopLink, words: Words): Choice[] {
  const ofForm = aboutSignIn ? words.stopSignIn : fill(words.stopForm, { form: withoutLinks(formName) });
  const choices = [
    ...(aboutSignIn || formName !== '' ? [{ value: 'form', scope: StopScope.FORM, label: ofForm }] : []),
    ...(aboutSignIn ? [] : [{ value: 'all', scope: StopScope.ALL, label: words.stopAll }]),
    { value: 'everything', scope: StopScope.EVERYTHING, label: words.stopEverything },
  ];
  return choices.filter(({ scope }) => scope > stopped);
}

function stoppedText({ stopped, address }: StopLink, words: Words): string {
  const texts = new Map([
    [StopScope.ALL, words.stoppedAll],
    [StopScope.EVERYTHING, words.stoppedEverything],
  ]);
  return fill(texts.get(stopped) ?? words.stopDone, { email: address });
}

/** By the value of the input. */
const scopes = new Map([
  ['form', StopScope.FORM],
  ['all', StopScope.ALL],
  ['everything', StopScope.EVERYTHING],
]);

type StopLink = Pick<GetMailLinkResponse, 'address' | 'formName' | 'stopped' | 'aboutSignIn'>;

type Choice = { value: string; label: string };

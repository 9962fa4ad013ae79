import type { IncomingMessage } from 'node:http';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import {
  type ActivateFormResponse,
  ConfirmationState,
  type FormShare,
  FormsService,
} from '../../gen/headlessforms/v1/forms_pb.js';
import { qrSvg } from '../domain/definition/share.ts';
import { failed } from '../domain/errors/failure.ts';
import { attributes, type Html, html } from '../domain/text/html.ts';
import { restErrorOf, undefinedFor } from '../http/errors.ts';
import { type HtmlPage, prefersJson, sendPage } from '../http/reply.ts';
import { present } from '../http/shape.ts';
import { withoutLinks } from '../text/untrusted.ts';
import { fill, type Language, type Words } from '../text/words.ts';
import type { PageExchange } from './handler.ts';
import { emailField, rootOf } from './layout.ts';
import { languageOf, renderMessage } from './messages.ts';

/**
 * Answers GET on an activation link with a form that asks for the owner's email address and posts to the same
 * path, a REST route. Opening the link changes nothing, since email scanners open links too. Once it was used, it leads
 * to the form and its responses.
 */
export async function showActivation({ call, request, response, hostedUrl }: PageExchange): Promise<void> {
  const { token } = request.query;
  if (typeof token !== 'string' || token === '') throw failed(Reason.BAD_REQUEST, 'The token is missing');
  const link = { formId: String(request.params.id), activationToken: token };
  try {
    const { formName } = await call(FormsService.method.getActivation, link);
    sendPage(response, 200, renderActivation(request, { formName }));
  } catch (error) {
    const { status, reason } = restErrorOf(error);
    if (status !== 401 || prefersJson(request)) throw error;
    if (reason !== 'token_used') return sendPage(response, status, renderWrongLink(request));
    const shown = await call(FormsService.method.getPublicForm, { formId: link.formId }).catch(
      undefinedFor('not_found', 'closed', 'archived'),
    );
    const formUrl = shown === undefined ? '' : `${hostedUrl}/f/${link.formId}`;
    sendPage(response, 200, renderActive(request, formUrl));
  }
}

/** The page of a form that is active, after its activation link was used. `formUrl` is empty if it has no page. */
function renderActive(request: IncomingMessage, formUrl: string): HtmlPage {
  const language = languageOf(request);
  const { activeTitle: title, activeText: text, shareOpen, seeResponses } = language.words;
  const more = html`<p class="actions">${formUrl !== '' && html`<a class="button" href="${formUrl}">${shareOpen}</a>`}
<a class="button quiet" href="${rootOf(request)}owner">${seeResponses}</a></p>`;
  return renderMessage({ request, language, icon: 'done', title, text, more });
}

/** The page of a link that has expired or is wrong. */
function renderWrongLink(request: IncomingMessage): HtmlPage {
  const language = languageOf(request);
  const { linkInvalidTitle: title, linkWrongText: text } = language.words;
  return renderMessage({ request, language, icon: 'problem', title, text });
}

/**
 * The page that asks for the address; `refused`, where an address came that is none: then the form's name is not known.
 */
export function renderActivation(request: IncomingMessage, { formName }: { formName?: string }): HtmlPage {
  const language = languageOf(request);
  const { words } = language;
  const refused = formName === undefined;
  return renderMessage({
    request,
    language,
    title: refused ? words.activateButton : fill(words.activateTitle, { form: withoutLinks(formName) }),
    text: words.activateText,
    more: html`<form method="post" novalidate>
${emailField(
  { id: 'email', label: words.emailLabel, problem: refused ? words.needEmail : undefined, words },
  { autocomplete: 'email', autofocus: refused },
)}
<div class="actions"><button>${words.activateButton}</button></div>
</form>`,
  });
}

/** The page after an activation by the owner with this address, which says how to share the form. */
export function renderActivated(
  activated: ActivateFormResponse,
  email: string,
  request: IncomingMessage,
): HtmlPage {
  const language = languageOf(request);
  const { words } = language;
  const { form, webhookSecret } = activated;
  const { name, share } = present(form);
  return renderMessage({
    request,
    language,
    icon: 'done',
    title: words.activatedTitle,
    text: fill(sentencesOf(activated, language).join(' '), { form: withoutLinks(name), email }),
    more: html`${
      webhookSecret !== '' &&
      html`<h2>${words.secretTitle}</h2>
<p>${words.secretText}</p>
<code>${webhookSecret}</code>`
    }
${share !== undefined && renderShare(share, withoutLinks(name), words)}
<p class="actions"><a class="button quiet" href="${rootOf(request)}owner">${words.seeResponses}</a></p>`,
    script: share !== undefined,
  });
}

function sentencesOf(
  { confirmation, answersWait }: ActivateFormResponse,
  { words, owner }: Language,
): string[] {
  const confirmed = confirmations[confirmation];
  return [
    words.activatedText,
    confirmed === undefined ? '' : words[confirmed],
    ...(answersWait ? [owner.sentNote, words.activatedWaitText] : []),
  ];
}

const confirmations: Record<ConfirmationState, keyof Words | undefined> = {
  [ConfirmationState.UNSPECIFIED]: undefined,
  [ConfirmationState.ON_ITS_WAY]: 'confirmationSent',
  [ConfirmationState.LATER]: 'confirmationLater',
  [ConfirmationState.STOPPED]: 'confirmationStopped',
  [ConfirmationState.WRITTEN]: 'confirmationWritten',
};

/**
 * How to reach a published form: its link with a QR code, a text to send, and code for a website, one at a time. Each
 * can be selected by one click; the script adds buttons that copy it.
 */
export function renderShare(share: FormShare, formName: string, words: Words): Html {
  const { pageUrl } = share;
  const text = fill(words.shareText, { form: formName, url: pageUrl });
  const codes = [
    [words.shareEmbed, share.embedSnippet],
    [words.shareHtml, share.htmlSnippet],
    [words.shareFetch, share.fetchSnippet],
    [words.shareEndpoint, share.submissionsUrl],
  ].filter((code): code is [string, string] => code[1] !== '');
  return html`<section class="share"><h2>${words.shareTitle}</h2>
${
  pageUrl !== '' &&
  html`<p><a class="button" href="${pageUrl}">${words.shareOpen}</a></p>
${renderLink(share, words)}
<h3 id="share-text">${words.shareMessage}</h3>
${renderSnippet(text, words, 'share-text')}`
}
<h3>${words.shareSite}</h3>
<div class="codes"><fieldset class="tabs"><legend class="sr">${words.shareSite}</legend>${codes.map(
    ([title], index) =>
      html`<label><input type="radio" name="code" id="code-${index}"${attributes({ checked: index === 0 })}><span>${title}</span></label>
`,
  )}</fieldset>
${codes.map(([, code]) => renderSnippet(code, words))}</div>
${share.embedSnippet !== '' && html`<p class="note">${words.embedNote}</p>`}</section>`;
}

/** The link of a form's page, to copy, and its QR code, to save. */
export function renderLink({ pageUrl }: FormShare, words: Words): Html {
  // Not by its address: scripts make a PNG of it, which browsers refuse where that is of another origin.
  const qr = `data:image/svg+xml;base64,${Buffer.from(qrSvg(pageUrl)).toString('base64')}`;
  return html`<h3 id="share-link">${words.sharePage}</h3>
${renderSnippet(pageUrl, words, 'share-link')}
<h3>${words.shareQr}</h3>
<img class="qr" alt="${words.shareQr}" width="180" height="180" src="${qr}">
<p class="actions"><a class="button quiet small" download="qr-code.svg" href="${qr}">${words.shareQrSvg}</a>
<button class="quiet small" type="button" data-png="qr-code.png" hidden>${words.shareQrPng}</button></p>`;
}

/** A text to copy: one click selects it, and the script adds a button. `name` is the id of its heading. */
export function renderSnippet(text: string, words: Words, name?: string): Html {
  const label = name === undefined ? { 'aria-label': text.slice(0, 40) } : { 'aria-labelledby': name };
  return html`<div class="snippet"><code tabindex="0" role="group" dir="auto"${attributes(label)}>${text}</code>
<button class="quiet" type="button" data-copy data-copied="${words.copied}" hidden>${words.copy}</button></div>
`;
}

import { FormStatus } from '../../../gen/forms/v1/forms_pb.js';
import { type OwnedForm, OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { sendPage } from '../../http/reply.ts';
import { type Html, html } from '../../text/html.ts';
import { fill } from '../../text/words/language.ts';
import type { OwnerLanguage } from '../../text/words/owner/index.ts';
import { rootOf } from '../layout.ts';
import { formHead, formIn, formUrl } from './form-view.ts';
import type { HandleOwner } from './handler.ts';
import { buttonForm, renderOwnerPage } from './layout.ts';
import { idIn } from './request.ts';

const { method: rpcs } = OwnersService;

/** Shows where a form is to be found, and lets its owner close it and stop its mails. */
export const showSettings: HandleOwner = async (exchange) => {
  const { request, response, call, language, csrf } = exchange;
  const form = await formIn(exchange);
  if (form === undefined) return;
  const { address } = await call(rpcs.getOwner, {});
  const view = { here: formUrl(request, form), csrf, language, address };
  const body = html`${formHead(form, 'settings', request, language)}
${addressesOf(form, language)}
${closingOf(form, view)}
${mailsOf(form, view)}`;
  const title = `${language.owner.settings}: ${form.name}`;
  const page = renderOwnerPage({ request, language, title, body, signedIn: { address, csrf } });
  await sendPage(request, response, 200, page);
};

/** Closes a form. */
export const closeForm: HandleOwner = async (exchange) => {
  await exchange.call(rpcs.closeOwnedForm, { formId: idIn(exchange.request) });
  backToSettings(exchange);
};

/** Opens a form that was closed. */
export const reopenForm: HandleOwner = async (exchange) => {
  await exchange.call(rpcs.reopenOwnedForm, { formId: idIn(exchange.request) });
  backToSettings(exchange);
};

/** Stops the mails about a form to its owner, or starts them again. */
export const setMails: HandleOwner = async (exchange) => {
  const { call, request, inputs } = exchange;
  await call(rpcs.setOwnedFormMails, { formId: idIn(request), stopped: inputs.has('stop') });
  backToSettings(exchange);
};

function backToSettings({ request, response }: Parameters<HandleOwner>[0]): void {
  response.redirect(303, `${rootOf(request)}owner/forms/${idIn(request)}/settings`);
}

function addressesOf({ pageUrl, submitUrl }: OwnedForm, { owner }: OwnerLanguage): Html {
  return html`<h2>${owner.share}</h2>
<dl><div><dt>${owner.pageUrl}</dt><dd>${pageUrl === '' ? owner.noPage : html`<a href="${pageUrl}">${pageUrl}</a>`}</dd></div>
<div><dt>${owner.submitUrl}</dt><dd>${submitUrl}</dd></div></dl>`;
}

function closingOf({ status, closeTime }: OwnedForm, { here, csrf, language: { owner } }: View): Html {
  const isClosed = closeTime !== undefined;
  const action = `${here}/${isClosed ? 'reopen' : 'close'}`;
  const button = buttonForm({
    action,
    csrf,
    label: isClosed ? owner.reopenButton : owner.closeButton,
    quiet: !isClosed,
  });
  return html`<h2>${owner.takesAnswers}</h2>
${
  status === FormStatus.ARCHIVED
    ? html`<p>${owner.archivedText}</p>`
    : html`<p>${isClosed ? owner.closedText : owner.openText}</p>
${button}`
}`;
}

function mailsOf(
  { mailsStopped, usesWebhook }: OwnedForm,
  { here, csrf, language: { owner }, address }: View,
): Html {
  if (usesWebhook)
    return html`<h2>${owner.mails}</h2>
<p>${owner.mailsByWebhook}</p>`;
  const more = mailsStopped ? false : html`<input type="hidden" name="stop" value="yes">`;
  const label = mailsStopped ? owner.startMails : owner.stopMails;
  return html`<h2>${owner.mails}</h2>
<p>${mailsStopped ? owner.mailsOff : fill(owner.mailsOn, { email: address })}</p>
${buttonForm({ action: `${here}/mails`, csrf, label, quiet: !mailsStopped, more })}`;
}

type View = { here: string; csrf: string; language: OwnerLanguage; address: string };

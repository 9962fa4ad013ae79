import { type OwnedForm, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { readableAddress } from '../../domain/addresses/readable-address.ts';
import { type Html, html } from '../../domain/text/html.ts';
import { restErrorOf } from '../../http/errors.ts';
import { lastOf } from '../../http/multipart.ts';
import type { OneOf } from '../../http/rpc-client.ts';
import { fill, type Language } from '../../text/words.ts';
import { emailField, inputField, rootOf } from '../layout.ts';
import { countOf, formIn, formUrl, openingOf, renderFormHead, withForm } from './forms.ts';
import { answerAt, type HandleOwner, idIn, type OwnerExchange } from './handler.ts';
import { banner, buttonForm, csrfInput, type Done, type OwnerContent } from './layout.ts';
import { keptIn } from './texts.ts';

const { method: rpcs } = OwnersService;

/** Shows where a form is to be found, whether it is closed, and who gets its emails, and lets its owner change that. */
export const showSettings: HandleOwner = (exchange) => settingsPage(exchange);

async function settingsPage(exchange: OwnerExchange, problem?: Problem): Promise<OwnerContent | undefined> {
  const { request, language, csrf } = exchange;
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const address = await exchange.addressOf();
  const done = exchange.cookies.takeDone();
  const view = { here: formUrl(request, form), csrf, language, address, problem, done };
  const body = html`${renderFormHead(form, 'settings', request, language)}
<h2>${language.owner.takesAnswers}</h2>
${banner(done, ['doneClosed', 'doneReopened'], language)}
${openingOf(form, language, { base: view.here, csrf })}
<h2>${language.owner.texts}</h2>
${banner(done, ['doneTexts'], language)}
${
  form.keptIn === ''
    ? html`<p>${language.owner.textsText}</p>
<p><a class="button quiet" href="${view.here}/texts">${language.owner.editTexts}</a></p>`
    : keptIn(form, language)
}
${mailsOf(form, view)}
${!form.usesWebhook && recipientsOf(form, view)}
${handOverOf(form, view)}
${form.keptIn === '' && html`<p class="actions"><a class="danger" href="${view.here}/delete">${language.owner.deleteForm}</a></p>`}`;
  const title = `${language.owner.settings}: ${form.name}`;
  return { title, body, status: problem === undefined ? 200 : 422 };
}

/** Asks whether to delete a form, by its name. */
export const askToDeleteForm = withForm((exchange, form) => deletePage(exchange, form));

/** Deletes a form with all that belongs to it, if its name was typed. */
export const postDeletion = withForm(async (exchange, form) => {
  const { request, call, inputs } = exchange;
  const name = lastOf(inputs, 'name');
  try {
    await call(rpcs.deleteOwnedForm, { formId: form.id, name });
  } catch (error) {
    if (restErrorOf(error).reason !== 'invalid') throw error;
    return deletePage(exchange, form, name);
  }
  return answerAt(exchange, `${rootOf(request)}owner`, 'doneFormDeleted');
});

/** With `wrong`, a name was typed that is not the form's. */
function deletePage(
  { request, language, csrf }: OwnerExchange,
  form: OwnedForm,
  wrong?: string,
): OwnerContent {
  const { owner, words } = language;
  const here = formUrl(request, form);
  const isWrong = wrong !== undefined;
  const title = fill(owner.deleteFormTitle, { form: form.name });
  const label = fill(owner.deleteFormName, { form: form.name });
  const problem = isWrong ? owner.wrongName : undefined;
  const name = { name: 'name', required: true, dir: 'auto', autocomplete: 'off', value: wrong };
  const body = html`<h1>${title}</h1>
<p class="lead">${countOf(form.acceptedCount, language)}. ${owner.deleteFormText}</p>
<form method="post" action="${here}/delete" novalidate>${csrfInput(csrf)}
${inputField({ id: 'name', label, problem, words }, { ...name, autofocus: isWrong })}
<div class="actions"><button class="danger">${owner.deleteForm}</button><a href="${here}/settings">${owner.keep}</a></div></form>`;
  return { title: isWrong ? fill(words.errorTitle, { title }) : title, body, status: isWrong ? 422 : 200 };
}

/** Closes a form. */
export const closeForm: HandleOwner = async (exchange) => {
  await exchange.call(rpcs.closeOwnedForm, { formId: idIn(exchange.request) });
  return backToSettings(exchange, 'doneClosed');
};

/** Opens a form that was closed. */
export const reopenForm: HandleOwner = async (exchange) => {
  const { request, inputs } = exchange;
  await exchange.call(rpcs.reopenOwnedForm, { formId: idIn(request) });
  if (inputs.has('from-list')) return answerAt(exchange, `${rootOf(request)}owner`, 'doneReopened');
  return backToSettings(exchange, 'doneReopened');
};

/** Stops the emails about a form to its owner, or starts them again. */
export const setMails: HandleOwner = async (exchange) => {
  const { call, request, inputs } = exchange;
  const stopped = inputs.has('stop');
  await call(rpcs.setOwnedFormMails, { formId: idIn(request), stopped });
  return backToSettings(exchange, stopped ? 'doneMailsStopped' : 'doneMailsStarted');
};

/** Adds a recipient, who is asked by email. */
export const postRecipient: HandleOwner = (exchange) =>
  ask(exchange, rpcs.addFormRecipient, { input: 'recipient', done: 'doneAdded' });

/** Removes a recipient. */
export const postRecipientRemoval: HandleOwner = (exchange) =>
  ask(exchange, rpcs.removeFormRecipient, { input: 'recipient', done: 'doneRemoved' });

/** Asks somebody to take the form over. */
export const offerForm: HandleOwner = (exchange) =>
  ask(exchange, rpcs.offerOwnedForm, { input: 'new-owner', done: 'doneOffered' });

/** Takes back that somebody was asked. */
export const postOfferWithdrawal: HandleOwner = async (exchange) => {
  await exchange.call(rpcs.withdrawOwnedFormOffer, { formId: idIn(exchange.request) });
  return backToSettings(exchange, 'doneWithdrawn');
};

/** Makes a call with the address that was entered; says so on the page if it is none. */
async function ask(
  exchange: OwnerExchange,
  method: OneOf<(typeof rpcs)['addFormRecipient' | 'removeFormRecipient' | 'offerOwnedForm']>,
  { input, done }: { input: Problem['input']; done: Done },
): Promise<OwnerContent | undefined> {
  const { request, call, inputs, language } = exchange;
  const email = lastOf(inputs, 'email').trim();
  try {
    await call(method, { formId: idIn(request), email });
  } catch (error) {
    const { reason } = restErrorOf(error);
    if (reason !== 'invalid' && reason !== 'conflict') throw error;
    const { wrongEmail, alreadyYours, notPossible } = language.owner;
    const isOwn = addressKey(email) === addressKey(await exchange.addressOf());
    const refused = isOwn ? alreadyYours : notPossible;
    return settingsPage(exchange, { input, email, text: reason === 'invalid' ? wrongEmail : refused });
  }
  return backToSettings(exchange, done);
}

function backToSettings(exchange: OwnerExchange, done: Done): undefined {
  const { request } = exchange;
  return answerAt(exchange, `${rootOf(request)}owner/forms/${idIn(request)}/settings`, done);
}

function mailsOf(
  { mailsStopped, usesWebhook }: OwnedForm,
  { here, csrf, language, address, done }: View,
): Html {
  const { owner } = language;
  if (usesWebhook)
    return html`<h2>${owner.mails}</h2>
<p>${owner.mailsByWebhook}</p>`;
  const more = mailsStopped ? false : html`<input type="hidden" name="stop" value="yes">`;
  const label = mailsStopped ? owner.startMails : owner.stopMails;
  return html`<h2>${owner.mails}</h2>
${banner(done, ['doneMailsStopped', 'doneMailsStarted'], language)}
<p>${mailsStopped ? owner.mailsOff : fill(owner.mailsOn, { email: readableAddress(address) })}</p>
${buttonForm({ action: `${here}/mails`, csrf, label, quiet: !mailsStopped, more })}`;
}

function recipientsOf({ recipients }: OwnedForm, view: View): Html {
  const { here, csrf, language } = view;
  const { owner } = language;
  const rows = recipients.map(({ address, confirmed }) => {
    const more = html`<input type="hidden" name="email" value="${address}">`;
    const name = fill(owner.remove, { email: readableAddress(address) });
    return html`<li>${readableAddress(address)} ${!confirmed && html`<span class="note">${owner.waits}</span>`}
${buttonForm({ action: `${here}/recipients/remove`, csrf, label: language.words.remove, name, quiet: true, more })}</li>
`;
  });
  return html`<h2>${owner.recipients}</h2>
${banner(view.done, ['doneAdded', 'doneRemoved'], language)}
<p>${owner.recipientsText}</p>
${rows.length > 0 && html`<ul class="files">${rows}</ul>`}
${emailForm(view, { action: `${here}/recipients`, input: 'recipient', label: owner.addRecipient, button: owner.addButton })}`;
}

function handOverOf({ offeredTo }: OwnedForm, view: View): Html {
  const { owner } = view.language;
  return html`<h2>${owner.handOver}</h2>
${banner(view.done, ['doneOffered', 'doneWithdrawn'], view.language)}
<p>${owner.handOverText}</p>
${
  offeredTo !== '' &&
  html`<p role="status">${fill(owner.offered, { email: readableAddress(offeredTo) })}</p>
${buttonForm({ action: `${view.here}/hand-over/withdraw`, csrf: view.csrf, label: owner.withdraw, quiet: true })}`
}
${emailForm(view, { action: `${view.here}/hand-over`, input: 'new-owner', label: owner.newOwner, button: owner.handOverButton })}`;
}

function emailForm({ csrf, language, problem }: View, { action, input, label, button }: EmailForm): Html {
  const wrong = problem?.input === input ? problem : undefined;
  const field = emailField(
    { id: input, label, problem: wrong?.text, words: language.words },
    { autocomplete: 'off', value: wrong?.email },
  );
  return html`<form class="line" method="post" action="${action}" novalidate>${csrfInput(csrf)}
${field}
<button class="quiet">${button}</button></form>`;
}

/** What is wrong with an address that was entered, and where. */
type Problem = { input: 'recipient' | 'new-owner'; email: string; text: string };

type EmailForm = { action: string; input: Problem['input']; label: string; button: string };

type View = {
  here: string;
  csrf: string;
  language: Language;
  address: string;
  problem: Problem | undefined;
  /** What was done just now. */
  done: string;
};

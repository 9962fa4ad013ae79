import type { Request } from 'express';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import {
  type FollowMailLinkResponse,
  type GetMailLinkResponse,
  MailLinkPurpose,
  MailService,
  StopScope,
} from '../../gen/headlessforms/v1/mail_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { readableAddress } from '../domain/addresses/readable-address.ts';
import { failed } from '../domain/errors/failure.ts';
import { attributes, type Html, html } from '../domain/text/html.ts';
import { restErrorOf } from '../http/errors.ts';
import { type FormInputs, lastOf, noFiles, readFormInputs } from '../http/multipart.ts';
import { type HtmlPage, prefersJson, sendFile, sendJson, sendPage } from '../http/reply.ts';
import { present } from '../http/shape.ts';
import { withoutLinks } from '../text/untrusted.ts';
import { fill, type Language, type Words } from '../text/words.ts';
import { setSecretCookie } from './cookies.ts';
import type { HandlePage, PageExchange, PageOptions } from './handler.ts';
import { rootOf } from './layout.ts';
import { languageOf, renderMessage } from './messages.ts';
import { isOwnPost, OwnerCookies } from './owner/session.ts';

const { method: rpcs } = MailService;

/** Shows what an emailed link stands for; its button posts to the same address. */
export async function showMailLink({ call, request, response }: PageExchange): Promise<void> {
  const link = await call(rpcs.getMailLink, { token: tokenOf(request) });
  const view = viewOf(request);
  const page = link.purpose === MailLinkPurpose.STOP ? renderStop(link, view) : renderLink(link, view);
  sendPage(response, 200, page);
}

/**
 * Does what an emailed link stands for. A link that makes or confirms an owner also signs in soon after it was emailed,
 * and leads to the form. A mail program's one-click unsubscription (RFC 8058) is the same post.
 */
export function followMailLink({ baseUrl }: Pick<PageOptions, 'baseUrl'>): HandlePage {
  return (exchange) => follow(exchange, new OwnerCookies(exchange.request, exchange.response, baseUrl));
}

async function follow(exchange: PageExchange, cookies: OwnerCookies): Promise<void> {
  const { call, request, response, hostedUrl } = exchange;
  const token = tokenOf(request);
  const inputs = await readFormInputs(request, noFiles);
  const view = viewOf(request);
  const isOneClick = lastOf(inputs, 'List-Unsubscribe') === 'One-Click';
  const { purpose, address } = await call(rpcs.getMailLink, { token });
  // One click stops emails and nothing else, whichever link a program finds.
  if (isOneClick && purpose !== MailLinkPurpose.STOP)
    throw failed(Reason.BAD_REQUEST, 'The link does not stop emails');
  if (purpose === MailLinkPurpose.CORRECT) {
    setSecretCookie(response, token, { hostedUrl, name: 'correction', isFramed: false });
    return response.redirect(303, `${rootOf(request)}f/${address}`);
  }
  if (inputs.has('start') && !isOneClick) {
    const started = renderStarted(await call(rpcs.startMail, { token }), view);
    return prefersJson(request) ? sendJson(response, 200, { ok: true }) : sendPage(response, 200, started);
  }
  const link = await call(rpcs.followMailLink, {
    ...followed(token, inputs),
    // A page of another site could sign a browser in as somebody else.
    signIn: isOwnPost(exchange),
    browser: cookies.browser(),
    formerSessionToken: cookies.session() ?? '',
  });
  if (isOfOwner(link)) cookies.rememberAddress(link.address);
  if (link.sessionToken !== '') {
    cookies.signIn(link);
    cookies.announce(link.purpose === MailLinkPurpose.CHANGE_OWNER ? 'doneTakenOver' : 'doneConfirmed');
    return response.redirect(303, `${rootOf(request)}owner/forms/${link.formId}#done`);
  }
  if (prefersJson(request)) return sendJson(response, 200, { ok: true });
  sendPage(response, 200, renderDone(link, view));
}

function isOfOwner({ purpose }: Pick<Link, 'purpose'>): boolean {
  return purpose === MailLinkPurpose.CONFIRM_OWNER || purpose === MailLinkPurpose.CHANGE_OWNER;
}

/** Sends the file behind a signed link, or says what to do if the link does not work any more. */
export async function sendLinkedFile({ receive, request, response }: PageExchange): Promise<void> {
  try {
    const chunks = receive(UploadsService.method.getLinkedUpload, { token: tokenOf(request) });
    await sendFile(response, chunks);
  } catch (error) {
    const { reason, status } = restErrorOf(error);
    // For other reasons the general page of errors will do.
    const isOfLink = reason === 'expired' || reason === 'invalid_token';
    if (!isOfLink || prefersJson(request) || response.headersSent) throw error;
    sendPage(response, status, renderUnusable(reason === 'expired', viewOf(request)));
  }
}

function renderUnusable(isExpired: boolean, view: View): HtmlPage {
  const { words } = view.language;
  return renderMessage({
    ...view,
    icon: isExpired ? 'clock' : 'problem',
    title: isExpired ? words.expiredTitle : words.linkInvalidTitle,
    text: isExpired ? words.fileExpiredText : words.fileInvalidText,
    more: signInButton(view),
  });
}

function followed(token: string, inputs: FormInputs) {
  const chosen = scopes.find(({ value }) => value === lastOf(inputs, 'stop'));
  const stopScope = chosen?.scope ?? StopScope.FORM;
  return { token, stopScope, keepRecipients: inputs.has('keep-recipients') };
}

function renderLink(link: GetMailLinkResponse, view: View): HtmlPage {
  const { words } = view.language;
  const about = subjectOf(link);
  const page = renderMessage({
    ...view,
    title: words[`${about}Title`],
    text: inserted(words[`${about}Text`], link),
    more: html`<form method="post">${keepRecipients(link, words)}<div class="actions"><button>${words[`${about}Button`]}</button></div></form>`,
  });
  // Without a referrer browsers send no origin with the post, which signing in needs.
  return { ...page, headers: { ...page.headers, 'referrer-policy': 'same-origin' } };
}

/** Anyone who takes a form over decides whether those whom the former owner added go on getting its answers. */
function keepRecipients({ recipients }: GetMailLinkResponse, words: Words): Html | false {
  if (recipients.length === 0) return false;
  const label = fill(words.keepRecipients, { emails: recipients.join(', ') });
  return html`<label class="choice"><input type="checkbox" name="keep-recipients" value="yes"><span>${label}</span></label>
`;
}

function renderDone(link: Link, view: View): HtmlPage {
  const { words } = view.language;
  const done = { ...view, icon: 'done', title: words.doneTitle } as const;
  if (link.purpose === MailLinkPurpose.STOP) {
    const [text, next] = [stoppedText(link, words), words.startNote];
    return renderMessage({ ...done, text, next, more: startForm(words) });
  }
  const about = subjectOf(link);
  // The page of a correction is opened in place of this one.
  const text = about === 'correct' ? '' : inserted(words[`${about}Done`], link);
  return renderMessage({ ...done, text, more: isOfOwner(link) && signInButton(view) });
}

function signInButton({ request, language }: View): Html {
  return html`<p class="actions"><a class="button" href="${rootOf(request)}owner">${language.words.signIn}</a></p>`;
}

function inserted(text: string, { address, formName }: Pick<StopLink, 'address' | 'formName'>): string {
  return fill(text, { email: readableAddress(address), form: withoutLinks(formName) });
}

/** What the words of a link's pages begin with: `ownerTitle`, `ownerText`, `ownerButton` and `ownerDone`. */
function subjectOf({ purpose }: Link): Subject {
  return present(subjects[purpose]);
}

const subjects: Record<MailLinkPurpose, Subject | undefined> = {
  [MailLinkPurpose.UNSPECIFIED]: undefined,
  [MailLinkPurpose.CONFIRM_OWNER]: 'owner',
  [MailLinkPurpose.CHANGE_OWNER]: 'takeOver',
  [MailLinkPurpose.CONFIRM_RECIPIENT]: 'recipient',
  // What can be stopped, and what is stopped already, has a page of its own.
  [MailLinkPurpose.STOP]: undefined,
  [MailLinkPurpose.CORRECT]: 'correct',
};

/** The page behind the link that stops emails: what can be stopped, and what is stopped already. */
function renderStop(link: StopLink, view: View): HtmlPage {
  const { words } = view.language;
  const choices = choicesOf(link, words);
  const isStopped = link.stopped !== StopScope.UNSPECIFIED;
  return renderMessage({
    ...view,
    title: words.stopTitle,
    text: isStopped ? stoppedText(link, words) : inserted(words.stopText, link),
    more: html`${isStopped && startForm(words)}
${choices.length > 0 && stopForm(choices, words)}`,
  });
}

/** The page after email was started again. */
function renderStarted(link: Pick<StopLink, 'address' | 'formName'>, view: View): HtmlPage {
  const { doneTitle: title, startDone } = view.language.words;
  return renderMessage({ ...view, icon: 'done', title, text: inserted(startDone, link) });
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

/** What is not stopped yet, the least first. A link of no form, and one about signing in, has fewer choices. */
function choicesOf({ stopped, formName, aboutSignIn }: StopLink, words: Words): Choice[] {
  const labels = {
    form: aboutSignIn ? words.stopSignIn : fill(words.stopForm, { form: withoutLinks(formName) }),
    all: words.stopAll,
    everything: words.stopEverything,
  };
  const isOffered = { form: aboutSignIn || formName !== '', all: !aboutSignIn, everything: true };
  return scopes
    .filter(({ value, scope }) => isOffered[value] && scope > stopped)
    .map(({ value }) => ({ value, label: labels[value] }));
}

function stoppedText(link: StopLink, words: Words): string {
  const { text } = scopes.find(({ scope }) => scope === link.stopped) ?? scopes[0];
  return inserted(words[text], link);
}

/** How much can be stopped, by the value of the input, and what is said when it was. */
const scopes = [
  { value: 'form', scope: StopScope.FORM, text: 'stopDone' },
  { value: 'all', scope: StopScope.ALL, text: 'stoppedAll' },
  { value: 'everything', scope: StopScope.EVERYTHING, text: 'stoppedEverything' },
] as const;

function viewOf(request: Request): View {
  return { request, language: languageOf(request) };
}

function tokenOf(request: Request): string {
  return String(request.params.token);
}

type View = { request: Request; language: Language };

type Link = GetMailLinkResponse | FollowMailLinkResponse;

type Subject = 'owner' | 'takeOver' | 'recipient' | 'correct';

type StopLink = Pick<GetMailLinkResponse, 'address' | 'formName' | 'stopped' | 'aboutSignIn'>;

type Choice = { value: string; label: string };

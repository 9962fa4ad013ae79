import type { Request } from 'express';
import { type GetMailLinkResponse, StopScope } from '../../../gen/forms/v1/mail_pb.js';
import type { FormInputs } from '../../http/multipart.ts';
import type { Page } from '../../http/reply.ts';
import { attributes, type Html, html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import type { Words } from '../../text/words/en.ts';
import { fill } from '../../text/words/language.ts';
import { languageOf, renderMessage } from '../messages.ts';

/** The page behind the link that stops mail: what can be stopped, and what is stopped already. */
export function renderStop(link: StopLink, request: Request): Page {
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
export function renderStopped(link: StopLink, request: Request): Page {
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
export function renderStarted({ address }: Pick<StopLink, 'address'>, request: Request): Page {
  const language = languageOf(request);
  const { words } = language;
  const text = fill(words.startDone, { email: address });
  return renderMessage({ request, language, icon: 'done', title: words.doneTitle, text });
}

/** How much a post of the page stops. */
export function scopeIn(inputs: FormInputs): StopScope {
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

import type { IncomingMessage } from 'node:http';
import { createClient, type Transport } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { FormsService } from '../../../gen/forms/v1/forms_pb.js';
import { html } from '../../text/html.ts';
import { fill } from '../../text/words/language.ts';
import { failureOf, Refused } from '../failure.ts';
import type { Page } from '../layout.ts';
import { languageOf, renderMessage } from '../message-pages.ts';
import { callOptions, prefersJson, sendPage } from '../reply.ts';

/**
 * Answers GET on an activation link: an e-mail box that posts to the same address, which is the
 * gateway's. Opening the link changes nothing, since mail scanners open links too.
 */
export function createActivationPage(transport: Transport) {
  const forms = createClient(FormsService, transport);
  return async (request: Request, response: Response): Promise<void> => {
    const { token } = request.query;
    if (typeof token !== 'string' || token === '')
      throw new Refused(Reason.BAD_REQUEST, 'The token is missing');
    const message = { formId: String(request.params.id), token };
    try {
      const { formName } = await forms.getActivation(message, callOptions(request, response));
      await sendPage(request, response, 200, renderActivation(formName, request));
    } catch (error) {
      const { status } = failureOf(error);
      if (status !== 401 || prefersJson(request)) throw error;
      await sendPage(request, response, status, renderUnusable(request));
    }
  };
}

/** Tells a person that their form is published. `webhookSecret` is empty unless one was made. */
export function renderActivated(activated: Activated, request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const { formName, email, webhookSecret } = activated;
  return renderMessage({
    request,
    language,
    title: words.activatedTitle,
    text: fill(words.activatedText, { form: formName, email }),
    more:
      webhookSecret !== '' &&
      html`<h2>${words.secretTitle}</h2>
<p>${words.secretText}</p>
<code>${webhookSecret}</code>`,
  });
}

function renderUnusable(request: IncomingMessage): Page {
  const language = languageOf(request);
  const { activationInvalidTitle: title, activationInvalidText: text } = language.words;
  return renderMessage({ request, language, title, text });
}

function renderActivation(formName: string, request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const title = fill(words.activateTitle, { form: formName });
  return renderMessage({
    request,
    language,
    title,
    text: words.activateText,
    more: html`<form method="post">
<div class="field"><label for="email">${words.activateLabel}</label>
<input class="control" id="email" name="email" type="email" autocomplete="email" required maxlength="254"></div>
<div class="actions"><button>${words.activateButton}</button></div>
</form>`,
  });
}

/** What the page that follows an activation tells. */
export type Activated = { formName: string; email: string; webhookSecret: string };

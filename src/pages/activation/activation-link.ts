import type { IncomingMessage } from 'node:http';
import { FormsService } from '../../../gen/forms/v1/forms_pb.js';
import { HttpError, httpErrorOf } from '../../http/errors.ts';
import { type Page, prefersJson, sendPage } from '../../http/reply.ts';
import { attributes, html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import { fill } from '../../text/words/language.ts';
import type { PageExchange } from '../handler.ts';
import { languageOf, renderMessage } from '../messages.ts';

/**
 * Answers GET on an activation link with a form that asks for the owner's e-mail address and posts to the same
 * path, a REST route. Opening the link changes nothing, since mail scanners open links too.
 */
export async function showActivation({ call, request, response }: PageExchange): Promise<void> {
  const { token } = request.query;
  if (typeof token !== 'string' || token === '') throw new HttpError('bad_request', 'The token is missing');
  const link = { formId: String(request.params.id), token };
  try {
    const { formName } = await call(FormsService.method.getActivation, link);
    await sendPage(request, response, 200, renderActivation(request, { formName }));
  } catch (error) {
    const { status } = httpErrorOf(error);
    if (status !== 401 || prefersJson(request)) throw error;
    await sendPage(request, response, status, renderUsedLink(request));
  }
}

/** The page of a link that was used before, has expired, or is wrong. */
function renderUsedLink(request: IncomingMessage): Page {
  const language = languageOf(request);
  const { activationInvalidTitle: title, activationInvalidText: text } = language.words;
  return renderMessage({ request, language, icon: 'problem', title, text });
}

/**
 * The page that asks for the address; `refused`, where an address came that is none: then the form's name is not known.
 */
export function renderActivation(request: IncomingMessage, { formName }: { formName?: string }): Page {
  const language = languageOf(request);
  const { words } = language;
  const refused = formName === undefined;
  const error =
    refused &&
    html`<p class="error" id="email.error"><span class="sr">${words.error} </span>${words.needEmail}</p>`;
  return renderMessage({
    request,
    language,
    title: refused ? words.activateButton : fill(words.activateTitle, { form: withoutLinks(formName) }),
    text: words.activateText,
    more: html`<form method="post" novalidate>
<div class="${refused ? 'field wrong' : 'field'}"><label for="email">${words.activateLabel}</label>
${error}<input${attributes({
      class: 'control',
      id: 'email',
      name: 'email',
      type: 'email',
      autocomplete: 'email',
      required: true,
      maxlength: 254,
      autofocus: refused,
      'aria-invalid': refused ? 'true' : undefined,
      'aria-describedby': refused ? 'email.error' : undefined,
    })}></div>
<div class="actions"><button>${words.activateButton}</button></div>
</form>`,
  });
}

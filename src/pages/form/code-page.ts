import type { HostedSession } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { CODE_DIGITS } from '../../domain/sessions/respondent.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import { sendPage } from '../../http/reply.ts';
import type { Language } from '../../text/words.ts';
import type { PageExchange } from '../handler.ts';
import { emailField, inputField } from '../layout.ts';
import { languageOf, renderMessage } from '../messages.ts';
import { type PageSource, queryWith } from './page-source.ts';

/** Shows the page that asks for the code of a respondent: first where to email it, and then what it is. */
export function showCodePage(exchange: PageExchange, session: HostedSession, shown: Shown = {}) {
  const { request, response } = exchange;
  const { formName, locale, theme, embedOrigins, permanent, codeSent } = session;
  const language = languageOf(request, locale);
  const { words } = language;
  const first = permanent ? words.codeFormText : words.codeText;
  const page = renderMessage({
    request,
    language,
    formName,
    theme,
    embedOrigins,
    title: words.codeTitle,
    text: codeSent ? words.codeSentText : first,
    // The same for every address: it says nothing about one.
    next: codeSent ? words.codeSentNote : undefined,
    more: html`${codeSent && giveForm(language, shown)}
${sendForm(session, language, shown)}`,
  });
  return sendPage(response, shown.status ?? 200, page);
}

/** Does what the code page has posted; false for a post of another page. */
export async function postCode(
  exchange: PageExchange,
  source: PageSource,
  inputs: FormInputs,
): Promise<boolean> {
  const { request, response } = exchange;
  const step = lastOf(inputs, '_code');
  if (step !== 'send' && step !== 'give') return false;
  const email = lastOf(inputs, 'email').trim();
  const done = await (step === 'send'
    ? source.sendCode(email)
    : source.giveCode(lastOf(inputs, 'code'))
  ).catch(undefinedFor('invalid'));
  if (done === undefined) {
    const session = await source.read({ inputs });
    showCodePage(exchange, session, { status: 422, refused: step, email });
  } else response.redirect(303, queryWith(request, {}));
  return true;
}

function giveForm({ words }: Language, { refused }: Shown): Html {
  const isWrong = refused === 'give';
  const code = inputField(
    { id: 'code', label: words.codeLabel, problem: isWrong ? words.needCode : undefined, words },
    {
      name: 'code',
      type: 'text',
      inputmode: 'numeric',
      autocomplete: 'one-time-code',
      required: true,
      maxlength: 2 * CODE_DIGITS,
      dir: 'ltr',
      autofocus: isWrong,
    },
  );
  return html`<form method="post" novalidate>${code}
<div class="actions"><button name="_code" value="give">${words.codeGive}</button></div></form>`;
}

/** A form's own page asks for the address, too. */
function sendForm(
  { permanent, codeSent }: HostedSession,
  { words }: Language,
  { refused, email }: Shown,
): Html {
  const isWrong = refused === 'send';
  const address =
    permanent &&
    emailField(
      { id: 'email', label: words.emailLabel, problem: isWrong ? words.needEmail : undefined, words },
      { autocomplete: 'email', value: email, autofocus: isWrong },
    );
  return html`<form method="post" novalidate>${address}
<div class="actions"><button${attributes({ name: '_code', value: 'send', class: codeSent && 'quiet' })}>${codeSent ? words.codeAgain : words.codeSend}</button></div></form>`;
}

/** What was refused, and with which status. */
type Shown = { status?: number; refused?: 'send' | 'give'; email?: string };

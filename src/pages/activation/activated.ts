import type { IncomingMessage } from 'node:http';
import type { Page } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import { fill } from '../../text/words/language.ts';
import { languageOf, renderMessage } from '../messages.ts';

/**
 * The page after an activation. `webhookSecret` is empty unless one was made; if `answersWait`, answers are
 * mailed once the address has confirmed.
 */
export function renderActivated(activated: Activated, request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const { formName, email, webhookSecret, answersWait } = activated;
  return renderMessage({
    request,
    language,
    title: words.activatedTitle,
    text: fill(answersWait ? words.activatedWaitText : words.activatedText, {
      form: withoutLinks(formName),
      email,
    }),
    more:
      webhookSecret !== '' &&
      html`<h2>${words.secretTitle}</h2>
<p>${words.secretText}</p>
<code>${webhookSecret}</code>`,
  });
}

type Activated = { formName: string; email: string; webhookSecret: string; answersWait: boolean };

import type { IncomingMessage } from 'node:http';
import type { FormShare } from '../../../gen/forms/v1/forms_pb.js';
import type { Page } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import { fill } from '../../text/words/language.ts';
import { languageOf, renderMessage } from '../messages.ts';
import { renderShare } from '../share.ts';

/**
 * The page after an activation, which says how to share the form. `webhookSecret` is empty unless one was made; if `answersWait`, answers are
 * mailed once the address has confirmed.
 */
export function renderActivated(activated: Activated, request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const { formName, email, webhookSecret, answersWait, share } = activated;
  return renderMessage({
    request,
    language,
    title: words.activatedTitle,
    text: fill(answersWait ? words.activatedWaitText : words.activatedText, {
      form: withoutLinks(formName),
      email,
    }),
    more: html`${
      webhookSecret !== '' &&
      html`<h2>${words.secretTitle}</h2>
<p>${words.secretText}</p>
<code>${webhookSecret}</code>`
    }
${share !== undefined && renderShare(share, words)}`,
    script: share !== undefined,
  });
}

type Activated = {
  formName: string;
  email: string;
  webhookSecret: string;
  answersWait: boolean;
  share: FormShare | undefined;
};

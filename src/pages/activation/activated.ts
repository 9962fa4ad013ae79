import type { IncomingMessage } from 'node:http';
import { ConfirmationState, type FormShare } from '../../../gen/forms/v1/forms_pb.js';
import type { Page } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { withoutLinks } from '../../text/untrusted.ts';
import type { Words } from '../../text/words/en.ts';
import { fill } from '../../text/words/language.ts';
import { languageOf, renderMessage } from '../messages.ts';
import { renderShare } from '../share.ts';

/**
 * The page after an activation, which says how to share the form. `webhookSecret` is empty unless one was made; if
 * `answersWait`, answers are mailed once the address has confirmed.
 */
export function renderActivated(activated: Activated, request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const { formName, email, webhookSecret, share } = activated;
  return renderMessage({
    request,
    language,
    title: words.activatedTitle,
    text: fill(sentencesOf(activated, words).join(' '), { form: withoutLinks(formName), email }),
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

function sentencesOf({ confirmation, answersWait }: Activated, words: Words): string[] {
  const isStopped = confirmation === ConfirmationState.STOPPED;
  return [
    words.activatedText,
    confirmationText(confirmation, words),
    ...(answersWait ? [isStopped ? words.activatedWaitQuietly : words.activatedWaitText] : []),
  ];
}

function confirmationText(state: ConfirmationState, words: Words): string {
  switch (state) {
    case ConfirmationState.ON_ITS_WAY:
      return words.confirmationSent;
    case ConfirmationState.LATER:
      return words.confirmationLater;
    case ConfirmationState.STOPPED:
      return words.confirmationStopped;
    case ConfirmationState.WRITTEN:
      return words.confirmationWritten;
    case ConfirmationState.UNSPECIFIED:
      return '';
    default:
      return state satisfies never;
  }
}

type Activated = {
  formName: string;
  email: string;
  webhookSecret: string;
  confirmation: ConfirmationState;
  answersWait: boolean;
  share: FormShare | undefined;
};

import type { IncomingMessage } from 'node:http';
import type { Ending } from '../../../gen/forms/internal/v1/hosted_pb.js';
import type { Page } from '../../http/reply.ts';
import { html } from '../../text/html.ts';
import { icon } from '../icons.ts';
import { renderPage, rootOf } from '../layout.ts';
import { languageOf } from '../messages.ts';

/**
 * The page after a submission: thanks, with a copy of the answers.
 *
 * `embedOrigins` are those of the page that was submitted, so that an embedded form stays in its frame.
 */
export function renderCompletion(
  ending: Ending,
  request: IncomingMessage,
  embedOrigins: string[] = [],
): Page {
  const language = languageOf(request, ending.locale);
  const { words } = language;
  const copy = ending.answers.map(
    ({ label, text }) => html`<div><dt>${label}</dt><dd>${text === '' ? words.noAnswer : text}</dd></div>
`,
  );
  const { successMessage } = ending;
  const title = repeats(successMessage, words.thanksTitle) ? words.thanksText : words.thanksTitle;
  const leads = ending.redirectUrl !== '' || ending.returnUrl !== '';
  const body = html`${icon('done')}
${ending.formName !== '' && html`<p class="form-name">${ending.formName}</p>`}
<h1 class="done">${title}</h1>
<p class="lead" role="status">${successMessage || words.thanksText}</p>
${!leads && html`<p class="note">${words.closePage}</p>`}
${ending.redirectUrl !== '' && html`<p class="actions"><a class="button" id="continue" href="${ending.redirectUrl}">${words.next}</a></p>`}
${ending.returnUrl !== '' && html`<p class="actions"><a class="button" href="${ending.returnUrl}" rel="noreferrer">${words.goBack}</a></p>`}
${
  copy.length > 0 &&
  html`<section class="copy"><h2>${words.copyTitle}</h2>
<p class="note">${words.copyText}</p>
<dl>${copy}</dl>
<p class="actions" id="print" hidden><button class="quiet" type="button">${words.print}</button></p></section>`
}`;
  return renderPage({
    language,
    root: rootOf(request),
    title: ending.formName === '' ? words.thanksTitle : `${words.thanksTitle} – ${ending.formName}`,
    theme: ending.theme,
    embedOrigins,
    body,
    script: true,
  });
}

/** Whether a text begins with the words of a title, which then would stand there twice. */
function repeats(text: string, title: string): boolean {
  return text.toLowerCase().startsWith(title.toLowerCase());
}

import type { IncomingMessage } from 'node:http';
import type { Violation } from '../domain/errors/violations.ts';
import { html } from '../domain/text/html.ts';
import type { RestError } from '../http/errors.ts';
import type { Page } from '../http/reply.ts';
import { renderActivated, renderActivation } from './activation.ts';
import { renderCompletion } from './form/completion-page.ts';
import { renderRefusedPost } from './form/refused-post.ts';
import { renderPage, rootOf } from './layout.ts';
import { languageOf, renderError as renderMessageOf } from './messages.ts';

/** The pages that answer HTML forms posted to the REST interface: a static site's, and the activation page's. */
export const formPostPages = {
  renderCompletion: (...[ending, request]: Parameters<typeof renderCompletion>): Page =>
    renderCompletion(ending, request),
  renderActivated,
  renderRefusedPost,
  renderError,
};

/** Names the refused answers (422), or says why the post was refused. */
function renderError(error: RestError, request: IncomingMessage, requestId: string): Page {
  if (error.reason === 'invalid' && isActivation(request)) return renderActivation(request, {});
  if (error.reason === 'invalid') return renderProblems(error.details, request);
  return renderMessageOf(error, request, { requestId });
}

function isActivation({ url = '' }: IncomingMessage): boolean {
  return /\/activate\/?(?:\?|$)/.test(url);
}

/** Names what was wrong with the answers that a static site's own form has posted. */
function renderProblems(details: readonly Violation[], request: IncomingMessage): Page {
  const language = languageOf(request);
  const { words } = language;
  const body = html`<h1>${words.problemsTitle}</h1>
<p>${words.problemsText}</p>
<dl>${details.map(
    ({
      path,
      message,
    }) => html`<div><dt>${path.replace(/^answers\.?/, '') || '–'}</dt><dd>${message}</dd></div>
`,
  )}</dl>`;
  return renderPage({ language, root: rootOf(request), title: words.problemsTitle, body });
}

import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { HostedSession } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inputNames, namedInputs, readNamed } from '../domain/answers/answer-texts.ts';
import type { Field } from '../domain/definition/definition.ts';
import type { Violation } from '../domain/errors/violations.ts';
import { uploadLimits } from '../domain/fields/index.ts';
import { html } from '../domain/text/html.ts';
import type { RestError } from '../http/errors.ts';
import { lastOf } from '../http/multipart.ts';
import type { HtmlPage, RefusedPost } from '../http/reply.ts';
import { renderActivated, renderActivation } from './activation.ts';
import { renderCompletion } from './form/completion-page.ts';
import { type Problem, problemsOf } from './form/field-words.ts';
import { renderForm } from './form/form-page.ts';
import { shownFieldsOf } from './form/page-source.ts';
import { viewOf } from './form/show.ts';
import { renderPage, rootOf } from './layout.ts';
import { languageOf, renderError as renderMessageOf } from './messages.ts';
import { OwnerCookies } from './owner/session.ts';

/** The pages that answer HTML forms posted to the REST interface: a static site's, and the activation page's. */
export const createFormPostPages = (baseUrl: string) => ({
  browserOf(request: Request, response: Response): string {
    const cookies = new OwnerCookies(request, response, baseUrl);
    return cookies.isAtPublicAddress ? cookies.browser() : '';
  },
  renderCompletion,
  renderActivated,
  renderRefusedPost,
  renderError,
});

/** Names the refused answers (422), or says why the post was refused. */
function renderError(error: RestError, request: IncomingMessage, requestId: string): HtmlPage {
  if (error.reason === 'invalid' && isActivation(request)) return renderActivation(request, {});
  if (error.reason === 'invalid') return renderProblems(error.details, request);
  if (error.reason === 'code_needed')
    return renderMessageOf(error, request, { requestId, more: linkToPage(error, request) });
  // Only the maker of the site can mend it, so the page says in English what is wrong with the origin.
  const isOrigin = error.reason === 'origin_not_allowed';
  const more = isOrigin && html`<p class="note" lang="en" dir="ltr">${error.body.error.message}.</p>`;
  return renderMessageOf(error, request, { requestId, more });
}

/** The page that takes the answers. */
function linkToPage({ pageUrl }: RestError, request: IncomingMessage) {
  const { words } = languageOf(request);
  return (
    pageUrl !== '' && html`<p class="actions"><a class="button" href="${pageUrl}">${words.codeGive}</a></p>`
  );
}

function isActivation({ url = '' }: IncomingMessage): boolean {
  return /\/activate\/?(?:\?|$)/.test(url);
}

/** Names what was wrong with the answers that a static site's own form has posted. */
function renderProblems(details: readonly Violation[], request: IncomingMessage): HtmlPage {
  const language = languageOf(request);
  const { words } = language;
  const nameOf = ({ path }: Violation) => path.replace(/^answers\.?/, '') || '–';
  const body = html`<h1>${words.problemsTitle}</h1>
<p>${words.problemsText}</p>
<dl>${details.map((each) => html`<div><dt>${nameOf(each)}</dt><dd>${each.message}</dd></div>\n`)}</dl>`;
  return renderPage({ language, root: rootOf(request), title: words.problemsTitle, body });
}

/**
 * The form in place of a site's own one whose post was refused: on one page, with what was posted and what is wrong
 * with it. It posts to the same address, and with it what the site's form carries unseen. Files have to be chosen
 * again.
 */
function renderRefusedPost(session: HostedSession, post: RefusedPost): HtmlPage {
  const { request, details, site } = post;
  const fields = shownFieldsOf(session).map((field) => ({ ...field, page: 1 }));
  const sent = [...post.inputs].map(([name, values]) => ({ name, values }));
  const { byName, unknown } = namedInputs(fields, sent);
  const inputs = new Map([...byName, ...unknown.map((name) => [name, post.inputs.get(name) ?? []] as const)]);
  const language = lastOf(post.inputs, '_lang');
  const answers = { ...session.answers, ...readNamed({ fields }, byName, { language }) };
  const view = viewOf(request, session, fields, { answers, step: 1 });
  const texts = new Map(view.texts);
  for (const field of fields) if (uploadLimits(field) !== undefined) texts.delete(field.id);
  const { problems, otherProblems } = problemsOf(details, fields, inputs, view.language);
  const again: [string, Problem][] = fields
    .filter((field) => !problems.has(field.id) && hasFile(field, inputs))
    .map(({ id }) => [id, { text: view.language.words.chooseFileAgain }]);
  const page = renderForm(
    { ...session, pages: [], review: false, honeypot: false, permanent: false, allowPartial: false },
    {
      ...view,
      texts,
      problems: new Map([...problems, ...again]),
      otherProblems,
      site: { address: site, inputs: unseenInputs(fields, inputs) },
    },
  );
  // Without a referrer browsers send no origin with the next post, which the form may ask for.
  return { ...page, headers: { ...page.headers, 'referrer-policy': 'same-origin' } };
}

/** The inputs that the page has none of: of fields that people do not see, and the site's own controls. */
function unseenInputs(fields: readonly Field[], inputs: Inputs): [name: string, value: string][] {
  const shown = new Set(fields.flatMap(inputNames));
  return [...inputs].flatMap(([name, values]) => {
    const isUnseen = name.startsWith('_') ? carried.has(name) : !shown.has(name);
    return isUnseen ? values.map((value): [string, string] => [name, value]) : [];
  });
}

const carried: ReadonlySet<string> = new Set(['_next', '_source']);

function hasFile(field: Field, inputs: Inputs): boolean {
  return uploadLimits(field) !== undefined && (inputs.get(field.id) ?? []).some((value) => value !== '');
}

type Inputs = ReadonlyMap<string, readonly string[]>;

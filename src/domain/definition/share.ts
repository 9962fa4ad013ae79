import encodeQR from 'qr';
import type { Answers } from '../answers/answers.ts';
import { escapeHtml } from '../text/escape-html.ts';
import type { FormDefinition } from './definition.ts';
import { htmlSnippet } from './html-snippet.ts';
import { hasPublicPage } from './public-page.ts';

/**
 * How to reach a published form: addresses, and snippets for somebody's own site. What there is none of is empty: the
 * page's parts where it has no page of its own, the HTML where such a form can't ask all that is required.
 *
 * `sample` are made-up answers.
 */
export function shareOf(formId: string, definition: FormDefinition, to: ShareContext): Share {
  const submissionsUrl = `${to.baseUrl}/api/forms/${formId}/submissions`;
  const pageUrl = publicPageUrl(formId, definition, to.hostedUrl) ?? '';
  return {
    pageUrl,
    submissionsUrl,
    htmlSnippet: htmlSnippet(definition, submissionsUrl),
    fetchSnippet: fetchSnippet(submissionsUrl, to.sample),
    embedSnippet:
      pageUrl === ''
        ? ''
        : `<script src="${escapeHtml(to.hostedUrl)}/embed.js" data-form="${formId}"></script>`,
    qrSvg: pageUrl === '' ? '' : qrSvg(pageUrl),
  };
}

/** The address of a form's own page; undefined if it has none. */
export function publicPageUrl(
  formId: string,
  definition: FormDefinition,
  hostedUrl: string,
): string | undefined {
  return hasPublicPage(definition) ? `${hostedUrl}/f/${formId}` : undefined;
}

/** JavaScript for a module; it may stand in a script element. */
function fetchSnippet(url: string, answers: Answers): string {
  const body = JSON.stringify({ source: 'website', answers }, null, 2)
    .replaceAll('<', '\\u003c')
    .replace(/\n/g, '\n  ');
  return `const response = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(${body}),
});
const { ok, submission_id, error } = await response.json();
// error.details names each refused answer.
console.log(ok ? submission_id : error);`;
}

/** Black on white, with the margin that readers need. */
function qrSvg(text: string): string {
  const svg = encodeQR(text, 'svg', { border: QUIET_MODULES });
  return svg.replace('><path', '><rect width="100%" height="100%" fill="#fff"/><path');
}

const QUIET_MODULES = 4;

export type Share = {
  pageUrl: string;
  submissionsUrl: string;
  htmlSnippet: string;
  fetchSnippet: string;
  embedSnippet: string;
  qrSvg: string;
};

type ShareContext = { baseUrl: string; hostedUrl: string; sample: Answers };

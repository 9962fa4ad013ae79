import type { FormShare } from '../../gen/headlessforms/v1/forms_pb.js';
import { type Html, html } from '../domain/text/html.ts';
import type { Words } from '../text/words.ts';

/**
 * How to reach a published form: its page with a QR code, and snippets for a website. Each can be selected by one
 * click; the script adds buttons that copy it.
 */
export function renderShare(share: FormShare, words: Words): Html {
  const { pageUrl, qrSvg } = share;
  const rows = [
    [words.sharePage, pageUrl],
    [words.shareEndpoint, share.submissionsUrl],
    [words.shareHtml, share.htmlSnippet],
    [words.shareFetch, share.fetchSnippet],
    [words.shareEmbed, share.embedSnippet],
  ] as const;
  return html`<section class="share"><h2>${words.shareTitle}</h2>
${
  pageUrl !== '' &&
  html`<p><a class="button" href="${pageUrl}">${words.shareOpen}</a></p>
<img class="qr" alt="${words.shareQr}" width="180" height="180" src="data:image/svg+xml;base64,${Buffer.from(qrSvg).toString('base64')}">`
}
${rows.map(
  ([title, text], index) =>
    text !== '' &&
    html`<h3 id="share.${index}">${title}</h3>
<div class="snippet"><code tabindex="0" aria-labelledby="share.${index}" role="group">${text}</code>
<button class="quiet" type="button" data-copy data-copied="${words.copied}" aria-describedby="share.${index}" hidden>${words.copy}</button></div>
`,
)}</section>`;
}

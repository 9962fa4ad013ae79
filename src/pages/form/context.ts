import {
  type ContextItem,
  ContextItemKind,
  type SessionContext,
} from '../../../gen/headlessforms/v1/session_context_pb.js';
import { type Html, html } from '../../domain/text/html.ts';

/** What the session's maker shows above the questions, as plain text: readable without script. */
export function renderContext({ title, text, items }: SessionContext): Html {
  return html`<section class="context"${title === '' ? false : html` aria-labelledby="context"`}>${title !== '' && html`<h2 id="context" dir="auto">${title}</h2>`}
${text !== '' && html`<p dir="auto">${text}</p>`}
${
  items.length > 0 &&
  html`<dl>${items.map(
    (item) => html`<div><dt dir="auto">${item.label}</dt><dd>${renderItem(item)}</dd></div>
`,
  )}</dl>`
}</section>`;
}

function renderItem({ label, value, kind }: ContextItem): Html {
  switch (kind) {
    case ContextItemKind.LINK:
      // The address may be long, and look like another: the host says where it leads.
      return html`<a href="${value}" target="_blank" rel="noopener noreferrer nofollow" dir="ltr">${value}</a> <span class="host" dir="ltr">(${new URL(value).host})</span>`;
    case ContextItemKind.CODE:
      return block(label, html`${value}`);
    case ContextItemKind.DIFF:
      return block(label, html`${value.split('\n').map(renderLine)}`);
    case ContextItemKind.TEXT:
    case ContextItemKind.UNSPECIFIED:
      return html`<p dir="auto">${value}</p>`;
    default:
      return kind satisfies never;
  }
}

/** Can be scrolled sideways, by keys too. */
function block(label: string, content: Html): Html {
  return html`<pre class="code" dir="ltr" tabindex="0" role="region" aria-label="${label}"><code>${content}</code></pre>`;
}

/** Its first character says what it is; the color only repeats that. */
function renderLine(line: string): Html {
  const isHead = line.startsWith('+++') || line.startsWith('---');
  if (line.startsWith('+') && !isHead) return html`<span class="added">${line}</span>\n`;
  if (line.startsWith('-') && !isHead) return html`<span class="removed">${line}</span>\n`;
  return html`${line}\n`;
}

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { type RequestHandler, Router } from 'express';
import { Marked } from 'marked';
import { attributes, Html, html } from '../domain/text/html.ts';
import { sendPage } from '../http/reply.ts';
import { chooseLanguage } from '../text/words.ts';
import type { HandlePage } from './handler.ts';
import { assets, renderPage, rootOf, securityHeaders } from './layout.ts';

/**
 * The documents of the repository that every instance serves, in the order in which it lists them. Those on running
 * the service and on what it does not fulfil stay in the repository.
 */
const served: Record<string, { file?: string; about: string }> = {
  'quick-start': { file: 'README.md', about: 'Start the service, make a form, submit and read responses' },
  forms: { about: 'Field types, conditions, steps, languages, the hosted page, emails' },
  owners: { about: 'What the owner of a form sees and can do' },
  'own-html': { about: 'Post your own HTML form' },
  rest: { about: 'Every route with its scope, errors, sessions, waiting and streams' },
  rpc: { about: 'gRPC, Connect and gRPC-Web' },
  typescript: { about: 'Install, authenticate, each call with its errors' },
  python: { about: 'The same in Python' },
  go: { about: 'The same in Go' },
  ruby: { about: 'The same in Ruby' },
  java: { about: 'The same in Java' },
  cpp: { about: 'The same in C++' },
  contracts: { about: 'Types for each version of a form, and forms as files' },
  webhooks: { about: 'Events, signatures, retries, templates, replays' },
  agents: { about: 'MCP, questions for people, workflows that resume' },
  settings: { about: 'Every environment variable' },
  limits: { about: 'The bounds that hold' },
  metrics: { about: 'Metrics, alerts, traces and the log' },
  scaling: { about: 'Sizes, and how far one database goes' },
  questions: { about: 'Stability, databases, email, encryption, export, access of staff' },
  privacy: { about: 'What is stored and for how long, and how to erase a person' },
  accessibility: { about: 'What was tested, how, and what was not' },
};

/**
 * Reads the guides. Links to what is not served become their words, and the address in the commands becomes `baseUrl`,
 * so that a reader can paste them.
 */
export function loadGuides(baseUrl: string): Guide[] {
  return Object.entries(served).map(([name, { file = `docs/${name}.md`, about }]) => {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    const markdown = rewrite(source, file).replaceAll('http://localhost:8080', baseUrl);
    return { name, title: name === 'quick-start' ? 'Quick start' : titleOf(source), about, markdown };
  });
}

/** Serves the guides as pages and as Markdown, their pictures, and the API reference. */
export function createGuides(guides: readonly Guide[], page: (handle: HandlePage) => RequestHandler): Router {
  const router = Router({ strict: true });
  const rendered = new Map<string, Rendered>();
  router.get(['/docs', '/docs/'], page(showIndex(guides)));
  router.get('/docs/api', page(showReference));
  router.get('/docs/screenshots/:file', async ({ params: { file } }, response, next) => {
    if (!/^[\w-]+\.png$/.test(file)) return next();
    const picture = await readFile(new URL(file, screenshots)).catch(undefinedIfMissing);
    if (picture === undefined) return next();
    response.set({ 'content-type': 'image/png', 'cache-control': 'public, max-age=3600' }).end(picture);
  });
  router.get('/docs/:name', (request, response, next) => {
    const [, name, isMarkdown] = /^(.*?)(\.md)?$/.exec(request.params.name) ?? [];
    const guide = guides.find((each) => each.name === name);
    if (guide === undefined) return next();
    if (isMarkdown) {
      response.set({ 'access-control-allow-origin': '*', 'content-type': 'text/markdown; charset=utf-8' });
      return void response.end(guide.markdown);
    }
    const content = rendered.get(guide.name) ?? render(guide.markdown);
    rendered.set(guide.name, content);
    return page(showGuide(guide, content))(request, response, next);
  });
  return router;
}

const screenshots = new URL('../../docs/screenshots/', import.meta.url);

function undefinedIfMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function titleOf(markdown: string): string {
  return /^# (.*)$/m.exec(markdown)?.[1] ?? '';
}

/** A document with its comments left out, and with links that work below `/docs/`. Code stays as it is. */
function rewrite(source: string, file: string): string {
  const parts =
    /^ *```[\s\S]*?^ *```$|<!--[\s\S]*?-->\n?|(!?)\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]+)\)|`[^`\n]*`/gm;
  return source.replace(parts, (whole, image?: string, text?: string, link = '') => {
    if (whole.startsWith('<!--')) return '';
    if (text === undefined || /^(https?:|mailto:|#)/.test(link)) return whole;
    const target = targetOf(posix.join(posix.dirname(file), link));
    return target === undefined ? text : `${image}[${text}](${target})`;
  });
}

/** Where a file of the repository is below `/docs/`. */
function targetOf(link: string): string | undefined {
  const [file = '', anchor] = link.split('#');
  if (file.startsWith('docs/screenshots/')) return file.slice('docs/'.length);
  const found = Object.entries(served).find(([name, of]) => (of.file ?? `docs/${name}.md`) === file);
  return found && `${found[0]}.md${anchor === undefined ? '' : `#${anchor}`}`;
}

/** HTML of a document, whose headings have the anchors that GitHub gives them. */
function render(markdown: string): Rendered {
  const sections: Rendered['sections'] = [];
  const ids = new Map<string, number>();
  const renderer = new Marked({
    // An address without brackets is an example, such as http://localhost:`PORT`.
    tokenizer: { url: () => undefined },
    renderer: {
      heading({ tokens, depth }) {
        const words = this.parser.parseInline(tokens, this.parser.textRenderer);
        const anchor = words
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .replaceAll(' ', '-');
        const times = ids.get(anchor) ?? 0;
        ids.set(anchor, times + 1);
        const id = times === 0 ? anchor : `${anchor}-${times}`;
        if (depth === 2) sections.push({ id, title: words });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const target = /^[\w-]+\.md(#|$)/.test(href) ? href.replace('.md', '') : href;
        return html`<a href="${target}">${new Html(this.parser.parseInline(tokens))}</a>`.text;
      },
      table({ header, rows }) {
        // A heading without words would be announced as one.
        const heads = header.map(({ text, tokens }) => {
          const tag = text === '' ? 'td' : 'th';
          return `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`;
        });
        // Where each row is a card, its first cell is the title.
        const cell = ({ tokens }: (typeof header)[number], column: number) => {
          const label = column === 0 ? undefined : header[column]?.text.replaceAll('`', '') || undefined;
          return html`<td${attributes({ 'data-label': label })}>${new Html(this.parser.parseInline(tokens))}</td>`
            .text;
        };
        const head = header.every(({ text }) => text === '') ? '' : `<tr>${heads.join('')}</tr>`;
        const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
        return `<div class="table" tabindex="0" role="group" aria-label="Table"><table>${head}\n${body}</table></div>\n`;
      },
    },
  });
  const text = renderer.parse(markdown, { async: false });
  const [heading = '', rest = ''] = text.split(/(?<=<\/h1>)/);
  return { heading: new Html(heading), sections, rest: new Html(rest) };
}

const showGuide =
  ({ name, title }: Guide, { heading, sections, rest }: Rendered): HandlePage =>
  ({ request, response }) => {
    const root = rootOf(request);
    const contents = sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`);
    const body = html`${navigation(root)}
${heading}
${sections.length > 2 && html`<nav aria-label="On this page"><ul>${contents}</ul></nav>`}
${rest}
<p class="note"><a href="${name}.md">This page as Markdown</a></p>`;
    sendPage(response, 200, guidePage(root, `${title} – ${SERVICE}`, body));
  };

const showIndex =
  (guides: readonly Guide[]): HandlePage =>
  ({ request, response }) => {
    const root = rootOf(request);
    const reference = { name: 'api', title: 'API reference', about: 'Every route, to read and to try' };
    const links = [...guides.slice(0, 1), reference, ...guides.slice(1)].map(
      ({ name, title, about }) =>
        html`<li><a href="${root}docs/${name}">${title}</a> <span>${about}</span></li>\n`,
    );
    const body = html`${navigation(root)}
<h1>Guides</h1>
<ul class="places">${links}</ul>`;
    sendPage(response, 200, guidePage(root, `Guides – ${SERVICE}`, body));
  };

/** In English, as the documents are. */
function guidePage(root: string, title: string, body: Html) {
  return renderPage({ language: chooseLanguage('en'), root, title, body, isGuide: true, images: true });
}

function navigation(root: string): Html {
  return html`<nav class="guides" aria-label="Guides"><a href="${root}">${SERVICE}</a> <a href="${root}docs">Guides</a> <a href="${root}docs/api">API reference</a></nav>`;
}

/**
 * Answers with the reference of the REST interface, which Swagger UI makes of `/openapi.json` in the browser. It loads
 * nothing from elsewhere. Its policy allows the styles that Swagger UI sets, and no script but files of this service.
 */
const showReference: HandlePage = ({ request, response }) => {
  const root = rootOf(request);
  const page = html`<!doctype html>
<html lang="en" data-mode="auto">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API reference – ${SERVICE}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${assets.path('libraries/swagger-ui.css')}">
<link rel="stylesheet" href="${root}${assets.path('docs.css')}">
<script src="${root}${assets.path('libraries/swagger-ui-bundle.js')}" defer></script>
<script type="module" src="${root}${assets.path('docs.js')}"></script>
</head>
<body>
<header><a href="${root}">${SERVICE}</a> <a href="${root}docs">Guides</a> <a href="${root}openapi.json">openapi.json</a></header>
<div id="reference" data-root="${root}">
<noscript><p>This page needs script. <a href="rest">REST</a> describes every route without it.</p></noscript>
</div>
</body>
</html>
`;
  sendPage(response, 200, { html: page.text, headers: securityHeaders(policy, []) });
};

const policy = [
  "default-src 'none'",
  "style-src 'self' 'unsafe-inline'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "form-action 'none'",
  "base-uri 'none'",
];

const SERVICE = 'Headless form service';

export type Guide = {
  /** Its path below `/docs/`; with `.md` behind it, it is Markdown. */
  name: string;
  title: string;
  about: string;
  markdown: string;
};

/** `sections` are the headings of the second level. */
type Rendered = { heading: Html; sections: { id: string; title: string }[]; rest: Html };

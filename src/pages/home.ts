import { html } from '../domain/text/html.ts';
import { sendPage } from '../http/reply.ts';
import { chooseLanguage } from '../text/words.ts';
import { renderSnippet } from './activation.ts';
import type { HandlePage } from './handler.ts';
import { renderPage, rootOf } from './layout.ts';

/**
 * Answers GET on the service's address: what this is, and where to go. In English, as the documents that it leads to.
 */
export function showHome({ baseUrl, allowPublicCreate, docs, demo }: HomeOptions): HandlePage {
  const command = firstCommand(baseUrl, allowPublicCreate ? undefined : 'hfs_…');
  const links = destinations.filter(
    ({ path }) => (docs || !path.startsWith('docs')) && (demo || path !== 'f/form_demo'),
  );
  return async ({ request, response }) => {
    const root = rootOf(request);
    const language = chooseLanguage('en');
    const body = html`<h1>${TITLE}</h1>
<p class="lead">Write a form as JSON and publish it with a link. Get the answers of people, programs and agents by email, by signed webhook, or as a file.</p>
<h2>Start here</h2>
<ul class="places">${links.map(
      ({ path, name, about }) => html`<li><a href="${root}${path}">${name}</a> <span>${about}</span></li>
`,
    )}</ul>
<h2>From a terminal</h2>
<p>Paste this into a terminal. To publish the form, open ${baseUrl} followed by the <b>activate_url</b> in the reply.</p>
${renderSnippet(command, language.words)}`;
    const page = renderPage({ language, root, title: TITLE, body, script: true });
    sendPage(response, 200, page);
  };
}

const TITLE = 'Headless form service';

const destinations = [
  { path: 'new', name: 'Create a form', about: 'Write it as JSON and see its page as you type' },
  { path: 'owner', name: 'Your forms', about: 'For owners: read, export and delete responses' },
  {
    path: 'docs',
    name: 'Guides',
    about: 'Forms, webhooks, agents, clients, and answers to common questions',
  },
  { path: 'docs/api', name: 'API reference', about: 'Every route, to read and to try' },
  { path: 'openapi.json', name: 'OpenAPI', about: 'The API reference as JSON, to generate clients' },
  { path: 'descriptor.binpb', name: 'Protocol buffers', about: 'For gRPC, gRPC-Web and Connect' },
  { path: 'f/form_demo', name: 'Demo form', about: 'A form as people see it' },
  { path: 'llms.txt', name: 'Agents', about: 'The guides for language models, and MCP' },
];

export type HomeOptions = {
  /** The public address of the service, without a slash at the end. */
  baseUrl: string;
  /** Whether forms are made without a key. */
  allowPublicCreate: boolean;
  /** Whether there are the guides with the API reference, and the demo form. */
  docs: boolean;
  demo: boolean;
};

/**
 * A command that makes a form, for people to paste into a terminal. `key` is the text of an API key, if one is to be
 * sent.
 */
export function firstCommand(url: string, key?: string): string {
  const definition = {
    name: 'Contact',
    slug: 'contact',
    fields: [
      { id: 'email', type: 'email', required: true },
      { id: 'message', type: 'textarea' },
    ],
    delivery: { type: 'email' },
  };
  const headers = [
    ...(key === undefined ? [] : [`-H 'Authorization: Bearer ${key}'`]),
    "-H 'Content-Type: application/json'",
  ];
  return `curl ${url}/api/forms/create ${headers.join(' ')} -d '${JSON.stringify(definition)}'`;
}

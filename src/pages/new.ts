import { readFileSync } from 'node:fs';
import { HostedService } from '../../gen/headlessforms/internal/v1/hosted_pb.js';
import { stepsOf, visibleIds } from '../domain/answers/steps.ts';
import { MAX_KEYLESS_BYTES } from '../domain/limits/limits.ts';
import { newToken } from '../domain/secrets/new-secrets.ts';
import { html } from '../domain/text/html.ts';
import { readBytes } from '../http/body.ts';
import { sendJson, sendPage } from '../http/reply.ts';
import { RpcClient } from '../http/rpc-client.ts';
import { chooseLanguage } from '../text/words.ts';
import { renderSnippet } from './activation.ts';
import { renderForm } from './form/form-page.ts';
import { shownFieldsOf } from './form/page-source.ts';
import { viewOf } from './form/show.ts';
import type { HandlePage, PageOptions } from './handler.ts';
import { firstCommand, type HomeOptions } from './home.ts';
import { renderPage, rootOf } from './layout.ts';
import { requireOwnPost } from './owner/session.ts';

/**
 * Answers GET on `/new`: where a person writes a form as JSON, sees its page beside it, and makes it. In English, as
 * the first page. It needs its script; without it, it has the command that does the same.
 */
export function showNew({ baseUrl, allowPublicCreate }: NewPageOptions): HandlePage {
  const command = firstCommand(baseUrl, allowPublicCreate ? undefined : 'hfs_…');
  return ({ request, response }) => {
    const language = chooseLanguage('en');
    const nonce = newToken();
    const root = rootOf(request);
    const body = html`<h1>Create a form</h1>
<p class="lead">Write the form as JSON and see its page as you type. Start with an example.</p>
<noscript><p>This page needs JavaScript. Without it, create the form with curl:</p><code>${command}</code></noscript>
<div class="columns" id="editor" data-root="${root}" data-nonce="${nonce}" hidden>
<div>
<fieldset class="field examples"><legend>Examples</legend><div class="actions">${examples.map(
      ({ title, text }) =>
        html`<button class="quiet small" type="button" data-example="${text}">${title}</button>
`,
    )}</div></fieldset>
<div class="field"><label for="definition">Form</label>
<textarea class="control" id="definition" rows="24" spellcheck="false" autocapitalize="off" autocomplete="off" dir="ltr" aria-describedby="outcome">${examples[0]?.text}</textarea></div>
<p class="status" id="outcome" role="status"></p>
<ol class="problems" id="problems" hidden></ol>
<div class="field"><label for="key">API key${allowPublicCreate && ' (optional)'}</label>
<p class="help" id="key-help">${allowPublicCreate ? 'With a key, the form belongs to the key’s project.' : 'This service needs one to create forms.'} It needs the scope <b>forms:write</b>. It stays on this page and is gone when you leave.</p>
<input class="control" id="key" type="password" autocomplete="off" spellcheck="false" aria-describedby="key-help"></div>
<div class="actions"><button type="button" id="create">Create form</button></div>
<p class="note">Next, enter the owner’s email address to publish the form.</p>
</div>
<section class="preview" aria-labelledby="preview-title"><h2 id="preview-title">Preview</h2>
<div class="field" hidden><label for="step">Step</label><select class="control" id="step"></select></div>
<div id="preview"></div>
<p class="note">You can’t submit the preview. It shows the page as it is before anything is filled in.</p></section>
</div>
<h2>In your own editor</h2>
<p>Add this line at the start of the file, inside the first bracket. VS Code, JetBrains IDEs and other editors then suggest names and values as you type. The line also works here.</p>
${renderSnippet(`"$schema": "${baseUrl}/schemas/form.json",`, language.words)}`;
    const page = renderPage({
      language,
      root,
      title: 'Create a form',
      body,
      isEditor: true,
      nonce,
      script: true,
    });
    sendPage(response, 200, page);
  };
}

/**
 * Answers a post of that page with the problems of the text that it sends, by line, or with the page of the form: one
 * step of it, from which nothing can be sent. No address shows that page, and a post of another origin is refused.
 */
export function postNew({ transport }: NewPageOptions): HandlePage {
  return async (exchange) => {
    const { request, response } = exchange;
    requireOwnPost(exchange);
    const [, key] = /^bearer +(?! )(.+)$/i.exec(request.headers.authorization ?? '') ?? [];
    const client = new RpcClient(transport, { request, response }, 'page', key);
    const text = (await readBytes(request, MAX_KEYLESS_BYTES)).toString();
    const { session, problems } = await client.call(HostedService.method.previewForm, { text });
    if (session === undefined) {
      const named = problems.map(({ line, path, message }) => ({ line, path, message }));
      return sendJson(response, 200, { problems: named });
    }

    const fields = shownFieldsOf(session);
    const { answers = {}, pages, review } = session;
    const steps = stepsOf(fields, visibleIds(fields, answers), review);
    const step = steps.find((each) => String(each) === request.query.step) ?? steps[0] ?? 1;
    const view = viewOf(request, session, fields, { answers, step });
    const { nonce } = request.query;
    const previewNonce = typeof nonce === 'string' ? nonce : '';
    const page = renderForm(session, { ...view, previewNonce });
    const named = steps.map((each, index) => [each, pages[each - 1]?.title || `Step ${index + 1}`]);
    sendJson(response, 200, { problems: [], html: page.html, step, steps: named });
  };
}

/** What a person can begin with. They are files as `forms apply` reads them. */
export const examples = ['Contact', 'Order', 'Survey', 'Approval', 'Job application'].map((title) => {
  const name = title.toLowerCase().replace(' ', '-');
  return { title, text: readFileSync(new URL(`./examples/${name}.form.json`, import.meta.url), 'utf8') };
});

export type NewPageOptions = PageOptions & Pick<HomeOptions, 'baseUrl' | 'allowPublicCreate'>;

import type { Request } from 'express';
import { type OwnedForm, OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { httpErrorOf } from '../../http/errors.ts';
import { present } from '../../http/values.ts';
import { type Html, html } from '../../text/html.ts';
import type { OwnerLanguage } from '../../text/words/owner/index.ts';
import { rootOf } from '../layout.ts';
import { statusOf } from './forms.ts';
import type { OwnerExchange } from './handler.ts';
import { idIn } from './request.ts';

const { method: rpcs } = OwnersService;

/** The form that the path names; one that the owner has not confirmed is confirmed on the list, where this leads. */
export async function formIn({ request, response, call }: OwnerExchange): Promise<OwnedForm | undefined> {
  const read = await call(rpcs.getOwnedForm, { formId: idIn(request) }).catch((error: unknown) => {
    if (httpErrorOf(error).reason !== 'conflict') throw error;
    return undefined;
  });
  if (read === undefined) response.redirect(303, `${rootOf(request)}owner`);
  return read && present(read.form);
}

/** The name of a form, how it stands, and links to its pages, of which `here` is shown. */
export function formHead(form: OwnedForm, here: FormPage, request: Request, language: OwnerLanguage): Html {
  const { owner } = language;
  const base = formUrl(request, form);
  const pages: [FormPage, string, string][] = [
    ['answers', owner.answers, base],
    ['charts', owner.charts, `${base}/charts`],
    ['settings', owner.settings, `${base}/settings`],
  ];
  return html`<h1>${form.name} <span class="tag">${statusOf(form, language)}</span></h1>
<nav class="tabs" aria-label="${form.name}">${pages.map(
    ([
      page,
      name,
      url,
    ]) => html`<a href="${url}"${page === here ? html` aria-current="page"` : false}>${name}</a>
`,
  )}</nav>`;
}

/** The relative address of a form's first page. */
export function formUrl(request: Request, { id }: OwnedForm): string {
  return `${rootOf(request)}owner/forms/${id}`;
}

type FormPage = 'answers' | 'charts' | 'settings';

import { timestampDate } from '@bufbuild/protobuf/wkt';
import { FormStatus } from '../../../gen/forms/v1/forms_pb.js';
import { type OwnedForm, OwnersService } from '../../../gen/forms/v1/owners_pb.js';
import { sendPage } from '../../http/reply.ts';
import { present } from '../../http/values.ts';
import { type Html, html } from '../../text/html.ts';
import { dayInWords } from '../../text/quantities.ts';
import { fill } from '../../text/words/language.ts';
import type { OwnerLanguage } from '../../text/words/owner/index.ts';
import { rootOf } from '../layout.ts';
import type { HandleOwner } from './handler.ts';
import { buttonForm, renderOwnerPage } from './layout.ts';
import { idIn, queryOf } from './request.ts';

const { method: rpcs } = OwnersService;

/** Lists the owner's forms, newest first. */
export const showForms: HandleOwner = async ({ request, response, call, language, csrf }) => {
  const { address } = await call(rpcs.getOwner, {});
  const pageToken = queryOf(request, 'page');
  const { forms, nextPageToken } = await call(rpcs.listOwnedForms, { pageToken });
  const { owner } = language;
  const root = rootOf(request);
  const body = html`<h1>${owner.title}</h1>
${forms.length === 0 && html`<p class="lead">${owner.noForms}</p>`}
<ul class="forms">${forms.map(
    (form) => html`<li>${formOf(form, { root, csrf, language })}</li>
`,
  )}</ul>
${nextPageToken !== '' && html`<p><a href="${root}owner?page=${nextPageToken}">${owner.more}</a></p>`}`;
  const signedIn = { address, csrf };
  await sendPage(
    request,
    response,
    200,
    renderOwnerPage({ request, language, title: owner.title, body, signedIn }),
  );
};

/** Confirms that a form belongs to the owner. */
export const confirmForm: HandleOwner = async ({ request, response, call }) => {
  const formId = idIn(request);
  await call(rpcs.confirmOwnedForm, { formId });
  response.redirect(303, `${rootOf(request)}owner/forms/${formId}`);
};

/** What stands beside the name of a form. */
export function statusOf(form: OwnedForm, { owner }: OwnerLanguage): string {
  if (!form.confirmed) return owner.unconfirmed;
  if (form.status === FormStatus.ARCHIVED) return owner.archived;
  return form.closeTime === undefined ? owner.open : owner.closed;
}

function formOf(form: OwnedForm, { root, csrf, language }: View): Html {
  const { owner } = language;
  const status = html`<span class="tag">${statusOf(form, language)}</span>`;
  const created = fill(owner.created, {
    date: dayInWords(timestampDate(present(form.createTime)), language.tag),
  });
  if (!form.confirmed) {
    return html`<h2>${form.name} ${status}</h2>
<p>${owner.unconfirmedText}</p>
${buttonForm({ action: `${root}owner/forms/${form.id}/confirm`, csrf, label: owner.confirmButton })}`;
  }
  return html`<h2><a href="${root}owner/forms/${form.id}">${form.name}</a> ${status}</h2>
<p class="note">${owner.answers}: ${form.acceptedCount}${form.spamCount > 0 && html` · ${owner.spam}: ${form.spamCount}`} · ${created}</p>`;
}

type View = { root: string; csrf: string; language: OwnerLanguage };

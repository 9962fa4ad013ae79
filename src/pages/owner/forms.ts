import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type { Request } from 'express';
import { FormAvailability, type OwnedForm, OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { present } from '../../http/shape.ts';
import { dayInWords, inDigits, shortDayInWords } from '../../text/quantities.ts';
import { fill, fillCount, type Language } from '../../text/words.ts';
import { rootOf } from '../layout.ts';
import { answerAt, type HandleOwner, idIn, type OwnerExchange, queryOf } from './handler.ts';
import { banner, buttonForm, type OwnerContent } from './layout.ts';
import { sessionsOf } from './sign-in.ts';

const { method: rpcs } = OwnersService;

/** Lists the owner's forms, newest first. */
export const showForms: HandleOwner = async (exchange) => {
  const { request, call, language, csrf } = exchange;
  const pageToken = queryOf(request, 'page');
  const { forms, nextPageToken } = await call(rpcs.listOwnedForms, { pageToken });
  const { owner } = language;
  const root = rootOf(request);
  const done = exchange.cookies.takeDone();
  const body = html`<h1>${owner.title}</h1>
${banner(done, ['doneReopened', 'doneSignedOut', 'doneFormDeleted'], language)}
${
  forms.length === 0 &&
  html`<p class="lead">${owner.noForms}</p>
<p><a class="button" href="${root}new">${owner.createForm}</a></p>`
}
<ul class="forms">${forms.map(
    (form) => html`<li>${formOf(form, { root, csrf, language })}</li>
`,
  )}</ul>
${nextPageToken !== '' && html`<p><a href="${root}owner?page=${nextPageToken}">${owner.more}</a></p>`}
${await sessionsOf(exchange)}`;
  return { title: owner.title, body, script: true };
};

/** Confirms that a form belongs to the owner. */
export const confirmForm: HandleOwner = async (exchange) => {
  const { request } = exchange;
  const formId = idIn(request);
  await exchange.call(rpcs.confirmOwnedForm, { formId });
  return answerAt(exchange, `${rootOf(request)}owner/forms/${formId}`, 'doneConfirmed');
};

/** What stands beside the name of a form. */
function statusOf(form: OwnedForm, { owner, tag }: Language): string {
  const closedSince = (time: Timestamp | undefined) =>
    fill(owner.closedSince, { date: shortDayInWords(timestampDate(present(time)), tag) });
  if (!form.confirmed) return owner.unconfirmed;
  switch (form.availability) {
    case FormAvailability.UNSPECIFIED:
    case FormAvailability.OPEN:
      return owner.open;
    case FormAvailability.CLOSED:
      return closedSince(form.closeTime);
    case FormAvailability.ENDED:
      return closedSince(form.settingsCloseTime);
    case FormAvailability.FULL: {
      const { count, max } = present(form.submissionLimit);
      return fill(owner.full, { count: inDigits(count, tag), max: inDigits(max, tag) });
    }
    case FormAvailability.ARCHIVED:
      return owner.archived;
    default:
      return form.availability satisfies never;
  }
}

/** Whether a form takes responses, and what its owner can do about it, with a button if that is a thing to do here. */
export function openingOf(form: OwnedForm, { owner }: Language, { base, csrf, more }: Place): Html {
  const { text, action, label } = openings(owner)[form.availability];
  return html`<p>${text}</p>
${action !== undefined && buttonForm({ action: `${base}/${action}`, csrf, label, quiet: action === 'close', more })}`;
}

/** A form that closed by itself is opened again by what its text says. */
function openings(owner: Language['owner']): Record<FormAvailability, Opening> {
  const open = { text: owner.openText, action: 'close', label: owner.closeButton } as const;
  return {
    [FormAvailability.UNSPECIFIED]: open,
    [FormAvailability.OPEN]: open,
    [FormAvailability.CLOSED]: { text: owner.closedText, action: 'reopen', label: owner.reopenButton },
    [FormAvailability.ENDED]: { text: owner.endedText },
    [FormAvailability.FULL]: { text: owner.fullText },
    [FormAvailability.ARCHIVED]: { text: owner.archivedText },
  };
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
<p class="note">${countOf(form.acceptedCount, language)}${unreadOf(form, language)}${form.spamCount > 0 && html` · ${owner.spam}: ${form.spamCount}`} · ${created}</p>
${form.availability !== FormAvailability.OPEN && openingOf(form, language, { base: `${root}owner/forms/${form.id}`, csrf, more: fromList })}`;
}

/** The list answers what was done in it. */
const fromList = html`<input type="hidden" name="from-list" value="yes">`;

/** How many responses there are, in words. */
export function countOf(count: number, { owner, tag }: Language): string {
  return fillCount(owner.responsesOne, owner.responses, count, tag);
}

/** How many of them its owner has not read, if any. */
export function unreadOf({ unreadCount }: OwnedForm, { owner, tag }: Language): Html | false {
  if (unreadCount === 0) return false;
  const count = inDigits(Math.min(unreadCount, MOST_UNREAD), tag) + (unreadCount > MOST_UNREAD ? '+' : '');
  return html` · <strong>${fill(owner.unread, { n: count })}</strong>`;
}

/** The service counts one more. */
const MOST_UNREAD = 99;

/** `base` is the relative address of the form's pages. */
type Place = { base: string; csrf: string; more?: Html };

type Opening = { text: string } & (
  | { action: 'close' | 'reopen'; label: string }
  | { action?: undefined; label?: undefined }
);

type View = { root: string; csrf: string; language: Language };

/** The form that the path names; one that the owner has not confirmed is confirmed on the list, where this leads. */
export async function formIn({ request, response, call }: OwnerExchange): Promise<OwnedForm | undefined> {
  const formId = idIn(request);
  const read = await call(rpcs.getOwnedForm, { formId }).catch(undefinedFor('conflict'));
  if (read === undefined) response.redirect(303, `${rootOf(request)}owner`);
  return read && present(read.form);
}

/** Handles a request for one form of the owner, which the path names. */
export function withForm(
  handle: (
    exchange: OwnerExchange,
    form: OwnedForm,
  ) => OwnerContent | undefined | Promise<OwnerContent | undefined>,
): HandleOwner {
  return async (exchange) => {
    const form = await formIn(exchange);
    return form && handle(exchange, form);
  };
}

/** The name of a form, how it stands, and links to its pages; `here` is shown. */
export function renderFormHead(form: OwnedForm, here: FormPage, request: Request, language: Language): Html {
  const { owner } = language;
  const base = formUrl(request, form);
  const pages: (readonly [FormPage, string, string])[] = [
    ['answers', owner.answers, base],
    ['charts', owner.charts, `${base}/charts`],
    ...(form.share === undefined ? [] : [['share', owner.share, `${base}/share`] as const]),
    ['settings', owner.settings, `${base}/settings`],
  ];
  return html`<h1><bdi>${form.name}</bdi> <span class="tag">${statusOf(form, language)}</span></h1>
<nav class="tabs" aria-label="${form.name}">${pages.map(
    ([page, name, url]) =>
      html`<a${attributes({ href: url, 'aria-current': page === here && 'page' })}>${name}</a>\n`,
  )}</nav>
${here !== 'settings' && form.availability !== FormAvailability.OPEN && html`<p class="notice">${openings(owner)[form.availability].text}</p>`}`;
}

/** The relative address of a form's first page. */
export function formUrl(request: Request, { id }: OwnedForm): string {
  return `${rootOf(request)}owner/forms/${id}`;
}

type FormPage = 'answers' | 'charts' | 'share' | 'settings';

import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type FormDefinition, FormFieldType } from '../../../gen/headlessforms/v1/definition_pb.js';
import {
  type OwnedForm,
  type OwnedSubmission,
  OwnersService,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import { ExportFormat, SubmissionStatus } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { boundsOfDay } from '../../domain/text/days.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { lastOf } from '../../http/multipart.ts';
import { sendMessages } from '../../http/reply.ts';
import { present } from '../../http/shape.ts';
import { inDigits, momentInWords, timeInWords } from '../../text/quantities.ts';
import { oneLine } from '../../text/untrusted.ts';
import { fill, type Language } from '../../text/words.ts';
import { inputField, rootOf } from '../layout.ts';
import { countOf, formIn, formUrl, renderFormHead, unreadOf, withForm } from './forms.ts';
import { answerAt, type HandleOwner, idIn, type OwnerExchange, queryOf, redirect } from './handler.ts';
import { banner, buttonForm, csrfInput, dataTable, type OwnerContent } from './layout.ts';
import { noResponsesYet } from './share.ts';

const { method: rpcs } = OwnersService;

/** Shows a form's answers as a table, newest first. */
export const showSubmissions = withForm(async (exchange, form) => {
  const { request, call } = exchange;
  const filter = { ...readFilter((name) => queryOf(request, name)), text: '' };
  const { submissions, nextPageToken, previousPageToken } = await call(rpcs.listOwnedSubmissions, {
    formId: form.id,
    filter: filterToMessage(filter, exchange.cookies.timeZone()),
    pageToken: filter.page,
  });
  return tablePage(exchange, { form, filter, submissions, nextPageToken, previousPageToken });
});

/** Shows the answers that a filter finds. Without a text its address holds the filter, so that it can be kept. */
export const postSearch: HandleOwner = async (exchange) => {
  const { request, response, call, inputs, language } = exchange;
  const filter = readFilter((name) => lastOf(inputs, name));
  if (filter.text === '') return redirect(response, `../${idIn(request)}${queryOfFilter(filter)}`);
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const { text, page: pageToken } = filter;
  const found = await call(rpcs.searchOwnedSubmissions, {
    formId: form.id,
    text,
    filter: filterToMessage(filter, exchange.cookies.timeZone()),
    pageToken,
  }).catch(undefinedFor('invalid'));
  if (found === undefined) {
    const problem = language.owner.wrongSearch;
    return tablePage(exchange, { form, filter, submissions: [], nextPageToken: '', problem });
  }
  return tablePage(exchange, { form, filter, ...found, searched: found });
};

/** Keeps in the browser which fields the list has as columns. */
export const chooseColumns = withForm(({ request, response, inputs, cookies }, form) => {
  const chosen = new Set(inputs.get('column'));
  const ids = columnsIn(form).flatMap(({ id }) => (chosen.has(id) ? [id] : []));
  cookies.setColumns(form.id, ids.slice(0, MAX_CHOSEN));
  return answerAt({ response, cookies }, formUrl(request, form), 'doneColumns');
});

/** Marks all submissions as read that the list has shown. */
export const postRead: HandleOwner = async (exchange) => {
  const { request, call, inputs } = exchange;
  const formId = idIn(request);
  await call(rpcs.markOwnedSubmissionsRead, { formId, submissionId: lastOf(inputs, 'newest') });
  return answerAt(exchange, `${rootOf(request)}owner/forms/${formId}`, 'doneRead');
};

/** Sends all accepted answers of a form as a file. */
export const postExport = withForm(async ({ response, receive, inputs, language, now }, form) => {
  const isCsv = lastOf(inputs, 'format') !== 'ndjson';
  const file = receive(rpcs.exportOwnedSubmissions, {
    formId: form.id,
    ...(isCsv ? { format: ExportFormat.CSV, people: forPeople(language) } : { format: ExportFormat.NDJSON }),
  });
  const first = await file.next();
  response.attachment(`${fileNameOf(form, now())}.${isCsv ? 'csv' : 'ndjson'}`);
  response.setHeader('content-type', isCsv ? 'text/csv; charset=utf-8' : 'application/x-ndjson');
  await sendMessages(response, first, file, ({ data }) => data);
  return undefined;
});

/** Spreadsheets of languages with a decimal comma part cells by semicolons. */
function forPeople({ owner, tag }: Language) {
  const hasComma = new Intl.NumberFormat(tag).format(1.5).includes(',');
  return {
    delimiter: hasComma ? ';' : ',',
    language: tag,
    received: `${owner.received} (UTC)`,
    reference: owner.answerId,
  };
}

/** Such as `cake-orders-2026-11-23`. */
function fileNameOf({ name }: OwnedForm, now: number): string {
  const words = name.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ['responses'];
  const day = new Date(now).toISOString().slice(0, 10);
  return `${words.join('-').slice(0, MAX_FILE_NAME)}-${day}`;
}

const MAX_FILE_NAME = 60;

function tablePage({ request, language, csrf, cookies }: OwnerExchange, shown: Shown): OwnerContent {
  const { form, filter, submissions, nextPageToken, previousPageToken, searched, problem } = shown;
  const { owner } = language;
  const base = `${rootOf(request)}owner`;
  const here = formUrl(request, form);
  const action = `${here}/search`;
  const more =
    nextPageToken !== '' &&
    (searched === undefined
      ? html`<a class="button quiet" href="${here}${queryOfFilter(filter, nextPageToken)}">${owner.more}</a>`
      : nextPageForm(filter, { action, csrf, language, page: nextPageToken }));
  const isLater = filter.page !== '';
  const isNewest = !isLater && queryOfFilter(filter) === '' && searched === undefined;
  const newest = submissions[0]?.submission?.id;
  const chosen = cookies.columns(form.id);
  const isUnused = isNewest && form.acceptedCount + form.spamCount === 0;
  const body = html`${renderFormHead(form, 'answers', request, language)}
${banner(cookies.takeDone(), ['doneConfirmed', 'doneTakenOver', 'doneDeleted', 'doneRead', 'doneColumns'], language)}
${!isUnused && filterForm(filter, { action, csrf, language, ...(problem !== undefined && { problem }) })}
${
  submissions.length === 0
    ? emptyList(form, filter, here, language)
    : html`<div class="count"><p>${countOf(filter.spam ? form.spamCount : form.acceptedCount, language)}${unreadOf(form, language)}</p>
${isNewest && form.unreadCount > 0 && buttonForm({ action: `${here}/read`, csrf, label: owner.markRead, quiet: true, more: html`<input type="hidden" name="newest" value="${newest}">` })}</div>
${tableOf(form, submissions, base, { language, chosen })}`
}
${searched !== undefined && html`<p class="note" role="status">${searchedText(shown, searched, language)}</p>`}
<div class="actions">${
    previousPageToken !== undefined &&
    isLater &&
    html`<a class="button quiet" rel="prev" href="${here}${queryOfFilter(filter, previousPageToken)}">${owner.newer}</a>`
  }${more}${isLater && html`<a href="${here}${queryOfFilter(filter)}">${owner.newest}</a>`}</div>
${submissions.length > 0 && columnsForm(form, { action: `${here}/columns`, csrf, language, chosen })}
${form.acceptedCount > 0 && exportForm(`${here}/export`, csrf, language)}
${isNewest && form.ignoredNames.length > 0 && ignoredOf(form, language)}`;
  return { title: form.name, body, script: true, status: problem === undefined ? 200 : 422 };
}

/** How many were found is known where one page shows them all. */
function searchedText(
  { filter, submissions, nextPageToken }: Shown,
  searched: Searched,
  language: Language,
): string {
  const { owner, tag } = language;
  const isWhole = filter.page === '' && nextPageToken === '';
  const text = isWhole ? owner.searchedAll : owner.searchedMore;
  return fill(searched.truncated ? owner.searchedNewest : text, {
    found: inDigits(submissions.length, tag),
    count: inDigits(searched.searchedCount, tag),
  });
}

function emptyList(form: OwnedForm, { spam }: Filter, here: string, language: Language): Html {
  if (!spam && form.acceptedCount === 0) return noResponsesYet(form, here, language);
  return html`<p class="lead">${spam && form.spamCount === 0 ? language.owner.noAnswers : language.owner.nothingFound}</p>`;
}

function tableOf(
  form: OwnedForm,
  rows: OwnedSubmission[],
  base: string,
  { language, chosen }: { language: Language; chosen: readonly string[] },
): Html {
  const { owner } = language;
  const fields = shownColumns(form, chosen);
  return dataTable(
    owner.answers,
    [owner.received, ...fields.map(({ label }) => label)],
    rows.map(({ submission, texts }) => {
      const { id, createTime, status } = present(submission);
      const isUnread = status === SubmissionStatus.ACCEPTED && id > form.readSubmissionId;
      const time = timestampDate(present(createTime));
      const byField = new Map(texts.map(({ fieldId, text }) => [fieldId, text]));
      return html`<tr${attributes({ class: isUnread && 'unread' })}><th scope="row"><a href="${base}/submissions/${id}"><time datetime="${time.toISOString()}" title="${timeInWords(time, language.tag)}">${momentInWords(time, language.tag)}</time></a>${isUnread && html` <span class="tag">${owner.unreadTag}</span>`}</th>
${fields.map(({ id, type, label }) => {
  const text = byField.get(id) ?? '';
  return html`<td${attributes({ 'data-label': label, class: text === '' ? 'empty' : undefined })}><div class="${isUnbroken.has(type) ? 'cut line' : 'cut'}" dir="auto">${text}</div></td>`;
})}</tr>
`;
    }),
    true,
  );
}

/** What a form asks or asked that a list can show. */
function columnsIn({ definition, fieldLabels, formerFieldIds }: OwnedForm) {
  const former = formerFieldIds.map((id) => ({ id, type: FormFieldType.UNSPECIFIED, label: '' }));
  return [...present<FormDefinition>(definition).fields, ...former]
    .filter(({ type }) => type !== FormFieldType.STATEMENT)
    .map(({ id, type, label }) => ({ id, type, label: oneLine(fieldLabels[id] || label || id) }));
}

/** Those that were chosen; else the first ones. */
function shownColumns(form: OwnedForm, chosen: readonly string[]) {
  const all = columnsIn(form);
  const wanted = all.filter(({ id }) => chosen.includes(id));
  return wanted.length > 0 ? wanted : all.slice(0, MAX_COLUMNS);
}

/** Chooses which fields the list shows. */
function columnsForm(
  form: OwnedForm,
  { action, csrf, language, chosen }: FilterView & { chosen: readonly string[] },
): Html | false {
  const { owner } = language;
  const all = columnsIn(form);
  const shown = new Set(shownColumns(form, chosen).map(({ id }) => id));
  return (
    all.length > 1 &&
    html`<details><summary>${owner.columns}</summary>
<form method="post" action="${action}">${csrfInput(csrf)}<fieldset class="columns"><legend>${fill(owner.columnsText, { max: inDigits(MAX_CHOSEN, language.tag) })}</legend>
${all.map(
  (field) =>
    html`<label class="choice"><input${attributes({ type: 'checkbox', name: 'column', value: field.id, checked: shown.has(field.id) })}><span dir="auto">${field.label}</span></label>
`,
)}</fieldset>
<button class="quiet">${owner.columnsButton}</button></form></details>`
  );
}

/** Tells of what the owner's site sends in vain. */
function ignoredOf({ ignoredNames }: OwnedForm, { owner, tag }: Language): Html {
  const rows = ignoredNames.map(({ name, count, lastTime }) => {
    const last = timestampDate(present(lastTime));
    return html`<tr><th scope="row" dir="auto">${name || owner.ignoredOthers}</th><td>${inDigits(count, tag)}</td><td><time datetime="${last.toISOString()}">${momentInWords(last, tag)}</time></td></tr>\n`;
  });
  return html`<h2>${owner.ignored}</h2>
<p>${owner.ignoredText}</p>
${dataTable(owner.ignored, [owner.ignoredName, owner.number, owner.ignoredLast], rows)}`;
}

function exportForm(action: string, csrf: string, { owner }: Language): Html {
  return html`<h2>${owner.export}</h2>
<form class="inline" method="post" action="${action}">${csrfInput(csrf)}
<button class="quiet" name="format" value="csv">${owner.csv}</button>
<button class="quiet" name="format" value="ndjson">${owner.ndjson}</button></form>`;
}

/** Addresses are read as one word. */
const isUnbroken = new Set([FormFieldType.EMAIL, FormFieldType.PHONE]);

/** What fits beside each other; a submission's page shows the others. */
const MAX_COLUMNS = 8;

/** A browser keeps 4 KiB of a cookie, and an id has up to 64 characters. */
const MAX_CHOSEN = 20;

type Shown = {
  form: OwnedForm;
  filter: Filter;
  submissions: OwnedSubmission[];
  nextPageToken: string;
  /** Absent where submissions were searched for. */
  previousPageToken?: string;
  /** How much was searched. */
  searched?: Searched;
  /** What is wrong with the text to search for. */
  problem?: string;
};

type Searched = { searchedCount: number; truncated: boolean };

/** Reads which answers to show; `valueIn` gives the value of a query parameter or of an input. */
export function readFilter(valueIn: (name: string) => string): Filter {
  const day = (name: string) => (isDay(valueIn(name)) ? valueIn(name) : '');
  return {
    spam: valueIn('status') === 'spam',
    from: day('from'),
    until: day('until'),
    text: valueIn('text').trim(),
    page: valueIn('page'),
  };
}

/** The same as the RPCs take it: whole days in the owner's time zone, the last one included. */
export function filterToMessage({ spam, from, until }: Filter, timeZone: string) {
  return {
    status: spam ? SubmissionStatus.SPAM : SubmissionStatus.ACCEPTED,
    ...(from !== '' && { createdAfter: timestampFromMs(boundsOfDay(from, timeZone)[0]) }),
    ...(until !== '' && { createdBefore: timestampFromMs(boundsOfDay(until, timeZone)[1]) }),
  };
}

/** The query of a filter, which never holds a text that was searched for; with `?` if it is not empty. */
function queryOfFilter({ spam, from, until }: Filter, page = ''): string {
  const query = new URLSearchParams({
    ...(spam && { status: 'spam' }),
    ...(from !== '' && { from }),
    ...(until !== '' && { until }),
    ...(page !== '' && { page }),
  });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** The form that chooses which answers to show. It is posted, so that no address holds what was searched for. */
function filterForm(filter: Filter, { action, csrf, language, problem }: FilterView): Html {
  const { owner, words } = language;
  const { spam, text } = filter;
  const described = problem === undefined ? 'filter.note' : 'text.error filter.note';
  const search = { type: 'search', maxlength: 200, autocomplete: 'off', 'aria-describedby': described };
  const option = (value: string, label: string, selected: boolean) =>
    html`<option${attributes({ value, selected })}>${label}</option>`;
  return html`<form class="filter" method="post" action="${action}" role="search">${csrfInput(csrf)}
${inputField({ id: 'text', label: owner.search, problem, words }, { name: 'text', ...search, value: text })}
<div class="field"><label for="status">${owner.show}</label>
<select class="control" id="status" name="status">${option('', owner.answers, !spam)}${option('spam', owner.spam, spam)}</select></div>
${dayInputs(filter, language)}
<p class="note" id="filter.note">${fill(owner.searchNote, { count: inDigits(MAX_SEARCHED, language.tag) })}</p>
</form>`;
}

/** The inputs of the first and the last day, and the button. */
export function dayInputs({ from, until }: Pick<Filter, 'from' | 'until'>, { owner }: Language): Html {
  return html`<div class="field"><label for="from">${owner.from}</label>
<input class="control" id="from" name="from" type="date"${attributes({ value: from })}></div>
<div class="field"><label for="until">${owner.until}</label>
<input class="control" id="until" name="until" type="date"${attributes({ value: until })}></div>
<div class="field"><button>${owner.filter}</button></div>`;
}

/** A form that shows the next page of what was searched for. */
function nextPageForm(filter: Filter, { action, csrf, language, page }: FilterView & { page: string }): Html {
  const { spam, from, until, text } = filter;
  const inputs = Object.entries({ text, status: spam ? 'spam' : '', from, until, page });
  return html`<form class="inline" method="post" action="${action}">${csrfInput(csrf)}${inputs.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<button class="quiet">${language.owner.more}</button></form>`;
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}

/** As `SearchOwnedSubmissions` promises. */
const MAX_SEARCHED = 10_000;

/** Which answers are shown. Days as `YYYY-MM-DD`; empty: any. */
type Filter = { spam: boolean; from: string; until: string; text: string; page: string };

type FilterView = { action: string; csrf: string; language: Language; problem?: string };

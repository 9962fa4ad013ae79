import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { FormDefinition } from '../../../gen/headlessforms/v1/definition_pb.js';
import {
  type OwnedForm,
  type OwnedSubmission,
  OwnersService,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import { ExportFormat } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import { undefinedFor } from '../../http/errors.ts';
import { lastOf } from '../../http/multipart.ts';
import { sendMessages } from '../../http/reply.ts';
import { present } from '../../http/shape.ts';
import { inDigits, timeInWords } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { rootOf } from '../layout.ts';
import {
  type Filter,
  filterForm,
  filterToMessage,
  nextPageForm,
  queryOfFilter,
  readFilter,
} from './filter.ts';
import { formHead, formIn, formUrl } from './forms.ts';
import { type HandleOwner, idIn, type OwnerExchange, queryOf, redirect } from './handler.ts';
import { csrfInput, dataTable, type OwnerContent } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Shows a form's answers as a table, newest first. */
export const showSubmissions: HandleOwner = async (exchange) => {
  const { request, call } = exchange;
  const filter = { ...readFilter((name) => queryOf(request, name)), text: '' };
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const { submissions, nextPageToken } = await call(rpcs.listOwnedSubmissions, {
    formId: form.id,
    filter: filterToMessage(filter),
    pageToken: filter.page,
  });
  return tablePage(exchange, { form, filter, submissions, nextPageToken });
};

/** Shows the answers that a filter finds. Without a text its address holds the filter, so that it can be kept. */
export const searchSubmissions: HandleOwner = async (exchange) => {
  const { request, response, call, inputs, language } = exchange;
  const filter = readFilter((name) => lastOf(inputs, name));
  if (filter.text === '') return redirect(response, `../${idIn(request)}${queryOfFilter(filter)}`);
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const { text, page: pageToken } = filter;
  const found = await call(rpcs.searchOwnedSubmissions, {
    formId: form.id,
    text,
    filter: filterToMessage(filter),
    pageToken,
  }).catch(undefinedFor('invalid'));
  if (found === undefined) {
    const problem = language.owner.wrongSearch;
    return tablePage(exchange, { form, filter, submissions: [], nextPageToken: '', problem });
  }
  return tablePage(exchange, { form, filter, ...found, searched: found });
};

/** Sends all accepted answers of a form as a file. */
export const exportSubmissions: HandleOwner = async ({ request, response, receive, inputs }) => {
  const isCsv = lastOf(inputs, 'format') !== 'ndjson';
  const formId = idIn(request);
  const file = receive(rpcs.exportOwnedSubmissions, {
    formId,
    format: isCsv ? ExportFormat.CSV : ExportFormat.NDJSON,
  });
  const first = await file.next();
  response.attachment(`${formId}.${isCsv ? 'csv' : 'ndjson'}`);
  response.setHeader('content-type', isCsv ? 'text/csv; charset=utf-8' : 'application/x-ndjson');
  await sendMessages(response, first, file, ({ data }) => data);
  return undefined;
};

function tablePage({ request, language, csrf }: OwnerExchange, shown: Shown): OwnerContent {
  const { form, filter, submissions, nextPageToken, searched, problem } = shown;
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
  const body = html`${formHead(form, 'answers', request, language)}
${filterForm(filter, { action, csrf, language, ...(problem !== undefined && { problem }) })}
${submissions.length === 0 ? html`<p class="lead">${isEmpty(form, filter) ? owner.noAnswers : owner.nothingFound}</p>` : tableOf(form, submissions, base, language)}
${searched !== undefined && html`<p class="note" role="status">${fill(searched.truncated ? owner.searchedNewest : owner.searchedAll, { count: inDigits(searched.searchedCount, language.tag) })}</p>`}
<div class="actions">${more}${isLater && html`<a href="${here}${queryOfFilter(filter)}">${owner.newest}</a>`}</div>
${form.acceptedCount > 0 && exportForm(`${here}/export`, csrf, language)}`;
  return { title: form.name, body, status: problem === undefined ? 200 : 422 };
}

function isEmpty({ acceptedCount, spamCount }: OwnedForm, { spam }: Filter): boolean {
  return (spam ? spamCount : acceptedCount) === 0;
}

function tableOf(form: OwnedForm, rows: OwnedSubmission[], base: string, language: Language): Html {
  const { owner } = language;
  const fields = present<FormDefinition>(form.definition).fields.slice(0, MAX_COLUMNS);
  return dataTable(
    owner.answers,
    [owner.received, ...fields.map(({ id, label }) => label || id)],
    rows.map(({ submission, texts }) => {
      const { id, createTime } = present(submission);
      const time = timestampDate(present(createTime));
      const byField = new Map(texts.map(({ fieldId, text }) => [fieldId, text]));
      return html`<tr><th scope="row"><a href="${base}/submissions/${id}"><time datetime="${time.toISOString()}">${timeInWords(time, language.tag)}</time></a></th>
${fields.map((field) => html`<td><div class="cut" dir="auto">${byField.get(field.id) ?? ''}</div></td>`)}</tr>
`;
    }),
  );
}

function exportForm(action: string, csrf: string, { owner }: Language): Html {
  return html`<h2>${owner.export}</h2>
<form class="inline" method="post" action="${action}">${csrfInput(csrf)}
<button class="quiet" name="format" value="csv">${owner.csv}</button>
<button class="quiet" name="format" value="ndjson">${owner.ndjson}</button></form>`;
}

/** What fits beside each other; a submission's page shows the others. */
const MAX_COLUMNS = 8;

type Shown = {
  form: OwnedForm;
  filter: Filter;
  submissions: OwnedSubmission[];
  nextPageToken: string;
  /** How much was searched. */
  searched?: { searchedCount: number; truncated: boolean };
  /** What is wrong with the text to search for. */
  problem?: string;
};

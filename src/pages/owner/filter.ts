import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { OwnedSubmissionFilterSchema } from '../../../gen/headlessforms/v1/owners_pb.js';
import { SubmissionStatus } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { DAY_MS } from '../../domain/limits/limits.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { inDigits } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { csrfInput } from './layout.ts';

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

/** The same as the RPCs take it: whole days in UTC, the last one included. */
export function filterToMessage({
  spam,
  from,
  until,
}: Filter): MessageInitShape<typeof OwnedSubmissionFilterSchema> {
  return {
    status: spam ? SubmissionStatus.SPAM : SubmissionStatus.ACCEPTED,
    ...(from !== '' && { createdAfter: timestampFromMs(Date.parse(from)) }),
    ...(until !== '' && { createdBefore: timestampFromMs(Date.parse(until) + DAY_MS) }),
  };
}

/** The query of a filter, which never holds a text that was searched for; with `?` if it is not empty. */
export function queryOfFilter({ spam, from, until }: Filter, page = ''): string {
  const query = new URLSearchParams({
    ...(spam && { status: 'spam' }),
    ...(from !== '' && { from }),
    ...(until !== '' && { until }),
    ...(page !== '' && { page }),
  });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** The form that chooses which answers to show. It is posted, so that no address holds what was searched for. */
export function filterForm(filter: Filter, { action, csrf, language, problem }: FilterView): Html {
  const { owner, words } = language;
  const { spam, from, until, text } = filter;
  const option = (value: string, label: string, selected: boolean) =>
    html`<option${attributes({ value, selected })}>${label}</option>`;
  return html`<form class="filter" method="post" action="${action}" role="search">${csrfInput(csrf)}
<div class="${problem === undefined ? 'field' : 'field wrong'}"><label for="text">${owner.search}</label>
${problem !== undefined && html`<p class="error" id="text.error"><span class="sr">${words.error} </span>${problem}</p>`}
<input class="control" id="text" name="text" type="search" maxlength="200" autocomplete="off"${attributes({
    value: text,
    'aria-describedby': problem === undefined ? 'filter.note' : 'text.error filter.note',
    'aria-invalid': problem !== undefined && 'true',
  })}></div>
<div class="field"><label for="status">${owner.show}</label>
<select class="control" id="status" name="status">${option('', owner.answers, !spam)}${option('spam', owner.spam, spam)}</select></div>
<div class="field"><label for="from">${owner.from}</label>
<input class="control" id="from" name="from" type="date"${attributes({ value: from })}></div>
<div class="field"><label for="until">${owner.until}</label>
<input class="control" id="until" name="until" type="date"${attributes({ value: until })}></div>
<div class="field"><button>${owner.filter}</button></div>
<p class="note" id="filter.note">${fill(owner.searchNote, { count: inDigits(MAX_SEARCHED, language.tag) })}</p>
</form>`;
}

/** A form that shows the next page of what was searched for. */
export function nextPageForm(
  filter: Filter,
  { action, csrf, language, page }: FilterView & { page: string },
): Html {
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
export type Filter = { spam: boolean; from: string; until: string; text: string; page: string };

type FilterView = { action: string; csrf: string; language: Language; problem?: string };

import {
  type ChoiceCounts,
  type DayCount,
  type GetOwnedFormStatisticsResponse,
  OwnersService,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import { dayInWords, inDigits } from '../../text/quantities.ts';
import { fill, type Language } from '../../text/words.ts';
import { formHead, formIn } from './forms.ts';
import type { HandleOwner } from './handler.ts';
import { dataTable } from './layout.ts';

const { method: rpcs } = OwnersService;

/** Shows how many answers came by day, and how often each option was chosen, as charts with the numbers in tables. */
export const showCharts: HandleOwner = async (exchange) => {
  const { request, call, language } = exchange;
  const form = await formIn(exchange);
  if (form === undefined) return undefined;
  const counted = await call(rpcs.getOwnedFormStatistics, { formId: form.id });
  const { owner } = language;
  const body = html`${formHead(form, 'charts', request, language)}
<h2>${owner.byDay}</h2>
${daysOf(counted, language)}
${counted.choices.map((choice) => choiceOf(choice, language))}
<p class="note">${fill(counted.truncated ? owner.countedNewest : owner.countedAll, { count: inDigits(counted.countedCount, language.tag) })}</p>`;
  return { title: `${owner.charts}: ${form.name}`, body };
};

function daysOf({ days }: GetOwnedFormStatisticsResponse, language: Language): Html {
  const { owner } = language;
  const max = Math.max(0, ...days.map(({ count }) => count));
  const rows = days.toReversed().map(
    ({
      date,
      count,
    }) => html`<tr><th scope="row">${dayInWords(new Date(date), language.tag)}</th><td>${inDigits(count, language.tag)}</td></tr>
`,
  );
  return html`<p class="note">${fill(owner.byDayText, { max: inDigits(max, language.tag) })}</p>
${dayBars(days, max, owner.byDay)}
<details><summary>${owner.asTable}</summary>${dataTable(owner.byDay, [owner.day, owner.answers], rows)}</details>`;
}

/** One bar for each day. Attributes give the sizes, since the page's policy allows no inline style. */
function dayBars(days: DayCount[], max: number, name: string): Html {
  const bars = days.map(({ count }, n) => {
    const height = max === 0 ? 0 : Math.round((count / max) * HEIGHT);
    return html`<rect x="${n * STEP}" y="${HEIGHT - height}" width="${STEP - GAP}" height="${height}"/>`;
  });
  const width = days.length * STEP - GAP;
  return html`<svg class="days" role="img" aria-label="${name}" viewBox="0 0 ${width} ${HEIGHT + 1}">${bars}<line x1="0" x2="${width}" y1="${HEIGHT + 0.5}" y2="${HEIGHT + 0.5}"/></svg>`;
}

/** The options of a question with a bar each, beside their numbers. */
function choiceOf({ label, answeredCount, options, otherCount }: ChoiceCounts, language: Language): Html {
  const { owner } = language;
  const all = [...options, ...(otherCount > 0 ? [{ label: owner.other, count: otherCount }] : [])];
  const rows = all.map(({ label: option, count }) => {
    const width = answeredCount === 0 ? 0 : Math.min(100, Math.round((count / answeredCount) * 100));
    return html`<tr><th scope="row">${option}</th><td>${inDigits(count, language.tag)} <span class="note">${width} %</span>
<svg class="bar" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none"><rect width="${width}" height="6"/></svg></td></tr>
`;
  });
  return html`<h2>${label}</h2>
<p class="note">${fill(owner.answeredBy, { count: inDigits(answeredCount, language.tag) })}</p>
${dataTable(label, [owner.option, owner.number], rows)}`;
}

/** In units of the picture, which is as wide as the page. */
const HEIGHT = 60;
const STEP = 12;
const GAP = 3;

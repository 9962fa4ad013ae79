import {
  type ChoiceCounts,
  type DayCount,
  type GetOwnedFormStatisticsResponse,
  OwnersService,
} from '../../../gen/headlessforms/v1/owners_pb.js';
import { type Html, html } from '../../domain/text/html.ts';
import { dayInWords, inDigits, shortDayInWords } from '../../text/quantities.ts';
import { oneLine } from '../../text/untrusted.ts';
import { fill, fillCount, type Language } from '../../text/words.ts';
import { formUrl, renderFormHead, withForm } from './forms.ts';
import { queryOf } from './handler.ts';
import { dataTable } from './layout.ts';
import { noResponsesYet } from './share.ts';
import { dayInputs, filterToMessage, readFilter } from './submissions.ts';

const { method: rpcs } = OwnersService;

/** Shows how many answers came by day, and how often each option was chosen, as charts with the numbers in tables. */
export const showCharts = withForm(async ({ request, call, language, cookies }, form) => {
  const timeZone = cookies.timeZone();
  const chosen = { ...readFilter((name) => queryOf(request, name)), spam: false };
  const filter = filterToMessage(chosen, timeZone);
  const counted = await call(rpcs.getOwnedFormStatistics, { formId: form.id, timeZone, filter });
  const { owner } = language;
  const here = formUrl(request, form);
  const charts = html`<form class="filter" action="${here}/charts">${dayInputs(chosen, language)}</form>
${
  counted.countedCount === 0
    ? html`<p class="lead">${owner.nothingFound}</p>`
    : html`<h2>${owner.byDay}</h2>
${daysOf(counted, language, timeZone)}
${counted.choices.map((choice) => choice.answeredCount > 0 && choiceOf(choice, language))}
${unanswered(counted.choices, language)}
<p class="note">${fill(counted.truncated ? owner.countedNewest : owner.countedAll, { count: inDigits(counted.countedCount, language.tag) })}</p>`
}`;
  const body = html`${renderFormHead(form, 'charts', request, language)}
${form.acceptedCount === 0 ? noResponsesYet(form, here, language) : charts}`;
  return { title: `${owner.charts}: ${form.name}`, body, script: true };
});

/** The questions that nobody has answered yet, folded. */
function unanswered(choices: readonly ChoiceCounts[], { owner, tag }: Language): Html | false {
  const open = choices.filter(({ answeredCount }) => answeredCount === 0);
  if (open.length === 0) return false;
  return html`<details><summary>${fillCount(owner.unansweredOne, owner.unanswered, open.length, tag)}</summary>
<ul>${open.map(({ label }) => html`<li dir="auto">${oneLine(label)}</li>`)}</ul></details>`;
}

/** From the day of the first response on, but at least a week. */
function daysOf({ days: all }: GetOwnedFormStatisticsResponse, language: Language, zone: string): Html {
  const { owner } = language;
  const first = all.findIndex(({ count }) => count > 0);
  const days = all.slice(Math.min(first === -1 ? all.length : first, all.length - LEAST_DAYS));
  const max = Math.max(0, ...days.map(({ count }) => count));
  const rows = days
    .toReversed()
    .map(
      ({ date, count }) =>
        html`<tr><th scope="row">${dayInWords(new Date(date), language.tag)}</th><td>${inDigits(count, language.tag)}</td></tr>\n`,
    );
  return html`<p class="note" data-days>${fill(owner.byDayText, { zone, max: inDigits(max, language.tag) })}</p>
${dayBars(days, max, owner.byDay)}
<p class="axis" dir="ltr" aria-hidden="true">${[days.at(0), days.at(-1)].map((day) => html`<span dir="${language.direction}">${shortDayInWords(new Date(day?.date ?? ''), language.tag)}</span>`)}</p>
<details><summary>${owner.asTable}</summary>${dataTable(owner.byDay, [owner.day, owner.answers], rows)}</details>`;
}

/** One bar for each day. Attributes give the sizes, since the page's policy allows no inline style. */
function dayBars(days: DayCount[], max: number, name: string): Html {
  const bars = days.map(({ count }, n) => {
    const height = max === 0 ? 0 : Math.round((count / max) * HEIGHT);
    return html`<rect x="${n * STEP}" y="${HEIGHT - height}" width="${STEP - GAP}" height="${height}"/>`;
  });
  const width = days.length * STEP - GAP;
  return html`<svg class="days" role="img" aria-label="${name}" viewBox="0 0 ${width} ${HEIGHT + 1}" preserveAspectRatio="none">${bars}<line x1="0" x2="${width}" y1="${HEIGHT + 0.5}" y2="${HEIGHT + 0.5}"/></svg>`;
}

/** The options of a question with a bar each, beside their numbers. */
function choiceOf(choice: ChoiceCounts, language: Language): Html {
  const { label, answeredCount, options, otherCount, average, netPromoterScore } = choice;
  const { owner } = language;
  const decimal = new Intl.NumberFormat(language.tag, { maximumFractionDigits: 2 });
  const percent = new Intl.NumberFormat(language.tag, { style: 'percent' });
  const isRanking = options.some(({ averagePlace }) => averagePlace !== undefined);
  const others = otherCount > 0 ? [{ label: owner.other, count: otherCount, averagePlace: undefined }] : [];
  const all = [...options, ...others];
  const facts = [
    fill(owner.answeredBy, { count: inDigits(answeredCount, language.tag) }),
    ...(average === undefined ? [] : [fill(owner.average, { average: decimal.format(average) })]),
    ...(netPromoterScore === undefined
      ? []
      : [fill(owner.promoters, { score: decimal.format(netPromoterScore) })]),
  ];
  const rows = all.map(({ label: option, count, averagePlace }) => {
    if (isRanking) {
      const place = averagePlace === undefined ? '' : decimal.format(averagePlace);
      return html`<tr><th scope="row" dir="auto">${oneLine(option)}</th><td>${place}</td></tr>
`;
    }
    const width = answeredCount === 0 ? 0 : Math.min(100, Math.round((count / answeredCount) * 100));
    return html`<tr><th scope="row" dir="auto">${oneLine(option)}</th><td>${inDigits(count, language.tag)} <span class="note">· ${percent.format(width / 100)}</span>
<svg class="bar" aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none"><rect width="${width}" height="6"/></svg></td></tr>
`;
  });
  return html`<h2 dir="auto">${oneLine(label)}</h2>
<p class="note">${facts.join(' · ')}</p>
${dataTable(oneLine(label), [owner.option, isRanking ? owner.averagePlace : owner.number], rows)}`;
}

/** In units of the picture, which is as wide as the page. */
const HEIGHT = 60;
const STEP = 12;
const LEAST_DAYS = 7;
const GAP = 3;

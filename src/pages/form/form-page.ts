import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { HostedSession } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inputNames } from '../../domain/answers/answer-texts.ts';
import { REVIEW_STEP, stepsOf, visibleIds } from '../../domain/answers/steps.ts';
import { isEmpty } from '../../domain/conditions/condition.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { takesAnswer } from '../../domain/fields/field.ts';
import { fieldRules, uploadLimits } from '../../domain/fields/index.ts';
import { marksOf } from '../../domain/fields/number-text.ts';
import { ownValue } from '../../domain/json/json.ts';
import { MAX_REASON_LENGTH } from '../../domain/limits/limits.ts';
import { attributes, Html, html } from '../../domain/text/html.ts';
import type { HtmlPage } from '../../http/reply.ts';
import { momentInWords } from '../../text/quantities.ts';
import { fill, type Language, type Words } from '../../text/words.ts';
import { REMEMBERED_DAYS } from '../cookies.ts';
import { fillHtml, renderPage } from '../layout.ts';
import { renderContext } from './context.ts';
import { type FieldView, type KnownFiles, ownDir } from './controls/control-view.ts';
import { knownOf } from './controls/files.ts';
import { controlOf } from './controls/index.ts';
import type { Problem } from './field-words.ts';
import { anchorOf, canBeCleared, renderField } from './fields.ts';
import { withLinks } from './links.ts';

/**
 * The page of a form, or one of its steps.
 *
 * Without the script it posts to its own address. Hidden inputs carry the answers of other steps, and `_shown`
 * names the fields that the person saw: a box among them that is not posted was not ticked.
 */
export function renderForm(session: HostedSession, view: FormView): HtmlPage {
  const { fields, language, step, problems, otherProblems = [] } = view;
  const { words } = language;
  const visible = visibleIds(fields, view.answers);
  const steps = stepsOf(fields, visible, session.review);
  const number = steps.indexOf(step) + 1;
  const shown = fields.filter(({ page }) => page === step);
  const seen = shown.flatMap(({ id }) => (visible.has(id) ? [id] : []));
  const submit = session.submitLabel === '' ? words.submit : inTheirs(session.submitLabel, language);
  const forward = number < steps.length ? words.next : submit;
  const progress = steps.length > 1 ? fill(words.step, { step: number, steps: steps.length }) : '';
  const title = progress === '' ? session.formName : `${session.formName} – ${progress}`;
  const own = ownWords(session, view);
  const tag = view.previewNonce === undefined ? 'form' : 'div';
  const failed = (problems?.size ?? 0) > 0 || otherProblems.length > 0;

  const body = html`${view.languages}${number > 1 && own.title !== '' ? html`<p class="form-name"${ownDir(language)}>${session.formName}</p>` : html`<h1${ownDir(language)}>${session.formName}</h1>`}
${session.description !== '' && number === 1 && html`<p class="lead"${ownDir(language)}>${withLinks(session.description, language)}</p>`}
${session.context !== undefined && renderContext(session.context)}
${progress !== '' && progressBar(progress, number, steps.length)}
${heading(own, number, step, language)}
${session.correctsTime && html`<p class="notice">${fillHtml(words.correcting, { time: momentOf(timestampDate(session.correctsTime), language) })}</p>`}
${view.keptSince !== undefined && kept(view, view.keptSince)}
${failed && summary(view, shown)}
${view.revealed !== undefined && moreQuestions(view.revealed, language)}
<${tag} method="post" novalidate${attributes({
    class: tag === 'div' && 'form',
    enctype: shown.some((field) => uploadLimits(field) !== undefined) ? 'multipart/form-data' : undefined,
    ...scriptData(session, view),
    'data-uploads': view.site && 'uploads',
  })}>
${identity(session, view)}
${(step === REVIEW_STEP || shown.some((field) => controlOf(field).movesOptions || canBeCleared(field))) && firstButton}
${shown.some(({ required }) => required) && html`<p class="note">${words.requiredNote}</p>`}
${shown.map((field) => renderField(field, fieldView(field, view, visible)))}
${step === REVIEW_STEP && review(view, visible, session)}
${carried(view)}
<input type="hidden" name="_page" value="${step}">
<input type="hidden" name="_shown" value="${seen.join(' ')}">
${session.honeypot && trap(words, '_website')}
${view.site !== undefined && carriedOfSite(view.site, words)}
${session.permanent && session.allowPartial && remembering(view)}
<div class="actions"><button name="_go" value="forward">${forward}</button>${number > 1 && html`<button class="quiet" name="_go" value="back">${words.back}</button>`}</div>
<p class="status" id="status" role="status"></p>
</${tag}>
${session.allowDecline && declining(words)}
${view.site !== undefined && view.site.address !== '' && wayBack(view.site.address, words)}`;

  return renderPage({
    language,
    root: view.root,
    title: failed ? fill(words.errorTitle, { title }) : title,
    theme: session.theme,
    embedOrigins: session.embedOrigins,
    leadsTo: view.site?.address ? new URL(view.site.address).origin : session.leadsTo,
    body,
    script: view.previewNonce === undefined,
    nonce: view.previewNonce,
  });
}

function progressBar(text: string, number: number, of: number): Html {
  return html`<div class="progress"><p id="step">${text}</p>
<progress aria-labelledby="step" max="${of}" value="${number}"></progress></div>`;
}

function moreQuestions({ id, label }: Field, { words, theirs }: Language): Html {
  return html`<div class="notice" role="status" tabindex="-1" autofocus><p class="plain">${words.moreQuestions} <a href="#${id}.0"${attributes(theirs)}>${label}</a></p></div>`;
}

function fieldView(field: Field, view: FormView, visible: ReadonlySet<string>): FieldView {
  const { language, texts, problems, files, moved } = view;
  const problem = problems?.get(field.id);
  return {
    language,
    texts: texts.get(field.id) ?? [],
    parts: partsOf(field, texts),
    problem: problem?.text,
    problemParts: problem?.part === undefined ? [] : [problem.part, ...(problem.further ?? [])],
    visible: visible.has(field.id),
    files,
    moved: moved?.fieldId === field.id ? moved : undefined,
  };
}

/** What the author calls the step, or what the last one is for. */
function ownWords({ pages }: HostedSession, { step, language: { words } }: FormView): StepWords {
  if (step === REVIEW_STEP) return { title: words.reviewTitle, description: words.reviewText };
  return pages[step - 1] ?? { title: '', description: '' };
}

/** A text of the form's author within our own words. */
function inTheirs(text: string, { theirs }: Language): Html | string {
  return theirs.lang === undefined ? text : html`<span${attributes(theirs)}>${text}</span>`;
}

/** After the first step, what it is called is the page's own heading. */
function heading({ title, description }: StepWords, number: number, step: number, language: Language): Html {
  const dir = step !== REVIEW_STEP && ownDir(language);
  return html`${title !== '' && (number > 1 ? html`<h1${dir}>${title}</h1>` : html`<h2 class="step"${dir}>${title}</h2>`)}
${description !== '' && html`<p class="lead"${dir}>${withLinks(description, language)}</p>`}`;
}

type StepWords = { title: string; description: string };

/** All answers, each with a button that leads back to its step. */
function review(
  { fields, answers, language: { words, tag, theirs } }: FormView,
  visible: ReadonlySet<string>,
  { pictures }: HostedSession,
): Html {
  const own = attributes(theirs);
  return html`<dl class="review">${fields.map((field) => {
    if (!visible.has(field.id) || !takesAnswer(field)) return false;
    const answer = ownValue(answers, field.id);
    const read = isEmpty(answer) ? '' : fieldRules[field.type].inWords(answer, field, tag);
    const text = withTime(read, field.type === 'datetime' ? answer : '');
    return html`<div><dt${own}>${field.label}</dt>${text === '' ? html`<dd class="none">${words.noAnswer}</dd>` : html`<dd${own}>${pictureOf(ownValue(pictures, field.id), field.label) ?? text}</dd>`}<dd><button class="link" name="_go" value="page:${field.page}" aria-label="${fill(words.changeOf, { label: field.label })}">${words.change}</button></dd></div>
`;
  })}</dl>`;
}

/** An answer in words; the script puts an instant into the person's own time zone. */
export function withTime(text: string, instant: unknown): Html | string {
  if (typeof instant !== 'string' || Number.isNaN(Date.parse(instant))) return text;
  return html`<time datetime="${instant}" data-answer>${text}</time>`;
}

/** A drawn signature, within the page: its address would be a secret. Undefined if there is none. */
export function pictureOf(png: Uint8Array | undefined, label: string): Html | undefined {
  if (png === undefined || png.length === 0) return undefined;
  return html`<img class="preview" alt="${label}" src="data:image/png;base64,${Buffer.from(png).toString('base64')}">`;
}

/** A form of its own, so that the Enter key never declines. */
function declining(words: Words): Html {
  return html`<details class="decline"><summary>${words.decline}</summary>
<form method="post"><p class="note">${words.declineText}</p>
<div class="field"><label for="decline-reason">${words.declineReason}</label><textarea id="decline-reason" name="_reason" rows="3" maxlength="${MAX_REASON_LENGTH}" dir="auto"></textarea></div>
<div class="actions"><button class="quiet" name="_go" value="decline">${words.declineSend}</button></div></form></details>`;
}

/** Tells the page apart, and its language. It comes before the files, which may need a session. */
function identity({ permanent }: HostedSession, { issueToken, sessionId, language }: FormView): Html {
  return html`<input type="hidden" name="_issued" value="${issueToken}">
${marksOf(language.tag) !== undefined && html`<input type="hidden" name="_lang" value="${language.tag}">`}
${permanent && html`<input type="hidden" name="_session" value="${sessionId}">`}`;
}

/** The Enter key presses the first button of a form, which must not be one that moves an option. */
const firstButton = new Html(
  '<button class="sr" name="_go" value="next" tabindex="-1" aria-hidden="true"></button>',
);

function momentOf(time: Date, { tag }: Language): Html {
  return html`<time datetime="${time.toISOString()}">${momentInWords(time, tag)}</time>`;
}

/** Tells the person who opens the page that somebody's answers are in it, and offers a page without them. */
function kept({ language, sessionId }: FormView, since: Date): Html {
  return html`<form class="notice kept" method="post"><p class="plain" role="status">${fillHtml(language.words.keptSince, { time: momentOf(since, language) })}</p>
<input type="hidden" name="_session" value="${sessionId}">
<button class="quiet small" name="_go" value="restart">${language.words.startOver}</button></form>`;
}

function remembering({ language: { words }, remembers }: FormView): Html {
  const label = fill(words.remember, { days: REMEMBERED_DAYS });
  return html`<div class="field"><label class="choice"><input${attributes({ type: 'checkbox', name: '_remember', value: 'yes', checked: remembers })}><span>${label}</span></label></div>`;
}

/** Takes the focus, so that a screen reader begins with it. */
function summary(view: FormView, shown: readonly Field[]): Html {
  const { words } = view.language;
  return html`<div class="summary" role="alert" tabindex="-1" autofocus aria-labelledby="problems">
<h2 id="problems">${words.problems}</h2>
<ul>${shown.map((field) => {
    const problem = view.problems?.get(field.id);
    if (problem === undefined) return false;
    return html`<li><a href="#${anchorOf(field, problem)}">${problem.isNamed !== true && html`${inTheirs(field.label, view.language)} – `}${problem.text}</a></li>`;
  })}${view.otherProblems?.map((problem) => html`<li>${problem}</li>`)}</ul>
</div>`;
}

/** The answers of other steps, with what they stand for, which the script needs for conditions. */
function carried({ fields, step, texts, files }: FormView): Html[] {
  const others = fields.filter(({ page }) => page !== step);
  return others.flatMap((field) => {
    const kind = fieldRules[field.type].kind;
    const inputOf = (name: string, value: string) =>
      html`<input${attributes({ type: 'hidden', name, value, 'data-carried': kind })}>
${uploadLimits(field) !== undefined && knownOf(value, files)}`;
    return inputNames(field).flatMap((name) => (texts.get(name) ?? []).map((value) => inputOf(name, value)));
  });
}

/** The values of a field's further inputs, by part. */
function partsOf(field: Field, texts: FormView['texts']): Map<string, readonly string[]> {
  const [, ...names] = inputNames(field);
  return new Map(
    names.flatMap((name) => {
      const values = texts.get(name) ?? [];
      return values.length === 0 ? [] : [[name.slice(field.id.length + 1), values]];
    }),
  );
}

/** The honeypot: an input that people neither see nor reach, but that bots fill in. */
function trap(words: Words, name: string): Html {
  return html`<div class="trap" aria-hidden="true"><label>${words.leaveEmpty}<input name="${name}" tabindex="-1" autocomplete="off"></label></div>`;
}

/** What the form of somebody's own site has beside the answers. */
function carriedOfSite({ address, inputs }: NonNullable<FormView['site']>, words: Words): Html {
  const all = [...inputs, ['_site', address] as const];
  return html`${all.map(([name, value]) => html`<input${attributes({ type: 'hidden', name, value })}>`)}
${trap(words, '_gotcha')}`;
}

function wayBack(address: string, words: Words): Html {
  return html`<p><a href="${address}">${fill(words.backToSite, { site: new URL(address).host })}</a></p>`;
}

/** The settings and the words of the script. */
function scriptData({ allowPartial, maxBytes }: HostedSession, { language: { words } }: FormView) {
  return {
    'data-saves': allowPartial,
    'data-saving': words.saving,
    'data-saved': words.saved,
    'data-not-saved': words.notSaved,
    'data-offline': words.offline,
    'data-not-sent': words.notSent,
    'data-max-bytes': maxBytes,
    'data-too-long': words.allTooLong,
    'data-choose-again': words.chooseFileAgain,
    'data-zone': words.zone,
    'data-zone-utc': words.zoneUtc,
    'data-uploading': words.uploading,
    'data-upload-failed': words.uploadFailed,
    'data-remove-file': words.removeFile,
    'data-remove': words.remove,
  };
}

/** What a step is shown with. */
export type FormView = {
  language: Language;
  /** Links to the page in other languages. */
  languages?: Html | false;
  /** The relative path to the service's root. */
  root: string;
  fields: readonly Field[];
  /** The answers that decide which fields are visible. */
  answers: Record<string, unknown>;
  /** The values of the inputs by name, those of other steps too as far as they were answered. */
  texts: ReadonlyMap<string, readonly string[]>;
  /** The names of uploaded files, by upload id. */
  files: KnownFiles;
  /** The page to show. */
  step: number;
  /** What is wrong, by field id. */
  problems?: ReadonlyMap<string, Problem>;
  /** Problems that belong to no field that the person sees. */
  otherProblems?: readonly string[];
  /** Where a button has just moved an option of a ranking. */
  moved?: { fieldId: string; to: number; by: -1 | 1 } | undefined;
  /** The first of the fields that the answers just given made visible. */
  revealed?: Field | undefined;
  /** Since when the answers are kept that the person who opens the page did not give just now. */
  keptSince?: Date | undefined;
  /** Whether this device is to remember the answers. */
  remembers?: boolean;
  /** The signed time at which the person was first shown the form. */
  issueToken: string;
  /** The session of a visitor of the form's own page; empty: none. */
  sessionId: string;
  /**
   * The page is a preview within another one, whose policy allows styles with this. Nothing of it can be sent, and it
   * has no script.
   */
  previewNonce?: string;
  /** The site whose own form this one stands in for: its address, or empty, and the further inputs of its form. */
  site?: { address: string; inputs: [name: string, value: string][] };
};

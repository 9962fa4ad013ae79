import type { IncomingMessage } from 'node:http';
import type { Ending, HostedSession } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { readInputs } from '../../domain/answers/answer-texts.ts';
import { isEmpty } from '../../domain/conditions/condition.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { ownValue } from '../../domain/json/json.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { type FormInputs, lastOf } from '../../http/multipart.ts';
import type { HtmlPage } from '../../http/reply.ts';
import { fill, type Language } from '../../text/words.ts';
import { renderPage, rootOf } from '../layout.ts';
import { icon, languageOf } from '../messages.ts';
import { pictureOf, withTime } from './form-page.ts';
import { withLinks } from './links.ts';
import { shownFieldsOf } from './page-source.ts';

/**
 * The page after a submission: thanks, with a copy of the answers.
 *
 * `embedOrigins` are those of the page that was submitted, so that an embedded form stays in its frame.
 * `correctable` is the submission, if this browser may correct it.
 */
export function renderCompletion(
  ending: Ending,
  request: IncomingMessage,
  embedOrigins: string[] = [],
  correctable = '',
): HtmlPage {
  const language = languageOf(request, ending.locale, ending.linksAddresses);
  const { words } = language;
  const theirs = attributes(language.theirs);
  const answers = ending.answers.map(({ label, text, picture, instant }) => ({
    label,
    answer: pictureOf(picture, label) ?? withTime(text || words.noAnswer, instant),
  }));
  const { successMessage } = ending;
  const title = repeats(successMessage, words.thanksTitle) ? words.thanksText : words.thanksTitle;
  const [, again = '', lang] =
    /^\/f\/(form_[0-9a-z]+)(?:\?(?:.*&)?(lang=[\w-]+))?/.exec(request.url ?? '') ?? [];
  const leads = ending.redirectUrl !== '' || ending.returnUrl !== '';
  const body = html`${icon('done')}
${ending.formName !== '' && html`<p class="form-name"${theirs}>${ending.formName}</p>`}
<h1 class="done">${title}</h1>
<p class="lead" role="status"${successMessage !== '' && theirs}>${successMessage === '' ? words.thanksText : withLinks(successMessage, language)}</p>
${ending.notFollowed !== '' && html`<p class="note">${fill(words.notFollowed, { name: ending.notFollowed })}</p>`}
${ending.redirectUrl !== '' && html`<p class="actions"><a class="button" id="continue" href="${ending.redirectUrl}">${words.next}</a></p>`}
${ending.returnUrl !== '' && html`<p class="actions"><a class="button" href="${ending.returnUrl}" rel="noreferrer">${words.goBack}</a></p>`}
${answers.length > 0 && renderCopy({ text: words.copyText, answers }, language)}
${correctable !== '' && html`<p><a href="${rootOf(request)}f/${correctable}">${words.correct}</a></p>`}
${!leads && html`<p class="note">${words.closePage}${again && !ending.once && html` <a href="${again}${lang && `?${lang}`}">${words.sendAnother}</a>`}</p>`}`;
  return renderPage({
    language,
    root: rootOf(request),
    title: ending.formName === '' ? words.thanksTitle : `${words.thanksTitle} – ${ending.formName}`,
    theme: ending.theme,
    embedOrigins,
    body,
    script: true,
  });
}

/** Whether a text begins with the words of a title, which then would stand there twice. */
function repeats(text: string, title: string): boolean {
  return text.toLowerCase().startsWith(title.toLowerCase());
}

/**
 * What somebody has typed into a page, for a page that can't take it: the answers that the page showed them, good or
 * not, without files. Nothing if there are none.
 */
export function renderTyped(
  session: HostedSession,
  inputs: FormInputs,
  request: IncomingMessage,
): Html | false {
  const language = languageOf(request, session.locale);
  const { words, tag } = language;
  const fields = shownFieldsOf(session);
  const sent = [...inputs].map(([name, values]) => ({ name, values }));
  const typed = readInputs({ fields }, sent, { language: lastOf(inputs, '_lang') });
  const answers = fields.flatMap((field) => {
    const answer = ownValue(typed, field.id);
    const text = isEmpty(answer) ? '' : fieldRules[field.type].inWords(answer, field, tag);
    const instant = field.type === 'datetime' ? answer : '';
    return text.trim() === '' ? [] : [{ label: field.label, answer: withTime(text, instant) }];
  });
  return answers.length > 0 && renderCopy({ text: words.typedText, answers }, language);
}

/** Answers for a person to keep, and a button that prints them. */
function renderCopy({ text, answers }: Copy, { words, theirs }: Language): Html {
  const own = attributes(theirs);
  const rows = answers.map(
    ({ label, answer }) => html`<div><dt${own}>${label}</dt>
<dd${answer !== words.noAnswer && own}>${answer}</dd></div>
`,
  );
  return html`<section class="copy"><h2>${words.copyTitle}</h2>
<p class="note">${text}</p>
<dl>${rows}</dl>
<p class="actions" id="print" hidden><button class="quiet" type="button">${words.print}</button></p></section>`;
}

type Copy = { text: string; answers: readonly { label: string; answer: string | Html }[] };

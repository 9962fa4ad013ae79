import type { IncomingMessage } from 'node:http';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Request } from 'express';
import { type HostedSession, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { FormsService } from '../../../gen/headlessforms/v1/forms_pb.js';
import { inputTexts } from '../../domain/answers/answer-texts.ts';
import { stepFor } from '../../domain/answers/steps.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { qrSvg } from '../../domain/definition/share.ts';
import { uploadsIn } from '../../domain/fields/file.ts';
import { ownValue } from '../../domain/json/json.ts';
import { attributes, type Html, html } from '../../domain/text/html.ts';
import { prefersJson, sendPage } from '../../http/reply.ts';
import { fill, type Language } from '../../text/words.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { languageOf, renderMessage } from '../messages.ts';
import { showCodePage } from './code-page.ts';
import type { KnownFiles } from './controls/control-view.ts';
import { type FormView, renderForm } from './form-page.ts';
import { queryWith, refuseUnlessOpen, shownFieldsOf, sourceOf } from './page-source.ts';

/** Answers GET on the address of a session, or of a form: the form, on the step where the person goes on. */
export async function showForm(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const source = sourceOf(exchange);
  const session = await source.read();
  const language = languageOf(request, session.locale);
  if (session.state === HostedState.CODE_NEEDED && !prefersJson(request))
    return showCodePage(exchange, session);
  refuseUnlessOpen(session);
  if (session.lacking.length > 0) {
    const { linkIncompleteTitle: title, linkIncompleteText, askSender: next } = language.words;
    const text = fill(linkIncompleteText, { names: session.lacking.join(', ') });
    const shown = { ...session, request, language, title, text, next, icon: 'problem' } as const;
    return sendPage(response, 400, renderMessage(shown));
  }
  const fields = shownFieldsOf(session);
  const { answers = {} } = session;
  const step = stepFor(fields, answers, session.resumed, request.query.step, session.review);
  const view = viewOf(request, session, fields, { answers, step });
  const languages = languageSwitch(session, request, language);
  const keptSince = isNextStep(exchange)
    ? undefined
    : session.keptSinceTime && timestampDate(session.keptSinceTime);
  const page = renderForm(session, { ...view, languages, keptSince, remembers: source.remembers() });
  sendPage(response, 200, page);
}

/** Answers the QR code of a form's own page, as SVG. There is none where there is no such page. */
export async function showQr({ call, request, response, hostedUrl }: PageExchange): Promise<void> {
  const formId = String(request.params.sessionId);
  await call(FormsService.method.getPublicForm, { formId });
  response.set({ 'content-type': 'image/svg+xml', 'cache-control': 'public, max-age=3600' });
  response.end(qrSvg(`${hostedUrl}/f/${formId}`));
}

/** Whether the page follows the one before it, and is not opened anew: by another person, perhaps. */
function isNextStep({ request }: PageExchange): boolean {
  return request.query.step !== undefined && request.headers['sec-fetch-site'] === 'same-origin';
}

/** What a form is shown with before anything was posted to it. */
export function viewOf(
  request: IncomingMessage,
  session: HostedSession,
  fields: readonly Field[],
  state: Pick<FormView, 'answers' | 'step'>,
): FormView {
  const language = languageOf(request, session.locale, session.linksAddresses);
  return {
    language,
    texts: inputTextsOf(fields, state.answers, language),
    root: rootOf(request),
    fields,
    files: filesOf(state.answers),
    issueToken: session.issueToken,
    sessionId: session.sessionId,
    ...state,
  };
}

/** Answers as the texts of inputs in a language, by their names. */
export function inputTextsOf(
  fields: readonly Field[],
  answers: FormView['answers'],
  { tag }: Pick<Language, 'tag'>,
): Map<string, readonly string[]> {
  return new Map(
    fields.flatMap((field) => {
      const answer = ownValue(answers, field.id);
      return answer === undefined || answer === null ? [] : inputTexts(field, answer, tag);
    }),
  );
}

/** What is known of uploaded files among the answers. */
function filesOf(answers: FormView['answers']): KnownFiles {
  const files = Object.values(answers).flatMap(uploadsIn);
  return new Map(files.map(({ id, filename, size }) => [id, { name: filename, size }]));
}

/** Links to the page in the languages that it can be read in; nothing if there is but one. */
export function languageSwitch(session: HostedSession, request: Request, language: Language): Html | false {
  const { languages, locale } = session;
  if (languages.length < 2) return false;
  return html`<nav class="languages" aria-label="${language.words.language}">${languages.map((tag) => {
    const name = nameOf(tag);
    return tag === locale
      ? html`<span${attributes({ lang: tag, 'aria-current': 'true' })}>${name}</span>\n`
      : html`<a${attributes({ href: queryWith(request, { lang: tag }), lang: tag, hreflang: tag })}>${name}</a>\n`;
  })}</nav>`;
}

/** The name of a language in itself: `Deutsch`. */
function nameOf(tag: string): string {
  const name = new Intl.DisplayNames(tag, { type: 'language' }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

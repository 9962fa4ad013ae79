import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { HostedSession } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inputTexts } from '../../domain/answers/form-inputs.ts';
import { stepFor } from '../../domain/answers/steps.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { ownValue } from '../../domain/json/json.ts';
import { sendPage } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { languageOf } from '../messages.ts';
import type { KnownFiles } from './controls/control-view.ts';
import { type FormView, renderForm } from './form-page.ts';
import { languageSwitch } from './languages.ts';
import { fieldsOf, readOpen, sourceOf } from './page-source.ts';

/** Answers GET on the address of a session, or of a form: the form, on the step where the person goes on. */
export async function showForm(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const source = sourceOf(exchange);
  const session = await readOpen(source);
  const fields = fieldsOf(session);
  const { answers = {} } = session;
  const step = stepFor(fields, answers, session.resumed, request.query.step, session.review);
  const view = viewOf(exchange, session, fields, { answers, step, texts: textsOf(fields, answers) });
  const keptSince = isNextStep(exchange)
    ? undefined
    : session.keptSinceTime && timestampDate(session.keptSinceTime);
  const page = renderForm(session, { ...view, keptSince, remembers: source.remembers() });
  await sendPage(request, response, 200, page);
}

/** Whether the page follows the one before it, and is not opened anew: by another person, perhaps. */
function isNextStep({ request }: PageExchange): boolean {
  return request.query.step !== undefined && request.headers['sec-fetch-site'] === 'same-origin';
}

/** What a form is shown with before anything was posted to it. */
export function viewOf(
  { request }: PageExchange,
  session: HostedSession,
  fields: readonly Field[],
  state: Pick<FormView, 'answers' | 'step' | 'texts'>,
): FormView {
  const language = languageOf(request, session.locale);
  return {
    language,
    languages: languageSwitch(session, { request, language }),
    root: rootOf(request),
    fields,
    files: filesOf(state.answers),
    problems: new Map(),
    otherProblems: [],
    revealed: undefined,
    keptSince: undefined,
    remembers: false,
    issueToken: session.issueToken,
    sessionId: session.sessionId,
    ...state,
  };
}

/** Answers as the texts of inputs, by their names. */
export function textsOf(
  fields: readonly Field[],
  answers: FormView['answers'],
): Map<string, readonly string[]> {
  return new Map(
    fields.flatMap((field) => {
      const answer = ownValue(answers, field.id);
      return answer === undefined || answer === null ? [] : inputTexts(field, answer);
    }),
  );
}

/** What is known of uploaded files among the answers. */
function filesOf(answers: FormView['answers']): KnownFiles {
  const files = Object.values(answers)
    .flatMap(listOf)
    .filter((answer) => typeof answer === 'object' && answer !== null && 'filename' in answer);
  const valueAt = (file: unknown, name: string): unknown => Reflect.get(Object(file), name);
  return new Map(
    files.map((file) => [
      String(valueAt(file, 'upload_id')),
      { name: String(valueAt(file, 'filename')), size: Number(valueAt(file, 'size')) },
    ]),
  );
}

function listOf(answer: unknown): unknown[] {
  return Array.isArray(answer) ? answer : [answer];
}

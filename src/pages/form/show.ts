import type { HostedSession } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { inputTexts } from '../../domain/answers/form-inputs.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { sendPage } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { rootOf } from '../layout.ts';
import { languageOf } from '../messages.ts';
import type { KnownFiles } from './controls/control-view.ts';
import { type FormView, renderForm } from './form-page.ts';
import { languageSwitch } from './languages.ts';
import { type Answers, fieldsOf, stepFor } from './steps.ts';
import { readOpen } from './visit.ts';
import { visitOf } from './visit-of.ts';

/** Answers GET on the address of a session, or of a form: the form, on the step where the person goes on. */
export async function showForm(exchange: PageExchange): Promise<void> {
  const { request, response } = exchange;
  const session = await readOpen(visitOf(exchange));
  const fields = fieldsOf(session);
  const answers: Answers = session.answers ?? {};
  const step = stepFor(fields, answers, session.resumed, request.query.step, session.review);
  const view = viewOf(exchange, session, fields, { answers, step, texts: textsOf(fields, answers) });
  await sendPage(request, response, 200, renderForm(session, view));
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
    issueToken: session.issueToken,
    sessionId: session.sessionId,
    ...state,
  };
}

/** Answers as the texts of inputs, by their names. */
export function textsOf(fields: readonly Field[], answers: Answers): Map<string, readonly string[]> {
  return new Map(
    fields.flatMap((field) => {
      const answer = Object.hasOwn(answers, field.id) ? answers[field.id] : undefined;
      return answer === undefined || answer === null ? [] : inputTexts(field, answer);
    }),
  );
}

/** What is known of uploaded files among the answers. */
function filesOf(answers: Answers): KnownFiles {
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

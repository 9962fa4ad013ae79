import { type Ending, HostedGoal, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { inputNames, readInputs } from '../../domain/answers/answer-texts.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { failed, violationFromMessage, violationToMessage } from '../../domain/errors/failure.ts';
import { ownValue } from '../../domain/json/json.ts';
import { restErrorOf } from '../../http/errors.ts';
import { type FormInputs, isFormPost, lastOf, readFormInputs } from '../../http/multipart.ts';
import { prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { postCode, showCodePage } from './code-page.ts';
import { renderCompletion, renderTyped } from './completion-page.ts';
import { controlOf } from './controls/index.ts';
import { type Move, movedOrder } from './controls/ranking.ts';
import { problemsOf } from './field-words.ts';
import { renderForm } from './form-page.ts';
import { type PageSource, queryWith, readOpen, shownFieldsOf, sourceOf } from './page-source.ts';
import { inputsOf, type Posted, PostedFiles, type PostGoal, readPosted } from './read-post.ts';
import { inputTextsOf, languageSwitch, viewOf } from './show.ts';

/** Answers POST on the address of a session, or of a form: saves, goes to another step, or submits. */
export async function postForm(exchange: PageExchange): Promise<void> {
  const { request } = exchange;
  const source = sourceOf(exchange);
  const files = new PostedFiles();
  let inputs: FormInputs = new Map();
  try {
    // A page that accepts no answers says so, whatever was posted to it.
    if (!isFormPost(request)) await readOpen(source);
    inputs = await readFormInputs(request, (file, before) => files.take(exchange, source, file, before()));
    if (await postCode(exchange, source, inputs)) return;
    await answer({ ...exchange, source, inputs, posted: readPosted(inputs, files) });
  } catch (error) {
    // An error page looks like the form, and shows what was typed: the person may have it nowhere else.
    if (exchange.session === undefined && !prefersJson(request)) {
      await source.read({ inputs, anyOrigin: true }).catch(() => undefined);
    }
    const { session } = exchange;
    if (
      session?.state === HostedState.CODE_NEEDED &&
      restErrorOf(error).reason === 'code_needed' &&
      !prefersJson(request)
    ) {
      return showCodePage(exchange, session, { status: 401 });
    }
    if (session !== undefined) exchange.typed = () => renderTyped(session, inputs, request);
    throw error;
  }
}

/** Does what the person asked for, and shows what comes next. */
async function answer(post: Post): Promise<void> {
  const { source, request, response, inputs, posted } = post;
  const { goal, step, texts } = posted;
  if (goal.kind === 'move') await moveOption(post, goal);
  const reply = await source.post(inputs, {
    inputs: inputsOf(texts),
    language: lastOf(inputs, '_lang'),
    goal: goals[goal.kind],
    goalPage: goal.kind === 'page' ? goal.page : 0,
    page: step,
    shown: [...posted.shown],
    violations: posted.problems.map(violationToMessage),
    honeypot: posted.honeypot,
    issueToken: posted.issueToken,
    declineReason: posted.reason,
  });
  if (goal.kind === 'decline') return showDeclined(post, reply);
  if (reply.ending !== undefined) return complete(post, reply.ending, reply);
  if (goal.kind === 'restart') return response.redirect(303, queryWith(request, { step: undefined }));
  if (goal.kind === 'save') {
    // The script asks only whether it worked.
    const begun = source.sessionId() === '' ? {} : { session_id: source.sessionId() };
    return sendJson(response, 200, { ok: true, saved: reply.saved, refused: reply.refused, ...begun });
  }
  // Saved answers can be read again, so the step gets an address that the browser can go back to. What is brought back
  // from the browser's tab is shown at once, and said to be.
  const isNext = goal.kind !== 'move' && reply.violations.length === 0 && reply.revealed === '';
  const isKept = reply.saved && reply.refused.length === 0 && source.isKeptByAddress();
  if (isNext && isKept && posted.keptSince === undefined) {
    const { lang } = request.query;
    return response.redirect(303, queryWith({ query: { lang } }, { step: String(reply.step) }));
  }
  return showAgain(post, reply);
}

/** The page says by itself that it was declined. */
async function showDeclined({ request, response }: Post, { ending }: Reply): Promise<void> {
  if (prefersJson(request)) return sendJson(response, 200, { ok: true, outcome: 'declined' });
  response.set('referrer-policy', 'no-referrer');
  response.redirect(303, ending?.redirectUrl || '?');
}

/** Moves an option of a ranking, whose order the page knows. */
async function moveOption({ source, inputs, posted }: Post, move: Move): Promise<void> {
  const session = await readOpen(source, inputs);
  const { fieldId } = move;
  const field = shownFieldsOf(session).find((each) => each.id === fieldId && controlOf(each).movesOptions);
  if (field === undefined) return;
  posted.texts.set(fieldId, movedOrder(field, posted.texts.get(fieldId) ?? [], move));
}

/** Answers what was submitted with the page of thanks, a redirect, or JSON. */
async function complete({ request, response, posted }: Post, ending: Ending, reply: Reply): Promise<void> {
  if (prefersJson(request)) {
    const redirect = ending.redirectUrl ? { redirect_url: ending.redirectUrl } : {};
    return sendJson(response, 201, { ok: true, submission_id: reply.submissionId, ...redirect });
  }
  // A script that has fetched the page can't be sent to another site, but the page can.
  if (ending.redirectUrl !== '' && !posted.fetched) {
    response.set('referrer-policy', 'no-referrer');
    return response.redirect(303, ending.redirectUrl);
  }
  const correctable = reply.correction === '' ? '' : reply.submissionId;
  sendPage(response, 200, renderCompletion(ending, request, reply.session.embedOrigins, correctable));
}

/** The form once more, with what was typed and what is wrong with it. */
async function showAgain(post: Post, reply: Reply): Promise<void> {
  const { request, response, inputs, posted, source } = post;
  const { session, answers = {}, step } = reply;
  const problems = reply.violations.map(violationFromMessage);
  if (prefersJson(request)) {
    if (problems.length === 0) return sendJson(response, 200, { ok: true, page: step });
    const refused = restErrorOf(
      failed(Reason.INVALID, 'The answers do not match the form', { violations: problems }),
    );
    return sendJson(response, refused.status, refused.body);
  }
  const fields = shownFieldsOf(session);
  const kept = fields.filter((field) => field.page === step && !isPosted(field, posted));
  const view = viewOf(request, session, fields, { answers, step });
  // Numbers are written in the language that the page is shown in now.
  const read = readInputs({ fields }, inputsOf(posted.texts), { language: lastOf(inputs, '_lang') });
  const numbers = fields.filter(({ id }) => typeof ownValue(read, id) === 'number');
  const [before, typed] = [
    inputTextsOf(kept, answers, view.language),
    inputTextsOf(numbers, read, view.language),
  ];
  const texts = new Map([...before, ...posted.texts, ...typed]);
  const { goal } = posted;
  const page = renderForm(session, {
    ...view,
    texts,
    languages: languageSwitch(session, request, view.language),
    // Hidden fields are unknown here: their problems are shown without a link to a field.
    ...problemsOf(problems, fields, posted.texts, view.language),
    revealed: fields.find(({ id }) => id === reply.revealed),
    // Where the session itself keeps the answers, the script must not keep a second draft in the browser.
    keptSince: session.permanent || !session.allowPartial ? posted.keptSince : undefined,
    remembers: source.remembers(),
    moved:
      goal.kind === 'move' ? { fieldId: goal.fieldId, to: goal.index + goal.by, by: goal.by } : undefined,
    files: posted.files,
  });
  sendPage(response, problems.length > 0 ? 422 : 200, page);
}

function isPosted(field: Field, { texts }: Posted): boolean {
  return inputNames(field).some((name) => texts.has(name));
}

/** What a post is for; moving an option keeps the page as it is otherwise. */
const goals: Record<PostGoal['kind'], HostedGoal> = {
  forward: HostedGoal.FORWARD,
  back: HostedGoal.BACK,
  page: HostedGoal.PAGE,
  save: HostedGoal.SAVE,
  move: HostedGoal.SAVE,
  restart: HostedGoal.RESTART,
  decline: HostedGoal.DECLINE,
};

/** A post of the form's page. */
type Post = PageExchange & { source: PageSource; inputs: FormInputs; posted: Posted };

type Reply = Awaited<ReturnType<PageSource['post']>>;

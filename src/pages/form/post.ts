import { ConnectError } from '@connectrpc/connect';
import { type HostedSession, HostedState } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { inputNames } from '../../domain/answers/form-inputs.ts';
import type { Field } from '../../domain/definition/definition.ts';
import { violationFromMessage } from '../../domain/errors/violation-message.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import { type ErrorDetail, HttpError, httpErrorOf } from '../../http/errors.ts';
import { type FormInputs, noFiles, readForm } from '../../http/multipart.ts';
import { prefersJson, sendJson, sendPage } from '../../http/reply.ts';
import type { PageExchange } from '../handler.ts';
import { languageOf } from '../messages.ts';
import { renderCompletion } from './completion-page.ts';
import { type Move, movedOrder } from './controls/ranking.ts';
import { type FormView, renderForm } from './form-page.ts';
import { queryWith } from './languages.ts';
import { problemsOf } from './problems.ts';
import { inputsOf, type Posted, readPosted, readPostedAgain } from './read-post.ts';
import { textsOf, viewOf } from './show.ts';
import { type Answers, fieldsOf, stepAfter, stepsOf, visibleIds } from './steps.ts';
import { PostedFiles } from './uploads.ts';
import { refuseClosed, refuseForeign, type Visit } from './visit.ts';
import { visitOf } from './visit-of.ts';

/** Answers POST on the address of a session, or of a form: saves, goes to another step, or submits. */
export async function postForm(exchange: PageExchange): Promise<void> {
  const { request } = exchange;
  const visit = visitOf(exchange);
  const shown = await visit.read();
  refuseForeign(exchange, shown);
  if (shown.state === HostedState.SUBMITTED) {
    return submitAgain({ ...exchange, visit, session: shown }, await readForm(request, noFiles));
  }
  refuseClosed(shown);
  const files = new PostedFiles();
  const inputs = await readForm(request, async (file, before) => {
    const resumed = await visit.resume(before, shown);
    await files.take(exchange, visit, fieldsOf(resumed), file);
    return undefined;
  });
  const session = await visit.resume(inputs, shown);
  if (session.state === HostedState.SUBMITTED) return submitAgain({ ...exchange, visit, session }, inputs);
  const fields = fieldsOf(session);
  const posted = readPosted(fields, inputs, files);
  const post = { ...exchange, visit, session, fields, posted };
  await answer(post).catch((error: unknown) => {
    // The first of two clicks came through meanwhile: the second gets the same completion page.
    const late = posted.goal.kind === 'forward' && httpErrorOf(error).reason === 'conflict';
    return late ? submitPosted(post) : Promise.reject(error);
  });
}

/** Answers a page that is posted after its session was submitted, by a second click or a reload. */
async function submitAgain(again: Omit<Submission, 'posted'>, inputs: FormInputs): Promise<void> {
  const posted = readPostedAgain(inputs);
  if (posted === undefined) return refuseClosed(again.session);
  await submitPosted({ ...again, posted });
}

/** Does what the person asked for, and shows what comes next. */
async function answer(post: Post): Promise<void> {
  const { visit, request, response, posted, fields, session } = post;
  if (posted.goal.kind === 'save') return save(post);
  if (posted.goal.kind === 'move') return moveOption(post, posted.goal);
  // On a form of one page without conditions there is nothing to check before it is submitted.
  const plain = fields.every(({ page, visibleWhen }) => page === 1 && visibleWhen === undefined);
  const forward = posted.goal.kind === 'forward';
  if (forward && plain && !session.review && posted.problems.length === 0) return submit(post, {});

  const saved = await visit.save({
    inputs: inputsOf(posted.texts),
    page: forward ? posted.step : 0,
  });
  const answers: Answers = saved.answers ?? {};
  const visible = visibleIds(fields, answers);
  const steps = stepsOf(fields, visible, session.review);
  const here = fields.filter(({ id, page }) => page === posted.step && visible.has(id));
  const problems = [...posted.problems, ...saved.violations.map(violationFromMessage)].filter(({ path }) =>
    here.some(({ id }) => id === fieldIdOf(path) && posted.shown.has(id)),
  );
  if (forward && problems.length > 0) return showAgain(post, { answers, problems, step: posted.step });
  const revealed = here.find(({ id }) => !posted.shown.has(id));
  if (forward && revealed !== undefined) {
    return showAgain(post, { answers, problems: [], step: posted.step, revealed });
  }
  const step = stepAfter(posted.goal, posted.step, steps);
  if (step === undefined) return submit(post, answers);
  // Saved answers can be read again, so the step gets an address that the browser can go back to.
  if (saved.saved && saved.violations.length === 0 && visit.isKeptByAddress()) {
    const { lang } = request.query;
    response.redirect(303, queryWith({ query: { lang } }, { step: String(step) }));
    return;
  }
  return showAgain(post, { answers, problems: [], step });
}

/** Keeps answers while the person goes on typing. The reply says only whether it worked. */
async function save(post: Post): Promise<void> {
  const { saved, violations } = await post.visit.save({ inputs: inputsOf(post.posted.texts), page: 0 });
  const refused = violations.map(({ path }) => fieldIdOf(path));
  const sessionId = post.visit.sessionId();
  const visited = sessionId === '' ? {} : { session_id: sessionId };
  sendJson(post.response, 200, { ok: true, saved, refused, ...visited });
}

/** Moves an option of a ranking, and shows the step as it was otherwise. */
async function moveOption(post: Post, move: Move): Promise<void> {
  const { posted, fields } = post;
  const { fieldId, index, by } = move;
  const field = fields.find(({ id, type }) => id === fieldId && type === 'ranking');
  if (field !== undefined)
    posted.texts.set(fieldId, movedOrder(field, posted.texts.get(fieldId) ?? [], move));
  const { answers = {} } = await post.visit.save({ inputs: inputsOf(posted.texts), page: 0 });
  const moved = { fieldId, to: index + by, by };
  return showAgain(post, { answers, problems: [], step: posted.step, moved });
}

/** Submits, or shows the form again with what was refused. */
async function submit(post: Post, answers: Answers): Promise<void> {
  const { request, session, fields, posted } = post;
  try {
    await submitPosted(post);
  } catch (error) {
    const { reason, details } = httpErrorOf(error);
    if (!(error instanceof ConnectError) || reason !== 'invalid' || prefersJson(request)) throw error;
    const ids = new Set(details.map(({ path }) => fieldIdOf(path)));
    const step = fields.find(({ id }) => ids.has(id))?.page ?? posted.step;
    await showAgain(post, { answers: { ...session.answers, ...answers }, problems: details, step });
  }
}

/** Submits the session and answers with the page of thanks, a redirect, or JSON. */
async function submitPosted(submission: Submission): Promise<void> {
  const { visit, request, response, session, posted } = submission;
  const { texts, honeypot, issueToken } = posted;
  const { ending, submissionId } = await visit.submit({
    inputs: inputsOf(texts),
    honeypot,
    issueToken,
  });
  if (prefersJson(request)) {
    const redirect = ending?.redirectUrl ? { redirect_url: ending.redirectUrl } : {};
    return sendJson(response, 201, { ok: true, submission_id: submissionId, ...redirect });
  }
  if (ending === undefined) throw new Error('The reply to a submission lacks its ending');
  // A script that has fetched the page can't be sent to another site, but the page can.
  if (ending.redirectUrl !== '' && !posted.fetched) {
    response.set('referrer-policy', 'no-referrer');
    return response.redirect(303, ending.redirectUrl);
  }
  await sendPage(request, response, 200, renderCompletion(ending, request, session.embedOrigins));
}

/** The form once more, with what was typed and what is wrong with it. */
async function showAgain(post: Post, { answers, problems, step, revealed, moved }: Result): Promise<void> {
  const { request, response, session, fields, posted } = post;
  if (prefersJson(request)) {
    if (problems.length === 0) return sendJson(response, 200, { ok: true, page: step });
    const refused = new HttpError('invalid', 'The answers do not fit', { details: problems });
    return sendJson(response, refused.status, refused.body);
  }
  // Hidden fields are unknown here: their problems are shown without a link to a field.
  const known = new Set(fields.map(({ id }) => id));
  const others = problems.filter(({ path }) => !known.has(fieldIdOf(path))).map(({ message }) => message);
  const kept = fields.filter((field) => field.page === step && !isPosted(field, posted));
  const texts = new Map([...textsOf(kept, answers), ...posted.texts]);
  const page = renderForm(session, {
    ...viewOf(post, session, fields, { answers, step, texts }),
    problems: problemsOf(problems, fields, posted.texts, languageOf(request, session.locale)),
    otherProblems: others,
    revealed,
    moved,
    files: posted.files,
    issueToken: posted.issueToken || session.issueToken,
    sessionId: post.visit.sessionId(),
  });
  await sendPage(request, response, problems.length > 0 ? 422 : 200, page);
}

function isPosted(field: Field, { texts }: Posted): boolean {
  return inputNames(field).some((name) => texts.has(name));
}

/** What is submitted, of a session that may have been submitted before. */
type Submission = PageExchange & {
  visit: Visit;
  session: HostedSession;
  posted: Pick<Posted, 'texts' | 'honeypot' | 'issueToken' | 'fetched'>;
};

/** A post of the form's page. */
type Post = Submission & { fields: readonly Field[]; posted: Posted };

type Result = {
  answers: Answers;
  problems: readonly ErrorDetail[];
  step: number;
  /** The first of the fields that the answers made visible, and that the person has not seen. */
  revealed?: Field | undefined;
  /** Where an option of a ranking was moved. */
  moved?: FormView['moved'];
};

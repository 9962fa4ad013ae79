import type { HandlerContext } from '@connectrpc/connect';
import {
  HostedGoal,
  HostedState,
  type PostHostedRequest,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason, type Violation as ViolationMessage } from '../../../gen/headlessforms/v1/errors_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { readInputs, unwrittenOthers } from '../../domain/answers/answer-texts.ts';
import { type Answers, type AnswersResult, mergeAnswers } from '../../domain/answers/answers.ts';
import { savedAnswers } from '../../domain/answers/held.ts';
import { followStep, type Goal, isOneStep, REVIEW_STEP } from '../../domain/answers/steps.ts';
import { shownFields } from '../../domain/conditions/shown-fields.ts';
import {
  failureOf,
  invalid,
  reasonOf,
  violationFromMessage,
  violationToMessage,
} from '../../domain/errors/failure.ts';
import { fieldIdOf, type Violation } from '../../domain/errors/violations.ts';
import { marksOf } from '../../domain/fields/number-text.ts';
import { pageLimits } from '../../domain/methods.ts';
import { alreadyAnswered, refuseIfEnded } from '../../domain/sessions/failures.ts';
import { newCorrection } from '../../store/mail/mailed-links.ts';
import { deleteVisitorsSession } from '../../store/sessions/session-removal.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findRepeatedSubmission, findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { closed, refuseIfClosed } from '../forms/form-access.ts';
import { type First, type Idempotency, replayAfterRefusal } from '../idempotency.ts';
import { endSession } from '../open-session.ts';
import { acceptAnswers, checkSize } from '../submissions/accept-answers.ts';
import { describeUnclaimed, signaturesIn } from '../uploads/upload-claims.ts';
import { completionOf, currentAnswers, visibleAnswers, visitToMessage } from './hosted-proto.ts';
import { isTooQuick, keyOfPage } from './page-token.ts';
import {
  type HostedVisit,
  noteOpened,
  requireRespondent,
  resolveVisit,
  visitOfSession,
} from './resolve-visit.ts';
import { type Kept, keepFitting, openVisitorsSession } from './saving.ts';

/**
 * Takes what a page has posted: keeps it as far as the form does, leads to another step, or submits. A page that has
 * submitted before gets the first ending again, though it would be refused by now.
 */
export async function postHosted(context: ServiceContext, request: PostHostedRequest, call: HandlerContext) {
  const visit = await resolveVisit(context, { ...request, posted: true });
  requireRespondent(context, visit);
  if (request.goal === HostedGoal.RESTART) return startOver(context, visit, call);
  if (request.goal === HostedGoal.DECLINE) return decline(context, visit, request, call);
  const post = readPost(context, request, call, visit);
  const result = await replayAfterRefusal(
    post.idempotency,
    () => takePost(context, post),
    (key) => findFirst(context, visit, key),
  );
  return 'step' in result ? result : endingOf(context, post, result);
}

function readPost(
  { verifyingKeys, now }: ServiceContext,
  request: PostHostedRequest,
  call: HandlerContext,
  visit: HostedVisit,
): Post {
  const { form, version, session, stored } = visit;
  const typed = typedIn(request.language);
  const given = readInputs(version.definition, request.inputs, { humanOnly: true, ...typed });
  checkSize(form, given);
  const content = stored === undefined ? { answers: given, prefill: session.prefill } : { answers: given };
  const token = { token: request.issueToken, pageIds: pagesOf(visit), now: now() };
  const submits = request.goal === HostedGoal.FORWARD;
  const { minSeconds } = form.version.definition.settings.spam;
  const isTrapped = request.honeypot !== '' || isTooQuick(verifyingKeys, token, minSeconds);
  return {
    request,
    call,
    visit,
    given,
    idempotency: submits ? keyOfPage(verifyingKeys, token, content) : undefined,
    spam: isTrapped || version.corrects?.status === 'spam',
  };
}

/** Returns what the page is to show next, or what was submitted. Answers are checked once, whatever follows. */
async function takePost(context: ServiceContext, post: Post) {
  const { request, call, given } = post;
  const { form, version } = post.visit;
  const { definition } = version;
  const fields = shownFields(definition.fields, currentAnswers(definition, post.visit.session));
  const review = definition.settings.review === true;
  const ofInputs = [
    ...request.violations.map(violationFromMessage),
    ...unwrittenOthers(definition.fields, request.inputs),
  ];
  const submitsAtOnce =
    request.goal === HostedGoal.FORWARD && isOneStep(fields, review) && ofInputs.length === 0;
  const visit = submitsAtOnce ? post.visit : await withSession(context, post);
  const withoutSession = submitsAtOnce ? pageLimits.submit : pageLimits.check;
  await context.limitRate(call, visit.stored === undefined ? withoutSession : pageLimits.session, form.id);
  if (visit.state !== HostedState.OPEN) refuse(context, visit);
  await noteOpened(context, visit);

  const base = savedAnswers(visit.session);
  const { fitting, refused, whole } = await inTimeSlice(() => version.checkPosted(given, base));
  const kept = submitsAtOnce
    ? { session: visit.session, fitting, unclaimed: [], saved: false }
    : await keepFitting(context, { visit, fitting, call });
  const partialAnswers = mergeAnswers(kept.session.partialAnswers ?? {}, kept.fitting);
  const answers = visibleAnswers(definition, currentAnswers(definition, { ...kept.session, partialAnswers }));
  const taken = { visit, kept, answers, refused };
  if (!submitsAtOnce) {
    const violations = [...ofInputs, ...kept.unclaimed, ...(whole.ok ? [] : whole.violations)];
    const next = nextOf(request, { fields, review, answers, violations });
    if (next !== undefined) return showNext(context, post, taken, next);
  }
  if (visit.stored === undefined) await context.limitRate(call, pageLimits.submit, form.id);
  try {
    return await submit(context, post, taken, whole);
  } catch (error) {
    if (reasonOf(error) !== Reason.INVALID) throw error;
    const violations = failureOf(error)?.violations ?? [];
    const wrong = new Set(violations.map(({ path }) => fieldIdOf(path)));
    const step = fields.find(({ id }) => wrong.has(id))?.page ?? request.page;
    return showNext(context, post, taken, { step, violations });
  }
}

/** Undefined where the answers are to be submitted. */
function nextOf(
  request: PostHostedRequest,
  { fields, review, answers, violations }: Pick<Following, 'fields' | 'review' | 'answers' | 'violations'>,
): Next | undefined {
  const { page: step } = request;
  if (request.goal === HostedGoal.SAVE) return { step };
  const shown = new Set(request.shown);
  const next = followStep({ fields, review, answers, violations, goal: goalOf(request), step, shown });
  return next && { ...next, violations: next.violations.map(violationToMessage) };
}

async function showNext(context: ServiceContext, { request, call }: Post, taken: Taken, next: Next) {
  const { visit, kept, answers, refused } = taken;
  const { version } = visit;
  const described = await describeUnclaimed(context, version, answers);
  const isReview = next.step === REVIEW_STEP;
  const pictures = isReview ? await signaturesIn(context, version.definition, described) : {};
  // Where nobody knows whose page was posted, its token may be one that another site keeps.
  const token = request.unproven || request.issueToken === '' ? {} : { issueToken: request.issueToken };
  return {
    session: { ...(await visitToMessage(context, visit, { posted: true }, call)), pictures, ...token },
    answers: described,
    refused: [...refused, ...kept.unclaimed].map(({ path }) => fieldIdOf(path)),
    saved: kept.saved,
    begun: visit.begun === true,
    ...next,
  };
}

async function submit(context: ServiceContext, post: Post, taken: Taken, checked: AnswersResult) {
  const { call, given: answers, spam, idempotency } = post;
  const { form, version, standing } = taken.visit;
  const entry = { call, form, version, session: taken.kept.session, answers, checked };
  const by = { source: 'hosted', byHuman: true, spam, idempotency, respondent: standing.respondent };
  const { submissionId, submission } = await acceptAnswers(context, { ...entry, ...by });
  return { submissionId, answers: submission.answers };
}

async function endingOf(context: ServiceContext, { call, visit, given }: Post, submitted: Submitted) {
  const { form, version, session, stored } = visit;
  const { redirectUrl = '', allowCorrection = false } = form.version.definition.settings;
  const returnUrl = stored === undefined ? null : returnUrlOf(stored, 'submitted');
  const ended = { ...visit, state: HostedState.SUBMITTED };
  // A page that has submitted before may come from another browser now: it is shown what it has sent.
  const sent = currentAnswers(version.definition, { prefill: session.prefill, partialAnswers: given });
  const isToldOf = ([id]: [string, unknown]) => session === stored || id in sent;
  const answers = Object.fromEntries(Object.entries(submitted.answers).filter(isToldOf));
  const pictures = await signaturesIn(context, version.definition, answers);
  const to = { form, redirectUrl, returnUrl, pictures, requestHeader: call.requestHeader };
  return {
    session: await visitToMessage(context, ended, { posted: true }, call),
    submissionId: submitted.submissionId,
    ending: completionOf(version.definition, answers, to),
    correction: allowCorrection ? await newCorrection(context, form.id, submitted.submissionId) : '',
  };
}

/** How to read texts that a person has typed. Throws for a language whose numbers are not known. */
export function typedIn(language: string) {
  if (language === '' || marksOf(language) !== undefined) return { language, checksYears: true };
  throw invalid([{ path: '_lang', code: 'invalid_string', message: 'Expected a language, such as de-AT' }]);
}

/** Ends the session of a person who does not want to answer. */
async function decline(
  context: ServiceContext,
  visit: HostedVisit,
  { declineReason: reason }: PostHostedRequest,
  call: HandlerContext,
) {
  const { form, stored, state } = visit;
  await context.limitRate(call, pageLimits.session, form.id);
  if (state !== HostedState.OPEN || stored === undefined) refuse(context, visit);
  await endSession(context, stored.id, { reason });
  const ended = { ...visit, state: HostedState.DECLINED };
  const redirectUrl = returnUrlOf(stored, 'declined') ?? '';
  return { session: await visitToMessage(context, ended, { posted: true }, call), ending: { redirectUrl } };
}

/** Where the person is sent back to, with the session and its end where its maker asked for that. */
function returnUrlOf({ id, returnUrl, returnOutcome }: Session, outcome: string): string | null {
  if (returnUrl === null || !returnOutcome) return returnUrl;
  const url = new URL(returnUrl);
  url.searchParams.set('session_id', id);
  url.searchParams.set('outcome', outcome);
  return url.href;
}

/** Deletes what a visitor has begun. The files that its answers name go as all do that no submission claims. */
async function startOver(context: ServiceContext, visit: HostedVisit, call: HandlerContext) {
  const { form, stored, permanent, state } = visit;
  if (state !== HostedState.OPEN) refuse(context, visit);
  if (permanent && stored !== undefined) {
    await context.limitRate(call, pageLimits.session, form.id);
    await deleteVisitorsSession(context.database, stored.id);
  }
  return { session: await visitToMessage(context, visit, { posted: true }, call) };
}

/**
 * Opens a session for a visitor whose answers the form keeps. Who has opened too many can answer all the same: without
 * one nothing is kept before the end.
 */
async function withSession(context: ServiceContext, { request, call, visit }: Post): Promise<HostedVisit> {
  const { inputs, unproven, browser } = request;
  const { form, stored, state } = visit;
  const { allowPartial } = form.version.definition.settings;
  const isKept = !unproven && inputs.some(({ values }) => values.some((value) => value !== ''));
  if (stored !== undefined || state !== HostedState.OPEN || !allowPartial || !isKept) return visit;
  try {
    await context.limitRate(call, pageLimits.visit, form.id);
    const { session, begun } = await openVisitorsSession(context, visit, request, call);
    const page = { form, session, permanent: true, browser };
    return { ...(await visitOfSession(context, page, visit.session.prefill)), begun };
  } catch (error) {
    if (reasonOf(error) !== Reason.RATE_LIMITED) throw error;
    return visit;
  }
}

/** What a page has submitted before. */
async function findFirst(
  { database }: ServiceContext,
  { form }: HostedVisit,
  key: string,
): Promise<FirstPost> {
  const first = await findRepeatedSubmission(database, form.id, key);
  const stored = first && (await findSubmission(database, form.projectId, first.id));
  if (first === null || stored === null) return null;
  return {
    made: () => ({ submissionId: first.id, answers: stored.answers }),
    fingerprint: first.requestFingerprint,
  };
}

/** What the token of a posted page may be of: a visitor may have begun the session on the form's own page. */
function pagesOf({ form, stored }: HostedVisit): string[] {
  if (stored === undefined) return [form.id];
  return stored.keylessBytes === null ? [stored.id] : [stored.id, form.id];
}

/** Throws why a page accepts no answers. */
function refuse({ now }: ServiceContext, { form, stored, state }: HostedVisit): never {
  if (stored !== undefined) refuseIfEnded(stored);
  else if (state === HostedState.SUBMITTED) throw alreadyAnswered();
  refuseIfClosed(form, now());
  // The form was opened again since the visit was read: the next post finds it open.
  throw closed();
}

function goalOf({ goal, goalPage }: PostHostedRequest): Goal {
  if (goal === HostedGoal.PAGE) return { kind: 'page', page: goalPage };
  return { kind: goal === HostedGoal.BACK ? 'back' : 'forward' };
}

type Post = {
  request: PostHostedRequest;
  call: HandlerContext;
  visit: HostedVisit;
  /** As the page sent them, without hidden fields. */
  given: Answers;
  /** Undefined: the post is not repeatable. */
  idempotency: Idempotency | undefined;
  /** A bot gets the same answer as a person, so that it can't learn what identified it. */
  spam: boolean;
};

/** What the page is to show next. */
type Next = { step: number; violations?: ViolationMessage[]; revealed?: string };

type Following = Parameters<typeof followStep>[0];

/** What became of the answers of a post; `answers` are those that the page shows by now. */
type Taken = { visit: HostedVisit; kept: Kept; answers: Answers; refused: readonly Violation[] };

type Submitted = { submissionId: string; answers: Answers };

type FirstPost = First<Submitted> | null;

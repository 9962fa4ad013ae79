import type { HandlerContext } from '@connectrpc/connect';
import {
  HostedGoal,
  HostedState,
  type PostHostedRequest,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { Reason, type Violation as ViolationMessage } from '../../../gen/headlessforms/v1/errors_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { readInputs, unwrittenOthers } from '../../domain/answers/answer-texts.ts';
import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import { followStep, type Goal, isOneStep, REVIEW_STEP } from '../../domain/answers/steps.ts';
import { shownFields } from '../../domain/conditions/shown-fields.ts';
import {
  failureOf,
  invalid,
  reasonOf,
  violationFromMessage,
  violationToMessage,
} from '../../domain/errors/failure.ts';
import { fieldIdOf } from '../../domain/errors/violations.ts';
import { marksOf } from '../../domain/fields/number-text.ts';
import { pageLimits } from '../../domain/methods.ts';
import { newCorrection } from '../../store/mail/mailed-links.ts';
import { deleteVisitorsSession } from '../../store/sessions/session-removal.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findRepeatedSubmission, findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { closed, refuseIfClosed } from '../forms/form-access.ts';
import { type First, type Idempotency, replayAfterRefusal } from '../idempotency.ts';
import { endSession } from '../sessions/change-session.ts';
import { alreadyAnswered, refuseIfEnded, savedAnswers } from '../sessions/session-access.ts';
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
import { keepFitting, openVisitorsSession } from './saving.ts';

/**
 * Takes what a page has posted: keeps it as far as the form does, leads to another step, or submits. A page that has
 * submitted before gets the first ending again, though it would be refused by now.
 */
export async function postHosted(context: ServiceContext, request: PostHostedRequest, call: HandlerContext) {
  const visit = await resolveVisit(context, { ...request, posted: true });
  requireRespondent(context, visit);
  if (request.goal === HostedGoal.RESTART) return startOver(context, visit, call);
  if (request.goal === HostedGoal.DECLINE) return decline(context, visit, request, call);
  const { form, version, session, stored } = visit;
  const typed = typedIn(request.language);
  const given = readInputs(version.definition, request.inputs, { humanOnly: true, ...typed });
  checkSize(form, given);
  const content = stored === undefined ? { answers: given, prefill: session.prefill } : { answers: given };
  const token = { token: request.issueToken, pageIds: pagesOf(visit), now: context.now() };
  const submits = request.goal === HostedGoal.FORWARD;
  const idempotency = submits ? keyOfPage(context.verifyingKeys, token, content) : undefined;
  const { redirectUrl = '', spam: guards, allowCorrection = false } = form.version.definition.settings;
  const isTrapped = request.honeypot !== '' || isTooQuick(context.verifyingKeys, token, guards.minSeconds);
  const spam = isTrapped || version.corrects?.status === 'spam';
  const post = { request, call, visit, given, idempotency, spam };

  const result = await replayAfterRefusal(
    idempotency,
    () => takeStep(context, post),
    (key) => findFirst(context, visit, key),
  );
  if ('step' in result) return result;
  const returnUrl = stored === undefined ? null : returnUrlOf(stored, 'submitted');
  const { requestHeader } = call;
  const ended = { ...visit, state: HostedState.SUBMITTED };
  // A page that has submitted before may come from another browser now: it is shown what it has sent.
  const sent = currentAnswers(version.definition, { prefill: session.prefill, partialAnswers: given });
  const isToldOf = ([id]: [string, unknown]) => session === stored || id in sent;
  const answers = Object.fromEntries(Object.entries(result.answers).filter(isToldOf));
  const pictures = await signaturesIn(context, version.definition, answers);
  const to = { form, redirectUrl, returnUrl, pictures, requestHeader };
  return {
    session: await visitToMessage(context, ended, { posted: true }, call),
    submissionId: result.submissionId,
    ending: completionOf(version.definition, answers, to),
    correction: allowCorrection ? await newCorrection(context, form.id, result.submissionId) : '',
  };
}

/** Answers are checked once, whatever follows. Returns what the page is to show next, or what was submitted. */
async function takeStep(context: ServiceContext, post: Post) {
  const { request, call, given } = post;
  const { goal, page: step } = request;
  const { form, version } = post.visit;
  const { definition } = version;
  const fields = shownFields(definition.fields, currentAnswers(definition, post.visit.session));
  const review = definition.settings.review === true;
  const ofInputs = [
    ...request.violations.map(violationFromMessage),
    ...unwrittenOthers(definition.fields, request.inputs),
  ];
  const submitsAtOnce = goal === HostedGoal.FORWARD && isOneStep(fields, review) && ofInputs.length === 0;

  const visit = submitsAtOnce ? post.visit : await withSession(context, post);
  const withoutSession = submitsAtOnce ? pageLimits.submit : pageLimits.check;
  const limit = visit.stored === undefined ? withoutSession : pageLimits.session;
  await context.limitRate(call, limit, form.id);
  if (visit.state !== HostedState.OPEN) refuse(context, visit);
  await noteOpened(context, visit);

  const base = savedAnswers(visit.session);
  const { fitting, refused, whole } = await inTimeSlice(() => version.checkPosted(given, base));
  const kept = submitsAtOnce
    ? { session: visit.session, fitting, unclaimed: [], saved: false }
    : await keepFitting(context, { visit, fitting, call });
  const partialAnswers = mergeAnswers(kept.session.partialAnswers ?? {}, kept.fitting);
  const held = currentAnswers(definition, { ...kept.session, partialAnswers });
  const answers = visibleAnswers(definition, held);
  const reply = async (next: Next) => {
    const described = await describeUnclaimed(context, version, answers);
    const pictures = next.step === REVIEW_STEP ? await signaturesIn(context, definition, described) : {};
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
  };

  if (goal === HostedGoal.SAVE) return reply({ step });
  if (!submitsAtOnce) {
    const violations = [...ofInputs, ...kept.unclaimed, ...(whole.ok ? [] : whole.violations)];
    const shown = new Set(request.shown);
    const next = followStep({ fields, review, answers, violations, goal: goalOf(request), step, shown });
    if (next !== undefined) return reply({ ...next, violations: next.violations.map(violationToMessage) });
  }
  if (visit.stored === undefined) await context.limitRate(call, pageLimits.submit, form.id);
  const { spam, idempotency } = post;
  const entry = { call, form, version, session: kept.session, answers: given, checked: whole };
  try {
    const { respondent } = visit.standing;
    const by = { source: 'hosted', byHuman: true, spam, idempotency, respondent };
    const { submissionId, submission } = await acceptAnswers(context, { ...entry, ...by });
    return { submissionId, answers: submission.answers };
  } catch (error) {
    if (reasonOf(error) !== Reason.INVALID) throw error;
    const violations = failureOf(error)?.violations ?? [];
    const wrong = new Set(violations.map(({ path }) => fieldIdOf(path)));
    return reply({ step: fields.find(({ id }) => wrong.has(id))?.page ?? step, violations });
  }
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

type FirstPost = First<{ submissionId: string; answers: Answers }> | null;

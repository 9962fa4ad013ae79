import { type GetHostedRequest, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { addressKey, mailboxOf } from '../../domain/addresses/email-address.ts';
import { type FormInput, readInputs } from '../../domain/answers/answer-texts.ts';
import type { Answers } from '../../domain/answers/answers.ts';
import { isEmpty } from '../../domain/conditions/condition.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { hasPublicPage } from '../../domain/definition/share.ts';
import { notFound } from '../../domain/errors/failure.ts';
import { type Field, isShown } from '../../domain/fields/field.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { isId } from '../../domain/ids.ts';
import { isObject, type Json, ownValue } from '../../domain/json/json.ts';
import { memoize } from '../../domain/memoize.ts';
import type { VerifiedRespondent } from '../../domain/sessions/respondent.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findAnySession, markSessionOpened } from '../../store/sessions/sessions.ts';
import { isRespondentKnown } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import {
  type Availability,
  availabilityOf,
  type LiveVersion,
  type PublishedForm,
  publishedForm,
  sessionsForm,
} from '../forms/form-access.ts';
import { anySession, codeNeeded, pageIdOf, savedAnswers, type Visit } from '../sessions/session-access.ts';
import { correctableWith, corrected, notCorrectable, versionToCorrect } from '../submissions/corrections.ts';
import { findStanding, type Standing } from './respondents.ts';

/**
 * Finds what a page is of: a session that was made for somebody, whose id is its credential; or with `formId` the
 * form's own page, with the session that its visitor has begun.
 *
 * A visitor's session that accepts no more answers counts as none, but for one that a page posts to once more after
 * it was submitted. Throws NOT_FOUND, also for a form that has no page of its own. A visitor's session is not found by
 * its id alone: who has begun it could hand on its address, and read what others answer.
 */
export async function resolveVisit(context: ServiceContext, target: Target): Promise<HostedVisit> {
  const { formId, sessionId, posted, begun: known } = target;
  if (isId('sub', sessionId)) return visitOfCorrection(context, target);
  if (formId === '') {
    const session = await anySession(context.database, sessionId);
    if (session.keylessBytes !== null) throw notFound('session');
    const form = await sessionsForm(context.forms, session.formId);
    return visitOfSession(context, { form, session, permanent: false, browser: target.browser });
  }
  const form = await publishedForm(context.forms, formId);
  if (!hasPublicPage(form.version.definition)) throw notFound('form');
  const standing = await findStanding(context, { form, session: undefined }, target.browser);
  const { version } = form;
  const prefill = await readPrefill(version, target.prefill);
  const isOwn = !posted || known.includes(sessionId);
  const begun =
    standing.isNeeded || (!isOwn && known.length > 0)
      ? undefined
      : await sessionOfVisitor(context, form.id, sessionId, standing.respondent);
  if (begun !== undefined && (begun.status === 'open' || (posted && begun.status === 'submitted'))) {
    const page = { form, session: begun, permanent: true, browser: target.browser };
    return visitOfSession(context, page, isOwn ? undefined : prefill);
  }
  const now = context.now();
  const session: Visit = {
    id: null,
    prefill,
    partialAnswers: null,
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    metadata: {},
    createdAt: new Date(now),
    readAt: new Date(now),
  };
  const state = standing.isNeeded ? HostedState.CODE_NEEDED : statesOfForms[availabilityOf(form, now)];
  const visit = { form, version, stored: undefined, session, state, permanent: true, standing };
  return (await hasAnswered(context, visit)) ? { ...visit, state: HostedState.SUBMITTED } : visit;
}

/**
 * What a page is of on which somebody corrects a submission, with the token that they got alone. A form that is full is
 * open for it. Throws TOKEN_USED if it was corrected, unless the page that did it is `posted` again.
 */
export async function visitOfCorrection(
  context: ServiceContext,
  { sessionId, browser, posted }: Pick<Target, 'sessionId' | 'browser' | 'posted'>,
): Promise<HostedVisit> {
  const former = await correctableWith(context, browser);
  const form = await sessionsForm(context.forms, former.formId);
  if (former.id !== sessionId || form.version.definition.settings.allowCorrection !== true)
    throw notCorrectable();
  if (former.replacedBy !== null && !posted) throw corrected();
  const version = await versionToCorrect(context, former);
  const now = context.now();
  const availability = availabilityOf(form, now);
  const state = statesOfForms[availability === 'full' ? 'open' : availability];
  // What the person has left empty is not filled in again.
  const shown = version.definition.fields
    .filter(({ defaultValue }) => defaultValue !== undefined)
    .filter(isShown);
  const answers = Object.entries(former.answers).map(([id, answer]) => [id, withoutFacts(answer)] as const);
  const session: Visit = {
    id: null,
    prefill: Object.fromEntries([...shown.map(({ id }) => [id, null] as const), ...answers]),
    partialAnswers: null,
    provenance: { prefill: former.provenance ?? [], partial: [] },
    metadata: former.metadata,
    createdAt: former.createdAt,
    readAt: new Date(now),
  };
  const standing = {
    isNeeded: false,
    isSent: false,
    ...(former.respondent && { respondent: former.respondent }),
  };
  return {
    form,
    version,
    stored: undefined,
    session,
    state: former.replacedBy === null ? state : HostedState.SUBMITTED,
    permanent: false,
    standing,
  };
}

/** Files as they are answered. */
function withoutFacts(answer: Json): Json {
  if (Array.isArray(answer)) return answer.map(withoutFacts);
  return isObject(answer) && typeof answer.upload_id === 'string' ? { upload_id: answer.upload_id } : answer;
}

/** Whether the respondent's mailbox has answered a form that takes one submission of each. */
async function hasAnswered(
  { database }: ServiceContext,
  { form, state, standing }: Pick<HostedVisit, 'form' | 'state' | 'standing'>,
): Promise<boolean> {
  const { respondent } = standing;
  if (state !== HostedState.OPEN || respondent === undefined) return false;
  return isRespondentKnown(database, form.id, mailboxOf(respondent.email));
}

/** Throws CODE_NEEDED unless the page may be seen in the browser. */
export function requireRespondent({ settings }: ServiceContext, { form, stored, state }: HostedVisit): void {
  if (state !== HostedState.CODE_NEEDED) return;
  throw codeNeeded(settings, stored === undefined ? form.id : pageIdOf(stored));
}

/** Notes when a session that was made for somebody is opened first. */
export async function noteOpened({ database }: ServiceContext, visit: HostedVisit): Promise<void> {
  const { stored, state, permanent } = visit;
  const isFirst = state === HostedState.OPEN && !permanent && stored?.openedAt === null;
  if (isFirst) await markSessionOpened(database, stored.id);
}

/**
 * What a page is of that goes on with a session: with what is saved in it, or with `instead` where the browser is not
 * known to have begun it.
 */
export async function visitOfSession(
  context: ServiceContext,
  { form, session: stored, permanent, browser }: VisitedSession,
  instead?: Answers,
): Promise<HostedVisit> {
  const { forms, now } = context;
  const version = await forms.version(stored.versionId);
  const standing = await findStanding(context, { form, session: stored }, browser);
  const availability = statesOfSessions[stored.status] ?? statesOfForms[availabilityOf(form, now())];
  const state = standing.isNeeded ? HostedState.CODE_NEEDED : availability;
  const session = instead === undefined ? stored : withoutSaved(version, stored, instead);
  return { form, version, stored, session, state, permanent, standing };
}

/** A session with `instead` in place of what is saved in fields that people see. */
function withoutSaved({ definition }: LiveVersion, stored: Session, instead: Answers): Session {
  const shown = new Set(definition.fields.filter(isShown).map(({ id }) => id));
  const hidden = Object.entries(savedAnswers(stored)).filter(([id]) => !shown.has(id));
  const prefill = { ...instead, ...Object.fromEntries(hidden) };
  const provenance = { prefill: stored.provenance?.prefill ?? [], partial: [] };
  return { ...stored, prefill, partialAnswers: null, provenance };
}

/** The session that a visitor has begun on a form's own page; undefined for any other. */
async function sessionOfVisitor(
  { database }: ServiceContext,
  formId: string,
  sessionId: string,
  respondent: VerifiedRespondent | undefined,
): Promise<Session | undefined> {
  if (sessionId === '') return undefined;
  const session = isId('sess', sessionId) ? await findAnySession(database, sessionId) : null;
  if (session?.formId !== formId || session.keylessBytes === null) return undefined;
  // Another person may have begun it in this browser.
  const email = session.respondent?.email;
  return email === undefined || addressKey(email) === addressKey(respondent?.email ?? '')
    ? session
    : undefined;
}

/** What the end of a session says; one that is open is as its form is. */
const statesOfSessions: Record<Session['status'], HostedState | undefined> = {
  open: undefined,
  submitted: HostedState.SUBMITTED,
  declined: HostedState.DECLINED,
  expired: HostedState.EXPIRED,
  cancelled: HostedState.CANCELLED,
};

const statesOfForms: Record<Availability, HostedState> = {
  open: HostedState.OPEN,
  closed: HostedState.CLOSED,
  ended: HostedState.CLOSED,
  full: HostedState.CLOSED,
  archived: HostedState.ARCHIVED,
};

/**
 * What the page's address fills in, of fields that anybody may answer, also some parts of an address alone. What names
 * no such field or does not fit is left out: the maker of the link erred, and the person who follows it can't mend it.
 */
async function readPrefill(version: LiveVersion, inputs: readonly FormInput[]): Promise<Answers> {
  const settable = settableByAddress(version.definition);
  const read = readInputs(settable, inputs, { fromLink: true });
  const given = Object.fromEntries(Object.entries(read).filter(([, answer]) => !isEmpty(answer)));
  if (Object.keys(given).length === 0) return {};
  const { fitting, refused } = await inTimeSlice(() => version.checkPosted(given, {}));
  // People fill in the other parts, which they see.
  const wrong = new Set(refused.map(({ path }) => path));
  for (const { id } of settable.fields.filter(isShown)) {
    const answer = Object.hasOwn(fitting, id) ? undefined : ownValue(given, id);
    const parts = isObject(answer) ? Object.entries(answer) : [];
    const right = parts.filter(([part]) => !wrong.has(`answers.${id}.${part}`));
    if (right.length > 0) fitting[id] = Object.fromEntries(right);
  }
  return fitting;
}

const settableByAddress = memoize((definition: FormDefinition): FormDefinition => {
  const isSettable = ({ type, answeredBy }: Field) =>
    fieldRules[type].uploads === undefined && (answeredBy ?? 'anyone') === 'anyone';
  return { ...definition, fields: definition.fields.filter(isSettable) };
});

/** What a page names. */
type Target = Pick<GetHostedRequest, 'formId' | 'sessionId' | 'prefill' | 'posted' | 'begun' | 'browser'>;

type VisitedSession = { form: PublishedForm; session: Session; permanent: boolean; browser: string };

/** What a page is of. */
export type HostedVisit = {
  form: PublishedForm;
  /** The version that the session began with, or the form's own. */
  version: LiveVersion;
  /** Undefined: a visitor has stored nothing yet. */
  stored: Session | undefined;
  /** What the page begins with: what is stored, or what the address fills in. */
  session: Visit;
  state: HostedState;
  /** Whether it is the form's own page. */
  permanent: boolean;
  /** Whether the respondent has given a code, where one is needed. */
  standing: Standing;
  /** Whether this call has begun the session. */
  begun?: boolean;
};

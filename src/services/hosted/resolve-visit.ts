import { type GetHostedRequest, HostedState } from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { addressKey, mailboxOf } from '../../domain/addresses/email-address.ts';
import { type FormInput, readInputs } from '../../domain/answers/answer-texts.ts';
import { type Answers, compileForm } from '../../domain/answers/answers.ts';
import { savedAnswers } from '../../domain/answers/held.ts';
import { expand } from '../../domain/answers/provenance.ts';
import { isEmpty } from '../../domain/conditions/condition.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { hasPublicPage } from '../../domain/definition/share.ts';
import { notFound } from '../../domain/errors/failure.ts';
import { type Field, isShown } from '../../domain/fields/field.ts';
import { fieldRules } from '../../domain/fields/index.ts';
import { isId } from '../../domain/ids.ts';
import { isObject, ownValue } from '../../domain/json/json.ts';
import { CORRECTION } from '../../domain/links.ts';
import { memoize } from '../../domain/memoize.ts';
import { codeNeeded } from '../../domain/sessions/failures.ts';
import type { VerifiedRespondent } from '../../domain/sessions/respondent.ts';
import type { Session, StartingValues } from '../../store/sessions/session-table.ts';
import { findAnySession, markSessionOpened } from '../../store/sessions/sessions.ts';
import { findAnySubmission, isRespondentKnown } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import {
  type Availability,
  availabilityOf,
  type LiveVersion,
  type PublishedForm,
  publishedForm,
  sessionsForm,
} from '../forms/form-access.ts';
import { linkOf, refuseUnusable, wrongLink } from '../mail/mail.ts';
import { anySession, pageIdOf } from '../open-session.ts';
import { findStanding, type RespondentStanding } from './respondents.ts';

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
  if (formId === '') {
    if (isId('sub', sessionId)) return visitOfCorrection(context, target);
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
  const fresh = visitWithout(context, { form, version }, { prefill });
  const visit = { ...fresh, standing, ...(standing.isNeeded && { state: HostedState.CODE_NEEDED }) };
  return (await hasAnswered(context, visit)) ? { ...visit, state: HostedState.SUBMITTED } : visit;
}

/**
 * What a page is of on which somebody corrects a submission, with the token that they got alone: their own answers, while
 * those of others are hidden and pass on. For it the form has no limits. Throws TOKEN_USED if it was corrected, unless
 * the page that did so is `posted` again.
 */
export async function visitOfCorrection(context: ServiceContext, target: Corrected): Promise<HostedVisit> {
  const { sessionId, browser: token, posted } = target;
  const { purpose, formId, address } = linkOf(context, token);
  const corrects = await findAnySubmission(context.database, address);
  if (purpose !== CORRECTION || corrects?.id !== sessionId) throw wrongLink();
  const isRepeated = posted && corrects.replacedBy !== null;
  if (!isRepeated) await refuseUnusable(context.database, token);
  const { version: current, ...live } = await sessionsForm(context.forms, formId);
  const { maxSubmissions: _, onePerRespondent: __, ...rest } = current.definition.settings;
  if (rest.allowCorrection !== true) throw wrongLink();
  const settings = { ...rest, allowPartial: false, spam: {} };
  const form = { ...live, version: { ...current, definition: { ...current.definition, settings } } };

  const { answers, metadata, createdAt, respondent } = corrects;
  const provenance = { prefill: corrects.provenance ?? [], partial: [] };
  const origins = expand(provenance.prefill, Object.keys(answers), '');
  const answered = await context.forms.version(corrects.versionId);
  const fields = answered.definition.fields.map((field): Field => {
    // What they have left empty is not filled in again.
    const { defaultValue: _, ...asked } = field;
    const isTheirs = ['human', 'default', undefined].includes(origins.get(field.id)?.by);
    return isShown(field) ? { ...asked, hidden: !isTheirs } : field;
  });
  const version = { ...answered, ...compileForm({ ...answered.definition, fields }), corrects };
  const prefill = JSON.parse(JSON.stringify(answers, uploadAlone));
  const visit = visitWithout(context, { form, version }, { prefill, provenance, metadata, createdAt });
  const standing = { isNeeded: false, isSent: false, respondent: respondent ?? undefined };
  return { ...visit, standing, permanent: false, ...(isRepeated && { state: HostedState.SUBMITTED }) };
}

/** What a page is of that goes on with no session. */
function visitWithout({ now }: ServiceContext, of: Pick<HostedVisit, 'form' | 'version'>, begun: Begun) {
  const session: StartingValues = {
    id: null,
    partialAnswers: null,
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    metadata: {},
    createdAt: new Date(now()),
    readAt: new Date(now()),
    ...begun,
  };
  const state = statesOfForms[availabilityOf(of.form, now())];
  return { ...of, stored: undefined, session, state, permanent: true };
}

type Begun = Pick<StartingValues, 'prefill'> & Partial<StartingValues>;

/** For `JSON.stringify`: files as they are answered. */
const uploadAlone = (_: string, value: unknown) =>
  isObject(value) && typeof value.upload_id === 'string' ? { upload_id: value.upload_id } : value;

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

type Corrected = Pick<Target, 'sessionId' | 'browser' | 'posted'>;

type VisitedSession = { form: PublishedForm; session: Session; permanent: boolean; browser: string };

/** What a page is of. */
export type HostedVisit = {
  form: PublishedForm;
  /** The version that the session began with, or the form's own. */
  version: LiveVersion;
  /** Undefined: a visitor has stored nothing yet. */
  stored: Session | undefined;
  /** What the page begins with: what is stored, or what the address fills in. */
  session: StartingValues;
  state: HostedState;
  /** Whether it is the form's own page. */
  permanent: boolean;
  /** Whether the respondent has given a code, where one is needed. */
  standing: RespondentStanding;
  /** Whether this call has begun the session. */
  begun?: boolean;
};

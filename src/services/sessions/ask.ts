import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { CreateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { withoutNulls } from '../../domain/answers/held.ts';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { newSessionId } from '../../domain/ids.ts';
import { contextFromMessage, contextProblems } from '../../domain/sessions/context.ts';
import { codeNeeded } from '../../domain/sessions/failures.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { keepQuestionForm } from '../../store/forms/questions.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import {
  findFormerSession,
  findRequestedSession,
  insertSession,
  type NewSession,
} from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { formerSessionDigest } from '../former-replies.ts';
import { isHidden, type PublishedForm, refuseIfClosed, sessionsForm } from '../forms/form-access.ts';
import {
  type First,
  type Idempotency,
  replayFirst,
  requestIdempotency,
  requireDigest,
  requireSame,
} from '../idempotency.ts';
import { explainTo } from '../submissions/accept-answers.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { callbackProblems, madeSecret, storedCallback } from './callback.ts';
import { describeRead, describeSession } from './describe-session.ts';
import { noteSession, reserveValues } from './find-session.ts';
import {
  countNotifiedMailboxes,
  notifyOf,
  notifyProblems,
  requireNotifyScope,
  storedNotify,
} from './notify.ts';
import { askedForm, knownQuestionForm, requireKey } from './question-form.ts';
import {
  agentProblems,
  lifeOf,
  lifeProblems,
  metadataProblems,
  respondentProblems,
  returnUrlProblems,
} from './session-request.ts';

/**
 * Asks a person: opens a session of a form, or of questions of its own. A repeated request gets the session that the
 * first has opened, as it is then.
 */
export async function ask(context: ServiceContext, request: CreateSessionRequest, call: HandlerContext) {
  const asked = readAsk(context, request, call);
  const session = await replayFirst(
    asked.idempotency,
    () => openSession(context, asked),
    (key) => findFirst(context, asked, key),
  );
  return replyOf(context, asked, session);
}

/** Whether the caller may ask for all of it, and what makes a repeated request the same. */
function readAsk(context: ServiceContext, request: CreateSessionRequest, call: HandlerContext): Ask {
  const { context: shown, callback, notify, respondent } = request;
  const isMailed = notify !== undefined || respondent !== undefined;
  if (shown !== undefined || callback !== undefined || isMailed) requireKey(call);
  if (isMailed) requireNotifyScope(call);
  return { request, call, id: newSessionId(), idempotency: idempotencyOf(context, request, call) };
}

/**
 * A key counts for its caller: with a form for that form, with questions of the caller's own for all of them, so that a
 * reworded question does not ask the person again.
 */
function idempotencyOf(context: ServiceContext, request: CreateSessionRequest, call: HandlerContext) {
  const { subject } = request;
  const of = subject.case === 'formId' ? subject.value : '';
  const whole = { ...request, expiresIn: create(DurationSchema, { seconds: BigInt(lifeOf(request)) }) };
  return requestIdempotency(context, call, whole, {
    scope: [call.method.name, callerOf(call).projectId, of],
  });
}

/** The hidden form of questions can be removed, where nobody used it, before the session is stored: then it is made again. */
async function openSession(context: ServiceContext, asked: Ask): Promise<Session> {
  for (;;) {
    const form = await askedForm(context, asked.request, asked.call);
    using room = await reserveValues(context, form, asked.request, asked.call);
    const session = await storeSession(context, asked, form, await checkedSession(context, asked, form));
    // An earlier session was counted when it was made.
    if (session?.id === asked.id) room?.keep();
    if (session !== undefined) return session;
    context.forms.forget(form.id);
  }
}

/** The session that a request asks for. Throws INVALID with every problem. */
async function checkedSession(
  context: ServiceContext,
  { request, call, id, idempotency }: Ask,
  form: PublishedForm,
): Promise<NewSession> {
  if (form.status !== 'published') throw notFound('form');
  refuseIfClosed(form, context.now());
  const { definition } = form.version;
  const prefill = await inTimeSlice(() =>
    form.version.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false }),
  );
  const files = prefill.ok ? await claimUploads(context, form.version, prefill.answers, 'prefill') : prefill;
  const violations = [
    ...lifeProblems(request.expiresIn, 'expires_in'),
    ...metadataProblems(request.metadata),
    ...returnUrlProblems(request),
    ...contextProblems(request.context),
    ...callbackProblems(context, request.callback, call),
    ...(await notifyProblems(context, request.notify, form)),
    ...respondentProblems(request.respondent),
    ...files.violations,
    ...(prefill.ok ? agentProblems(definition, prefill.answers) : []),
  ];
  if (violations.length > 0 || !prefill.ok)
    throw invalid(explainTo(context, call, form.version, request)(violations));

  if (idempotency !== undefined) requireDigest(idempotency);
  const { keyId } = callerOf(call);
  // Where keys are not required, anybody could open sessions, which would take the place of the code.
  if (definition.settings.onePerRespondent === true && keyId === undefined)
    throw codeNeeded(context.settings, form.id);
  const { notify, respondent } = request;
  return {
    id,
    projectId: form.projectId,
    formId: form.id,
    versionId: form.version.id,
    prefill: withoutNulls(prefill.answers),
    metadata: request.metadata ?? {},
    provenance: { prefill: [{ by: 'prefill', ...(keyId !== undefined && { key: keyId }) }], partial: [] },
    expiresIn: lifeOf(request),
    returnUrl: request.returnUrl || null,
    returnOutcome: request.returnOutcome,
    context: contextFromMessage(request.context),
    allowDecline: request.allowDecline,
    ...storedCallback(context, request.callback, call),
    notify: notify === undefined ? null : storedNotify(notify, requireKey(call), context.now()),
    ...(respondent && { respondent: { email: asciiAddress(respondent.email), codes: 0 } }),
    idempotency,
  };
}

/**
 * Stores the session, in one commit with what notifies people of it; undefined where its hidden form was removed. Where
 * one with its idempotency key was stored meanwhile, that one is returned.
 */
async function storeSession(
  context: ServiceContext,
  { call, idempotency }: Ask,
  form: PublishedForm,
  session: NewSession,
): Promise<Session | undefined> {
  const { keyId } = callerOf(call);
  const store = async (tx: Transaction) => {
    if (isHidden(form) && !(await keepQuestionForm(tx, form.id))) return undefined;
    const inserted = await insertSession(tx, session);
    if (inserted.id !== session.id) return inserted;
    await notifyOf(tx, context, inserted, { form, call });
    const { respondent } = inserted;
    if (respondent !== null && keyId !== undefined) {
      await countNotifiedMailboxes(tx, context, { keyId, addresses: [respondent.email] });
    }
    return inserted;
  };
  const isNotified = session.notify !== null;
  const stored =
    isHidden(form) || isNotified || session.respondent !== undefined
      ? await context.database.transaction(store)
      : await insertSession(context.database, session);
  if (isNotified) context.notifyWorkers();
  if (stored !== undefined) requireSame(idempotency, firstOf(stored));
  return stored;
}

/** A session that is an earlier request's is shown as it is read, with its submission. */
async function replyOf(context: ServiceContext, { request, call, id }: Ask, session: Session) {
  const callbackSecret = madeSecret(context, request.callback, session);
  if (session.id !== id) return { ...(await describeRead(context, call, session)), callbackSecret };
  noteSession(context, call, session);
  const form = await sessionsForm(context.forms, session.formId);
  return { session: await describeSession(context, form, session), callbackSecret };
}

async function findFirst(context: ServiceContext, asked: Ask, key: string): Promise<First<Session> | null> {
  const session = await findRequestedSession(context.database, key);
  if (session !== null) return firstOf(session);
  const former = await findFormer(context, asked);
  if (former === null) return null;
  const isSame = former.requestFingerprint === formerSessionDigest(context, asked.request);
  return { ...firstOf(former), ...(isSame && { fingerprint: asked.idempotency?.fingerprint ?? null }) };
}

/** What the version before opened for the same caller: of its form, or of the form that asks the same questions. */
async function findFormer(context: ServiceContext, { request, call }: Ask): Promise<Session | null> {
  const { projectId, keyId } = callerOf(call);
  const { subject, idempotencyKey } = request;
  const formId =
    subject.case === 'formId' ? subject.value : await knownQuestionForm(context, request, projectId);
  const session =
    formId === undefined ? null : await findFormerSession(context.database, formId, idempotencyKey);
  const isOwn =
    session?.projectId === projectId && session.provenance?.prefill.some(({ key }) => key === keyId);
  return isOwn === true ? session : null;
}

function firstOf(session: Session): First<Session> {
  return { fingerprint: session.requestFingerprint, sessionId: session.id, made: () => session };
}

/** A request, and the session that it opens unless it repeats another one. */
type Ask = {
  request: CreateSessionRequest;
  call: HandlerContext;
  id: string;
  idempotency: Idempotency | undefined;
};

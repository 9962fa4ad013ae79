import { create } from '@bufbuild/protobuf';
import { DurationSchema } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { CreateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { newSessionId } from '../../domain/ids.ts';
import { contextFromMessage, contextProblems } from '../../domain/sessions/context.ts';
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
import {
  countNotifiedMailboxes,
  notifyOf,
  notifyProblems,
  requireNotifyScope,
  storedNotify,
} from './notify.ts';
import { askedForm, knownQuestionForm, requireKey } from './question-form.ts';
import { codeNeeded, describeRead, describeSession, noteSession, reserveValues } from './session-access.ts';
import {
  agentProblems,
  lifeOf,
  lifeProblems,
  metadataProblems,
  respondentProblems,
  returnUrlProblems,
  withoutNulls,
} from './session-request.ts';

/**
 * Opens a session of a form, or of questions of its own; a repeated request gets the one that the first has opened, as it
 * is then.
 */
export async function createSession(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
) {
  const { context: shown, callback, notify, respondent } = request;
  const isMailed = notify !== undefined || respondent !== undefined;
  if (shown !== undefined || callback !== undefined || isMailed) requireKey(call);
  if (isMailed) requireNotifyScope(call);
  const id = newSessionId();
  const idempotency = idempotencyOf(context, request, call);
  const session = await replayFirst(
    idempotency,
    () => openSession(context, request, { id, idempotency, call }),
    (key) => findFirst(context, request, call, { key, idempotency }),
  );
  const callbackSecret = madeSecret(context, callback, session);
  if (session.id !== id) return { ...(await describeRead(context, call, session)), callbackSecret };
  noteSession(context, call, session);
  const form = await sessionsForm(context.forms, session.formId);
  return { session: await describeSession(context, form, session), callbackSecret };
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

async function findFirst(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
  { key, idempotency }: { key: string; idempotency: Idempotency | undefined },
): Promise<First<Session> | null> {
  const session = await findRequestedSession(context.database, key);
  if (session !== null) return firstOf(session);
  const former = await findFormer(context, request, call);
  if (former === null) return null;
  const isSame = former.requestFingerprint === formerSessionDigest(context, request);
  return { ...firstOf(former), ...(isSame && { fingerprint: idempotency?.fingerprint ?? null }) };
}

/** What the version before opened for the same caller: of its form, or of the form that asks the same questions. */
async function findFormer(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
): Promise<Session | null> {
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

/** The hidden form of questions can be removed, where nobody used it, before the session is stored: then it is made again. */
async function openSession(
  context: ServiceContext,
  request: CreateSessionRequest,
  opening: Opening,
): Promise<Session> {
  for (;;) {
    const form = await askedForm(context, request, opening.call);
    using room = await reserveValues(context, form, request, opening.call);
    const session = await openNewSession(context, form, request, opening);
    // Else it was made, and counted, earlier.
    if (session?.id === opening.id) room?.keep();
    if (session !== undefined) return session;
    context.forms.forget(form.id);
  }
}

async function openNewSession(
  context: ServiceContext,
  form: PublishedForm,
  request: CreateSessionRequest,
  { id, idempotency, call }: Opening,
): Promise<Session | undefined> {
  if (form.status !== 'published') throw notFound('form');
  refuseIfClosed(form, context.now());
  const prefill = await inTimeSlice(() =>
    form.version.checkAnswers(request.prefill ?? {}, {
      root: 'prefill',
      required: false,
    }),
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
    ...(prefill.ok ? agentProblems(form.version.definition, prefill.answers) : []),
  ];
  if (violations.length > 0 || !prefill.ok)
    throw invalid(explainTo(context, call, form.version, request)(violations));

  if (idempotency !== undefined) requireDigest(idempotency);
  const { keyId } = callerOf(call);
  const { onePerRespondent } = form.version.definition.settings;
  // Where keys are not required, a session would take the place of the code.
  if (onePerRespondent === true && keyId === undefined) throw codeNeeded(context.settings, form.id);
  const { database } = context;
  const notify =
    request.notify === undefined ? null : storedNotify(request.notify, requireKey(call), context.now());
  const session: NewSession = {
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
    notify,
    ...(request.respondent && { respondent: { email: asciiAddress(request.respondent.email), codes: 0 } }),
    idempotency,
  };
  const store = async (tx: Transaction) => {
    if (isHidden(form) && !(await keepQuestionForm(tx, form.id))) return undefined;
    const inserted = await insertSession(tx, session);
    if (inserted.id !== id) return inserted;
    await notifyOf(tx, context, inserted, { form, call });
    const { respondent } = inserted;
    if (respondent !== null && keyId !== undefined) {
      await countNotifiedMailboxes(tx, context, { keyId, addresses: [respondent.email] });
    }
    return inserted;
  };
  const stored =
    isHidden(form) || notify !== null || request.respondent !== undefined
      ? await database.transaction(store)
      : await insertSession(database, session);
  if (notify !== null) context.notifyWorkers();
  if (stored !== undefined) requireSame(idempotency, firstOf(stored));
  return stored;
}

function firstOf(session: Session): First<Session> {
  return { fingerprint: session.requestFingerprint, sessionId: session.id, made: () => session };
}

type Opening = { id: string; idempotency: Idempotency | undefined; call: HandlerContext };

import type { HandlerContext } from '@connectrpc/connect';
import type { CreateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { newSessionId } from '../../domain/ids.ts';
import { contextFromMessage, contextProblems, contextToJson } from '../../domain/sessions/context.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { keepQuestionForm } from '../../store/forms/questions.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findRepeatedSession, insertSession, type NewSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { isHidden, type PublishedForm, refuseIfClosed } from '../forms/form-access.ts';
import {
  type First,
  type Idempotency,
  readIdempotency,
  replayAfterRefusal,
  sameRequest,
} from '../idempotency.ts';
import { inTimeSlice } from '../limits/time-slice.ts';
import { explainTo } from '../submissions/accept-answers.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { callbackInContent, callbackProblems, madeSecret, storedCallback } from './callback.ts';
import {
  countNotifiedMailboxes,
  notifyInContent,
  notifyOf,
  notifyProblems,
  requireNotifyScope,
  storedNotify,
} from './notify.ts';
import { askedForm, requireKey } from './question-form.ts';
import { codeNeeded, describeSession, noteSession, reserveValues } from './session-access.ts';
import {
  agentProblems,
  lifeOf,
  lifeProblems,
  metadataProblems,
  respondentProblems,
  returnUrlProblems,
  withoutNulls,
} from './session-request.ts';

/** Opens a session of a form, or of questions of its own; a repeated request gets the one that the first has opened. */
export async function createSession(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
) {
  const { context: shown, callback, notify, respondent } = request;
  const isMailed = notify !== undefined || respondent !== undefined;
  if (shown !== undefined || callback !== undefined || isMailed) requireKey(call);
  if (isMailed) requireNotifyScope(call);
  for (;;) {
    const form = await askedForm(context, request, call);
    const session = await createSessionOf(form, context, request, call);
    // Else the hidden form has been removed meanwhile, since nobody used it: it is made again.
    if (session !== undefined) {
      return {
        session: await describeSession(context, form, session),
        callbackSecret: madeSecret(context, callback, session),
      };
    }
    context.forms.forget(form.id);
  }
}

async function createSessionOf(
  form: PublishedForm,
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
): Promise<Session | undefined> {
  using room = await reserveValues(context, form, request, call);
  const id = newSessionId();
  const shown = request.context && contextToJson(request.context);
  const idempotency = readIdempotency(request.idempotencyKey, {
    expires_in: lifeOf(request),
    prefill: request.prefill ?? {},
    metadata: request.metadata ?? {},
    ...(request.returnUrl !== '' && { return_url: request.returnUrl }),
    ...(request.returnOutcome && { return_outcome: true }),
    ...(shown !== undefined && { context: shown }),
    ...(request.allowDecline && { allow_decline: true }),
    ...(request.callback !== undefined && { callback: callbackInContent(context, request.callback) }),
    ...(request.notify !== undefined && { notify: notifyInContent(request.notify) }),
    ...(request.respondent !== undefined && { respondent: request.respondent.email }),
  });
  const session = await replayAfterRefusal(
    idempotency,
    () => openNewSession(context, form, request, { id, idempotency, call }),
    async (key) => {
      const first = await findRepeatedSession(context.database, form.id, key);
      return first && firstOf(first);
    },
  );
  // Else it was made, and counted, earlier.
  if (session?.id === id) room?.keep();
  if (session !== undefined) noteSession(context, call, session);
  return session;
}

async function openNewSession(
  context: ServiceContext,
  form: PublishedForm,
  request: CreateSessionRequest,
  { id, idempotency, call }: { id: string; idempotency: Idempotency | undefined; call: HandlerContext },
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
    ...(request.returnUrl !== '' && { returnUrl: request.returnUrl }),
    returnOutcome: request.returnOutcome,
    context: contextFromMessage(request.context),
    allowDecline: request.allowDecline,
    ...storedCallback(context, request.callback, call),
    notify,
    ...(request.respondent !== undefined && { respondent: { email: request.respondent.email, codes: 0 } }),
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
  return stored && sameRequest<Session>(idempotency, firstOf(stored));
}

function firstOf(session: Session): First<Session> {
  return { made: session, fingerprint: session.requestFingerprint };
}

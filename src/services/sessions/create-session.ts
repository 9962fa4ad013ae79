import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { CreateSessionRequest } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { failed, invalid, notFound } from '../../domain/errors/failure.ts';
import { newSessionId } from '../../domain/ids.ts';
import { contextFromMessage, contextProblems, contextToJson } from '../../domain/sessions/context.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findRepeatedSession, insertSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, publishedForm, refuseIfClosed } from '../forms/form-access.ts';
import {
  type First,
  type Idempotency,
  readIdempotency,
  replayAfterRefusal,
  sameRequest,
} from '../idempotency.ts';
import { inTimeSlice } from '../limits/time-slice.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { callbackInContent, callbackProblems, madeSecret, storedCallback } from './callback.ts';
import { noteSession, reserveValues, sessionToMessage } from './session-access.ts';
import {
  agentProblems,
  lifeOf,
  lifeProblems,
  metadataProblems,
  returnUrlProblems,
  withoutNulls,
} from './session-request.ts';

/** Opens a session of a published form; a repeated request gets the one that the first has opened. */
export async function createSession(
  context: ServiceContext,
  request: CreateSessionRequest,
  call: HandlerContext,
) {
  if (request.context !== undefined || request.callback !== undefined) requireKey(call);
  const { case: subject, value } = request.subject;
  if (subject !== 'formId') throw notFound('form');
  const form = await publishedForm(context.forms, value, callerOf(call).projectId);
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
  if (session.id === id) room?.keep();
  noteSession(context, call, session);
  return {
    session: sessionToMessage(context, form, session),
    callbackSecret: madeSecret(context, request.callback, session),
  };
}

async function openNewSession(
  context: ServiceContext,
  form: PublishedForm,
  request: CreateSessionRequest,
  { id, idempotency, call }: { id: string; idempotency: Idempotency | undefined; call: HandlerContext },
): Promise<Session> {
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
    ...files.violations,
    ...(prefill.ok ? agentProblems(form.version.definition, prefill.answers) : []),
  ];
  if (violations.length > 0 || !prefill.ok) throw invalid(violations);

  const { keyId } = callerOf(call);
  const stored = await insertSession(context.database, {
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
    idempotency,
  });
  return sameRequest(idempotency, firstOf(stored));
}

/** Where keys are not required, strangers may open sessions, but write nothing of their own above the questions. */
function requireKey(call: HandlerContext): void {
  if (callerOf(call).keyId === undefined) {
    throw failed(
      Reason.MISSING_KEY,
      'A session with a context, a callback or questions of its own needs an API key',
    );
  }
}

function firstOf(session: Session): First<Session> {
  return { made: session, fingerprint: session.requestFingerprint };
}

import type { HandlerContext } from '@connectrpc/connect';
import type {
  CancelSessionRequest,
  UpdateSessionRequest,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { sessionEvent } from '../../domain/events/index.ts';
import { callerOf } from '../../rpc/context.ts';
import { insertAnnouncedEvents } from '../../store/deliveries/webhook-deliveries.ts';
import { cancelLockedSession, lockSession, updateSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import type { LiveVersion } from '../forms/form-access.ts';
import { publishedForm } from '../forms/form-access.ts';
import { inTimeSlice } from '../limits/time-slice.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import {
  noteSession,
  openSession,
  projectSession,
  refuseIfEnded,
  reserveValues,
  sessionToMessage,
} from './session-access.ts';
import { toSessionChange, type UpdateView } from './session-request.ts';

/**
 * Changes an open session.
 *
 * What the change needs to know is read and checked first: the embedded database can't be asked within a
 * transaction, and nothing else can be done there meanwhile.
 */
export async function changeSession(
  context: ServiceContext,
  request: UpdateSessionRequest,
  call: HandlerContext,
) {
  const { form, version } = await openSession(
    context,
    await projectSession(context.database, callerOf(call), request.sessionId),
  );
  using room = await reserveValues(context, form, request, call);
  const prefill = await inTimeSlice(() =>
    version.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false }),
  );
  const answers = await inTimeSlice(() => version.checkAnswers(request.answers ?? {}, { required: false }));
  await refuseUnknownFiles(context, version, { prefill, answers });

  const { allowPartial } = form.version.definition.settings;
  const session = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, request.sessionId);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const change = toSessionChange(request, locked, {
      prefill,
      answers,
      definition: version.definition,
      allowPartial,
      keyId: callerOf(call).keyId,
    });
    return updateSession(tx, locked.id, change);
  });
  room?.keep();
  noteSession(context, call, session);
  return { session: sessionToMessage(context, form, session) };
}

/** Ends an open session; the event of that is stored in the same commit. */
export async function cancelSession(
  context: ServiceContext,
  { sessionId }: CancelSessionRequest,
  call: HandlerContext,
) {
  const { formId } = await projectSession(context.database, callerOf(call), sessionId);
  const form = await publishedForm(context.forms, formId);
  const session = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, sessionId);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const cancelled = await cancelLockedSession(tx, sessionId);
    const event = sessionEvent('session.cancelled', cancelled, context.now());
    await insertAnnouncedEvents(tx, 'session.cancelled', [event], context.settings.retrySchedule);
    return cancelled;
  });
  noteSession(context, call, session);
  context.notifyWorkers();
  return { session: sessionToMessage(context, form, session) };
}

/** Answers of the wrong shape are left to the change itself, which names all of them. */
async function refuseUnknownFiles(
  context: ServiceContext,
  version: LiveVersion,
  given: Pick<UpdateView, 'prefill' | 'answers'>,
): Promise<void> {
  for (const root of ['prefill', 'answers'] as const) {
    const checked = given[root];
    if (!checked.ok) return;
    const { violations } = await claimUploads(context, version, checked.answers, root);
    if (violations.length > 0) throw invalid(violations);
  }
}

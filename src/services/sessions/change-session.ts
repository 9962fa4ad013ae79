import type { HandlerContext } from '@connectrpc/connect';
import type {
  CancelSessionRequest,
  DeclineSessionRequest,
  UpdateSessionRequest,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import type { AnswersResult } from '../../domain/answers/answers.ts';
import { withoutRefused } from '../../domain/answers/held.ts';
import { invalid, notFound, violationToMessage } from '../../domain/errors/failure.ts';
import { atMost } from '../../domain/errors/violations.ts';
import { refuseIfEnded } from '../../domain/sessions/failures.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { lockSession, updateSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { type LiveVersion, type PublishedForm, sessionsForm } from '../forms/form-access.ts';
import { keepReply } from '../idempotency.ts';
import { endSession, openSession } from '../open-session.ts';
import { explainTo } from '../submissions/accept-answers.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { describeSession } from './describe-session.ts';
import { noteSession, projectSession, reserveValues } from './find-session.ts';
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
    await projectSession(context, callerOf(call), request.sessionId),
  );
  using room = await reserveValues(context, form, request, call);
  const prefill = await inTimeSlice(() =>
    version.checkAnswers(request.prefill ?? {}, { root: 'prefill', required: false }),
  );
  const whole = await inTimeSlice(() => version.checkAnswers(request.answers ?? {}, { required: false }));
  const kept = request.lenient ? await fittingOf(context, version, whole) : { answers: whole, refused: [] };
  const { answers, refused } = kept;
  const explain = explainTo(context, call, version, request);
  await refuseUnknownFiles(context, version, { prefill, answers, explain });

  const { allowPartial } = form.version.definition.settings;
  const { session, reply } = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, request.sessionId);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const change = toSessionChange(request, locked, {
      prefill,
      answers,
      explain,
      definition: version.definition,
      allowPartial,
      keyId: callerOf(call).keyId,
    });
    const session = await updateSession(tx, locked.id, change);
    const more = request.lenient ? { refused: explain(refused).map(violationToMessage) } : {};
    return { session, reply: await keepSession(tx, context, call, { form, session }, more) };
  });
  room?.keep();
  noteSession(context, call, session);
  return reply;
}

/** The reply of a call that changes a session, kept for where it is repeated. */
async function keepSession(
  tx: Transaction,
  { settings }: ServiceContext,
  call: HandlerContext,
  { form, session }: { form: PublishedForm; session: Session },
  more: object = {},
) {
  const described = await describeSession({ settings, database: tx }, form, session);
  return keepReply(tx, call, { session: described, ...more });
}

/** Ends an open session before its time; one that is cancelled already is as it was. */
export async function cancelSession(
  context: ServiceContext,
  { sessionId }: CancelSessionRequest,
  call: HandlerContext,
) {
  const before = await projectSession(context, callerOf(call), sessionId);
  const form = await sessionsForm(context.forms, before.formId);
  const session = before.status === 'cancelled' ? before : await endSession(context, sessionId);
  if (session !== before) noteSession(context, call, session);
  return { session: await describeSession(context, form, session) };
}

/** Ends an open session whose person does not want to answer. */
export async function declineSession(
  context: ServiceContext,
  { sessionId, reason }: DeclineSessionRequest,
  call: HandlerContext,
) {
  const { formId } = await projectSession(context, callerOf(call), sessionId);
  const form = await sessionsForm(context.forms, formId);
  const keep = (tx: Transaction, session: Session) => keepSession(tx, context, call, { form, session });
  const session = await endSession(context, sessionId, { reason, keep });
  noteSession(context, call, session);
  return { session: await describeSession(context, form, session) };
}

/** Of lenient partial answers those that can be kept, and what is wrong with the others. */
async function fittingOf(context: ServiceContext, version: LiveVersion, whole: AnswersResult) {
  const fitting = whole.ok ? whole.answers : (whole.fitting ?? {});
  const { violations } = await claimUploads(context, version, fitting);
  const answers: AnswersResult = { ok: true, answers: withoutRefused(fitting, violations) };
  return { answers, refused: atMost([...(whole.ok ? [] : whole.violations), ...violations]) };
}

/** Answers of the wrong shape are left to the change itself, which names all of them. */
async function refuseUnknownFiles(
  context: ServiceContext,
  version: LiveVersion,
  given: Pick<UpdateView, 'prefill' | 'answers' | 'explain'>,
): Promise<void> {
  for (const root of ['prefill', 'answers'] as const) {
    const checked = given[root];
    if (!checked.ok) return;
    const { violations } = await claimUploads(context, version, checked.answers, root);
    if (violations.length > 0) throw invalid(given.explain(violations));
  }
}

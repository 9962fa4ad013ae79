import { isDeepStrictEqual } from 'node:util';
import type { HandlerContext } from '@connectrpc/connect';
import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import { withoutRefused } from '../../domain/answers/held.ts';
import {
  changedOrigins,
  currentAnswersOf,
  originOnPage,
  type SessionOrigins,
} from '../../domain/answers/provenance.ts';
import { limited, notFound } from '../../domain/errors/failure.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { isKeyless, newSessionId } from '../../domain/ids.ts';
import { refuseIfEnded } from '../../domain/sessions/failures.ts';
import { FORM_VISIT_MS } from '../../domain/sessions/respondent.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import { addKeylessBytes, bytesOfSession } from '../../store/keyless-storage.ts';
import type { Session, StartingValues } from '../../store/sessions/session-table.ts';
import { insertSession, lockSession, type NewSession, updateSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { type LiveVersion, refuseIfClosed } from '../forms/form-access.ts';
import { checkSize } from '../submissions/accept-answers.ts';
import { claimUploads } from '../uploads/upload-claims.ts';
import { keyOfPage } from './page-token.ts';
import type { HostedVisit } from './resolve-visit.ts';

/**
 * Keeps the answers that fit, but for files that can't be had, if the form keeps partial answers and there is a
 * session.
 */
export async function keepFitting(context: ServiceContext, saving: Saving): Promise<Kept> {
  const { form, version, stored, session } = saving.visit;
  const { violations: unclaimed } = await claimUploads(context, version, saving.fitting);
  const fitting = withoutRefused(saving.fitting, unclaimed);
  const saved = form.version.definition.settings.allowPartial && stored !== undefined;
  const kept = saved ? await keep(context, saving, stored, fitting) : session;
  return {
    // Without what was saved, where the browser is not shown it.
    session: session === stored ? kept : session,
    fitting,
    unclaimed,
    saved,
  };
}

async function keep(
  context: ServiceContext,
  { visit: { form, version }, call }: Saving,
  stored: Session,
  fitting: Answers,
): Promise<Session> {
  const { id, keylessBytes } = stored;
  const before = stored.partialAnswers ?? {};
  const written = mergeAnswers(before, fitting);
  // A page saves whenever something is typed, and each time all answers are written.
  if (isDeepStrictEqual(written, before)) return stored;
  const bytes = Buffer.byteLength(JSON.stringify(written));
  refuseTooMuch(context, id, bytes);
  using room = context.keylessStorage.reserve(form.projectId, clientAddressOf(call));
  if (isKeyless(form) || keylessBytes !== null) await room.add(bytes);
  const kept = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, id);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const partialAnswers = mergeAnswers(locked.partialAnswers ?? {}, fitting);
    checkSize(form, partialAnswers);
    const counted = bytesOfVisitor({ ...locked, partialAnswers });
    const added = (counted ?? 0) - (locked.keylessBytes ?? 0);
    if (added !== 0) await addKeylessBytes(tx, { formId: form.id, projectId: form.projectId, bytes: added });
    const provenance = originsAfter(locked, version, fitting);
    const change = counted === undefined ? {} : { keylessBytes: counted };
    return updateSession(tx, id, { partialAnswers, provenance, ...change });
  });
  room.keep();
  return kept;
}

/** Throws RATE_LIMITED if a session's answers were written too often for their size. */
function refuseTooMuch({ sessionWrites, settings }: ServiceContext, id: string, bytes: number): void {
  const { hits, endsInMs } = sessionWrites.count(id, bytes);
  if (!settings.rateLimit || hits <= WRITTEN_A_MINUTE) return;
  throw limited('session_bytes', 'The answers are saved too often', endsInMs / 1000);
}

/** Several times a form's largest answers: 180 MiB an hour, where 600 saves a minute could write 2.1 GiB. */
const WRITTEN_A_MINUTE = 3 * 1024 * 1024;

/** What a visitor's session counts for, as large as it has been at most; undefined for a session of another kind. */
function bytesOfVisitor(session: Session): number | undefined {
  return session.keylessBytes === null ? undefined : Math.max(session.keylessBytes, bytesOfSession(session));
}

function originsAfter(session: Session, { definition }: LiveVersion, fitting: Answers): SessionOrigins {
  const { createdAt, readAt, provenance, partialAnswers } = session;
  const held = currentAnswersOf(session);
  const fields = new Map(definition.fields.map((field) => [field.id, field]));
  const before = partialAnswers ?? {};
  return {
    prefill: provenance?.prefill ?? [{ by: 'prefill' }],
    partial: changedOrigins({
      stored: provenance?.partial,
      before,
      change: fitting,
      after: mergeAnswers(before, fitting),
      createdAt,
      originOf: (id, answer) => {
        const field = fields.get(id);
        return field && originOnPage(field, answer, held, readAt.toISOString());
      },
    }),
  };
}

type Saving = {
  visit: HostedVisit;
  fitting: Answers;
  call: HandlerContext;
};

export type Kept = {
  /** What holds the answers by now. */
  session: StartingValues;
  fitting: Answers;
  /** What is wrong with the files that fit by themselves. */
  unclaimed: Violation[];
  saved: boolean;
};

/**
 * Opens a session for the visitor of a form's own page, who has none yet. A page that asks twice, as for two files at
 * once, gets one session; in a browser that has begun others, none but its own. Throws `FAILED_PRECONDITION` if the
 * form takes no more submissions.
 */
export async function openVisitorsSession(
  context: ServiceContext,
  { form, version, session: { prefill }, standing: { respondent } }: HostedVisit,
  { issueToken, begun }: { issueToken: string; begun: readonly string[] },
  call: HandlerContext,
): Promise<{ session: Session; begun: boolean }> {
  refuseIfClosed(form, context.now());
  checkSize(form, prefill);
  const keylessBytes = bytesOfSession({ prefill, partialAnswers: null });
  using room = context.keylessStorage.reserve(form.projectId, clientAddressOf(call));
  await room.add(keylessBytes);
  const id = newSessionId();
  const fresh: NewSession = {
    id,
    projectId: form.projectId,
    formId: form.id,
    versionId: version.id,
    prefill,
    metadata: {},
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    expiresIn: FORM_VISIT_MS / 1000,
    keylessBytes,
    ...(respondent !== undefined && { respondent: { email: respondent.email, codes: 0 } }),
  };
  const page = { token: issueToken, pageIds: [form.id], now: context.now() };
  const idempotency = keyOfPage(context.verifyingKeys, page, {}, begun);
  const first = await insertSession(context.database, { ...fresh, idempotency });
  // A page may stay open for longer than its session.
  const stored = first.status === 'expired' ? await insertSession(context.database, fresh) : first;
  if (stored.id === id) room.keep();
  return { session: stored, begun: stored.id === id };
}

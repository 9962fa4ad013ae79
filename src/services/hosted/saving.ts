import { type Answers, mergeAnswers } from '../../domain/answers/answers.ts';
import {
  changedOrigins,
  heldBy,
  originOnPage,
  type SessionOrigins,
} from '../../domain/answers/provenance.ts';
import { violationToMessage } from '../../domain/errors/violation-message.ts';
import { fieldIdOf, type Violation } from '../../domain/errors/violations.ts';
import { notFound } from '../../rpc/errors.ts';
import { bytesOfSession } from '../../store/keyless-storage.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { lockSession, updateSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import type { LiveVersion } from '../forms/form-reader.ts';
import { refuseIfEnded, savedAnswers, type Visit } from '../sessions/session-access.ts';
import { checkSize } from '../submissions/accept-answers.ts';
import { claimUploads, describeUnclaimed } from '../uploads/upload-claims.ts';
import { currentAnswers, visibleAnswers } from './hosted-message.ts';

/**
 * Keeps the answers that fit, if the form keeps partial answers and there is a session, and names those that do not;
 * with a `page`, also the answers that this page still lacks.
 */
export async function saveAnswers(context: ServiceContext, saving: Saving) {
  const { session, form, version, page } = saving;
  const { definition } = version;
  const { fitting, violations } = await separateFitting(context, saving);

  const { allowPartial } = form.version.definition.settings;
  const keeps = allowPartial && session.id !== null;
  const current = keeps ? await keep(context, saving, session.id ?? '', fitting) : session;

  const whole = await version.checkAnswers(fitting, { base: savedAnswers(current), byPerson: true });
  const onPage = new Set(definition.fields.flatMap((field) => (field.page === page ? [field.id] : [])));
  const refused = new Set(violations.map(({ path }) => fieldIdOf(path)));
  const lacking = whole.ok
    ? []
    : whole.violations.filter(({ path }) => onPage.has(fieldIdOf(path)) && !refused.has(fieldIdOf(path)));

  const partialAnswers = mergeAnswers(current.partialAnswers ?? {}, fitting);
  const answers = visibleAnswers(definition, currentAnswers(definition, { ...current, partialAnswers }));
  return {
    answers: await describeUnclaimed(context, version, answers),
    violations: [...violations, ...lacking].map(violationToMessage),
    saved: keeps,
  };
}

/** Divides what was given into answers that fit, each by itself, and the problems of the others. */
async function separateFitting(context: ServiceContext, { version, given }: Saving) {
  const checked = await version.checkAnswers(given, { required: false, byPerson: true });
  const violations = checked.ok ? [] : checked.violations;
  const rest = checked.ok
    ? checked
    : await version.checkAnswers(without(given, violations), { required: false, byPerson: true });
  const fitting = rest.ok ? rest.answers : {};
  const files = await claimUploads(context, version, fitting);
  return { fitting: without(fitting, files.violations), violations: [...violations, ...files.violations] };
}

async function keep(
  context: ServiceContext,
  { form, version }: Saving,
  id: string,
  fitting: Answers,
): Promise<Session> {
  let added = 0;
  const kept = await context.database.transaction(async (tx) => {
    const locked = await lockSession(tx, id);
    if (locked === null) throw notFound('session');
    refuseIfEnded(locked);
    const partialAnswers = mergeAnswers(locked.partialAnswers ?? {}, fitting);
    checkSize(form, partialAnswers);
    const keylessBytes = bytesOfVisitor({ ...locked, partialAnswers });
    added = (keylessBytes ?? 0) - (locked.keylessBytes ?? 0);
    const provenance = originsAfter(locked, version, fitting);
    const counted = keylessBytes === undefined ? {} : { keylessBytes };
    return updateSession(tx, id, { partialAnswers, provenance, ...counted });
  });
  const { formId, projectId } = kept;
  if (added !== 0) context.keylessStorage.record({ formId, projectId, bytes: added });
  return kept;
}

/** What a visitor's session counts for, as large as it has been at most; undefined for a session of another kind. */
function bytesOfVisitor(session: Session): number | undefined {
  return session.keylessBytes === null ? undefined : Math.max(session.keylessBytes, bytesOfSession(session));
}

function originsAfter(session: Session, { definition }: LiveVersion, fitting: Answers): SessionOrigins {
  const { createdAt, readAt, provenance, partialAnswers } = session;
  const held = heldBy(session);
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

function without(answers: Answers, violations: Violation[]): Answers {
  const refused = new Set(violations.map(({ path }) => fieldIdOf(path)));
  return Object.fromEntries(Object.entries(answers).filter(([id]) => !refused.has(id)));
}

export type Saving = {
  session: Visit;
  form: PublishedForm;
  version: LiveVersion;
  /** As the page sent them, without hidden fields. */
  given: Answers;
  /** 0: no page needs to be complete. */
  page: number;
};

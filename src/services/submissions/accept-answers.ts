import type { HandlerContext } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { inTimeSlice } from '../../admission/time-slice.ts';
import { mailboxOf } from '../../domain/addresses/email-address.ts';
import type { Answers, AnswersResult } from '../../domain/answers/answers.ts';
import { savedAnswers } from '../../domain/answers/held.ts';
import { currentAnswersOf, originsOf, verified } from '../../domain/answers/provenance.ts';
import { languageFor } from '../../domain/definition/translate.ts';
import { failed, invalid } from '../../domain/errors/failure.ts';
import { custom, type Violation } from '../../domain/errors/violations.ts';
import { eventTypes } from '../../domain/events/index.ts';
import { isKeyless, newId } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { MAX_KEYLESS_BYTES } from '../../domain/limits/limits.ts';
import { holds } from '../../domain/scopes.ts';
import {
  alreadyAnswered,
  alreadySubmitted,
  cancelled,
  codeNeeded,
  declined,
  expired,
} from '../../domain/sessions/failures.ts';
import type { VerifiedRespondent } from '../../domain/sessions/respondent.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { callerIfAny } from '../../rpc/context.ts';
import { callbackEvent } from '../../store/deliveries/enqueue.ts';
import { bytesOfSubmission } from '../../store/keyless-storage.ts';
import type { StartingValues } from '../../store/sessions/session-table.ts';
import { storeCorrection } from '../../store/submissions/corrections.ts';
import type { NewSubmission } from '../../store/submissions/submission-insert.ts';
import type { ServiceContext } from '../context.ts';
import {
  closed,
  isHidden,
  type LiveVersion,
  type PublishedForm,
  recountIfAlmostFull,
  refuseIfClosed,
} from '../forms/form-access.ts';
import { type Idempotency, requireSame } from '../idempotency.ts';
import { strangerAddress } from '../limits/keyless-storage.ts';
import { type ClaimedUploads, claimUploads } from '../uploads/upload-claims.ts';

/**
 * Checks answers against a form's version and stores them as a submission, in one commit with the event
 * that announces it. The answers of a session go over what it holds already.
 *
 * Throws `INVALID_ARGUMENT` with every refused answer, or if a file went to another submission;
 * `FAILED_PRECONDITION` if the form is closed or archived, or the session has ended; and
 * `ALREADY_EXISTS` if the idempotency key was used for another request. Of any number of calls at once
 * with the same session or key, one makes the submission.
 */
export async function acceptAnswers(context: ServiceContext, entry: Entry): Promise<AcceptedAnswers> {
  const { form } = entry;
  const now = context.now();
  refuseIfClosed(form, now);
  refuseWithoutCode(context, entry);
  const { answers, uploadIds, violations } = await checkedAnswers(context, entry);
  if (violations.length > 0) throw invalid(violations);
  // With what a session holds they can be more than came at once.
  checkSize(form, answers);

  const submission = toSubmission(entry, answers, uploadIds, now);
  const submissionId = await storeWithin(context, entry, submission);
  return { submissionId, submission };
}

/** A form that takes one submission of each mailbox takes them from its page, and from keys that may submit. */
function refuseWithoutCode({ settings }: ServiceContext, entry: Entry): void {
  const { form, byHuman = false, session, call } = entry;
  if (byHuman || form.version.definition.settings.onePerRespondent !== true) return;
  const isAllowed = session?.id != null || holds(callerIfAny(call)?.scopes ?? [], 'submissions:write');
  if (keyOf(entry) === undefined || !isAllowed) throw codeNeeded(settings, form.id);
}

/** Stores a submission; one of a form made without a key, as far as there is room for it. */
async function storeWithin(
  context: ServiceContext,
  entry: Entry,
  submission: NewSubmission,
): Promise<string> {
  if (!isKeyless(entry.form)) return store(context, entry, submission);

  const { projectId } = submission;
  const keylessBytes = bytesOfSubmission(submission);
  using room = context.keylessStorage.reserve(projectId, strangerAddress(entry.call, projectId));
  await room.add(keylessBytes);
  const submissionId = await store(context, entry, { ...submission, keylessBytes });
  // Else it is an earlier one, which was counted then.
  if (submissionId === submission.id) room.keep();
  return submissionId;
}

/** Answers as they would be stored, with the uploads that they name, or all that is wrong with them. */
export async function checkedAnswers(
  context: ServiceContext,
  entry: Pick<Entry, 'call' | 'version' | 'answers' | 'checked' | 'session' | 'byHuman'>,
): Promise<ClaimedUploads> {
  const { version, answers, session, byHuman = false } = entry;
  const base = session && savedAnswers(session);
  const checked =
    entry.checked ?? (await inTimeSlice(() => version.checkAnswers(answers, { base, byPerson: byHuman })));
  const claimed = checked.ok
    ? await claimUploads(context, version, checked.answers)
    : { answers: {}, uploadIds: [], violations: checked.violations };
  // The page has words of its own.
  if (claimed.violations.length === 0 || byHuman) return claimed;
  const explain = explainTo(context, entry.call, version, { answers: { ...base, ...answers } });
  return { ...claimed, violations: explain(claimed.violations) };
}

/** Says what is wrong with answers and prefill in the language that the caller of an API prefers. */
export function explainTo(
  { explainRefusals }: ServiceContext,
  { requestHeader }: Pick<HandlerContext, 'requestHeader'>,
  { definition }: Pick<LiveVersion, 'definition'>,
  given: Parameters<ServiceContext['explainRefusals']>[2],
): (violations: readonly Violation[]) => Violation[] {
  const acceptLanguage = requestHeader.get('accept-language') ?? '';
  return (violations) => explainRefusals(violations, definition, given, acceptLanguage);
}

/** Refuses more answers than a form made without a key takes. */
export function checkSize(form: PublishedForm, content: object): void {
  if (!isKeyless(form)) return;
  if (Buffer.byteLength(JSON.stringify(content)) <= MAX_KEYLESS_BYTES) return;
  throw failed(Reason.TOO_LARGE, `This form takes submissions of at most ${MAX_KEYLESS_BYTES} bytes`);
}

/** Spam is sent to nobody. `at` is in milliseconds. */
function toSubmission(entry: Entry, answers: Answers, uploadIds: string[], at: number): NewSubmission {
  const {
    form,
    version,
    session,
    source,
    channel = 'api',
    byHuman = false,
    spam = false,
    idempotency,
  } = entry;
  const { respondent = null } = entry;
  const { corrects } = version;
  const createdAt = new Date(at);
  // Written once, which takes half a microsecond.
  const instant = createdAt.toISOString();
  const origins = originsOf(
    {
      definition: version.definition,
      answers,
      given: entry.answers ?? {},
      by: byHuman ? 'human' : channel,
      keyId: keyOf(entry),
      at: instant,
    },
    session && currentAnswersOf(session),
  );
  const provenance = respondent === null ? origins : origins.map(verified);
  const facts = {
    id: newId('sub', at),
    formId: form.id,
    sessionId: corrects?.sessionId ?? session?.id ?? null,
    source,
    metadata: session?.metadata ?? {},
    createdAt,
  };
  const type = byHuman ? 'submission.completed' : 'submission.created';
  const event = { id: newId('evt', at), at: instant };
  const language = languageOf(entry);
  const announced = {
    ...facts,
    replaces: corrects?.id,
    createdAt: instant,
    provenance,
    formVersionId: version.id,
    ...(language !== undefined && { language }),
    formCreatedBy: form.createdBy,
    ...(session?.id != null && { outcome: 'submitted' }),
    ...(session?.context && { contextChecksum: fingerprint(session.context) }),
    ...(respondent !== null && { respondent }),
  };
  return {
    ...facts,
    answers,
    provenance,
    projectId: form.projectId,
    versionId: version.id,
    status: spam ? 'spam' : 'accepted',
    idempotencyKey: idempotency?.key ?? null,
    requestFingerprint: idempotency?.fingerprint ?? null,
    uploadIds,
    replaces: corrects?.id ?? null,
    replacedBy: null,
    respondent,
    // Spam never uses up a mailbox.
    respondentKey:
      form.version.definition.settings.onePerRespondent === true && respondent !== null && !spam
        ? mailboxOf(respondent.email)
        : null,
    ...(session?.id &&
      session.callback && {
        callback: callbackEvent(
          { id: session.id, formId: form.id, metadata: session.metadata },
          { outcome: 'submitted', submissionId: facts.id },
          at,
        ),
      }),
    // Spam never uses up an owner's limit.
    maxAccepted: spam ? undefined : form.version.definition.settings.maxSubmissions,
    event: spam
      ? { id: event.id, type: 'submission.spam', body: null }
      : {
          id: event.id,
          type,
          body: eventTypes[type].body(event, announced),
          skipMailsForVersion: skipMailsForVersion(form),
        },
  };
}

/** In which of its languages a translated form was filled in. */
function languageOf({ call, version: { definition } }: Entry): string | undefined {
  if (definition.translations === undefined) return undefined;
  return languageFor(definition, preferredLanguages(call.requestHeader.get('accept-language') ?? ''));
}

/** The key that brings a submission, if it is one of the form's project. */
function keyOf({ call, form }: Entry): string | undefined {
  const caller = callerIfAny(call);
  return caller?.projectId === form.projectId ? caller.keyId : undefined;
}

/**
 * Submissions of hidden forms, which have no owner, and of forms that are delivered to webhooks cause no emails, unless
 * another version is published.
 */
function skipMailsForVersion(form: PublishedForm): string | undefined {
  const { version } = form;
  return isHidden(form) || version.definition.delivery.type === 'webhook' ? version.id : undefined;
}

/** Returns the submission's id, which is that of an earlier one if the idempotency key was used before. */
async function store(context: ServiceContext, entry: Entry, row: NewSubmission): Promise<string> {
  const written = await (row.replaces === null ? context.writer.write(row) : storeCorrection(context, row));
  switch (written.outcome) {
    case 'stored':
      recountIfAlmostFull(context.forms, entry.form);
      if (row.replaces !== null) context.notifyWorkers();
      return row.id;
    case 'duplicate':
      requireSame(entry.idempotency, written);
      return written.submissionId;
    case 'form_full':
      context.forms.forget(entry.form.id);
      throw closed();
    case 'session_submitted':
      throw alreadySubmitted(written.submissionId);
    case 'session_expired':
      throw expired();
    case 'session_cancelled':
      throw cancelled();
    case 'session_declined':
      throw declined();
    case 'respondent_known':
      throw alreadyAnswered();
    case 'upload_taken':
      throw invalid([custom('answers', 'A file has just been used by another submission')]);
    default:
      return written satisfies never;
  }
}

/** What a submission is made of. The answers are as they came. */
export type Entry = {
  /** The call that brings it. */
  call: Pick<HandlerContext, 'values' | 'requestHeader'>;
  form: PublishedForm;
  version: LiveVersion;
  answers: JsonObject | undefined;
  /** What they came to, with those of the session, if they have been checked. */
  checked?: AnswersResult | undefined;
  source: string;
  /** The session that it ends, or what a visitor's page began with. */
  session?: StartingValues;
  /** Whether a human completed it on the hosted page. */
  byHuman?: boolean;
  /** What else than the page the answers came by. */
  channel?: 'api' | 'mcp_user';
  spam?: boolean;
  /** Who has given a code on the page. */
  respondent?: VerifiedRespondent | undefined;
  idempotency?: Idempotency | undefined;
};

export type AcceptedAnswers = {
  /** Another's than `submission`'s if the request repeats one with the same idempotency key. */
  submissionId: string;
  submission: NewSubmission;
};

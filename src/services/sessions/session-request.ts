import { type Duration, timestampMs } from '@bufbuild/protobuf/wkt';
import type {
  CreateSessionRequest,
  UpdateSessionRequest,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { type Answers, type AnswersResult, mergeAnswers } from '../../domain/answers/answers.ts';
import { withoutNulls } from '../../domain/answers/held.ts';
import { changedOrigins, type Origin, type SessionOrigins } from '../../domain/answers/provenance.ts';
import { lackingFromAgent } from '../../domain/conditions/shown-fields.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { isHttpsUrl } from '../../domain/definition/settings.ts';
import { invalid } from '../../domain/errors/failure.ts';
import { required, type Violation } from '../../domain/errors/violations.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { jsonProblems, textProblem } from '../../domain/json/json-problems.ts';
import { MAX_PAGES, MAX_URL_LENGTH, sessionSeconds } from '../../domain/limits/limits.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { SessionChange } from '../../store/sessions/sessions.ts';
import { emailProblems, secondsProblems } from '../request-values.ts';

/** How long a session accepts answers, in seconds. */
export function lifeOf({ expiresIn }: CreateSessionRequest): number {
  return Number(expiresIn?.seconds ?? sessionSeconds.default);
}

/** What is wrong with a session's life as requested. */
export function lifeProblems(duration: Duration | undefined, path: string): Violation[] {
  return secondsProblems(duration, path, sessionSeconds);
}

/** What is wrong with metadata: any JSON that can be stored, up to 16 KiB. */
export function metadataProblems(metadata: JsonObject | undefined): Violation[] {
  if (metadata === undefined) return [];
  return jsonProblems(metadata, 'metadata', { exact: true, maxKib: MAX_METADATA_KIB });
}

/** What is wrong with the address that the person is sent back to. */
export function returnUrlProblems({ returnUrl }: CreateSessionRequest): Violation[] {
  if (returnUrl === '') return [];
  if (returnUrl.length > MAX_URL_LENGTH) {
    return [{ path: 'return_url', code: 'too_big', message: 'Expected at most 2,048 characters' }];
  }
  if (textProblem(returnUrl) === undefined && isHttpsUrl(returnUrl)) return [];
  return [{ path: 'return_url', code: 'invalid_string', message: 'Expected an HTTPS URL' }];
}

/** What is wrong with the person who is to answer. */
export function respondentProblems(respondent: CreateSessionRequest['respondent']): Violation[] {
  return respondent === undefined ? [] : emailProblems(respondent.email, 'respondent.email');
}

/** What is missing of the answers that only an agent can give: the page could not ask for them. */
export function agentProblems({ fields }: FormDefinition, held: Answers): Violation[] {
  return lackingFromAgent(fields, held).map(({ id }) => required(`prefill.${id}`));
}

/**
 * The change that an update makes to a session. Throws INVALID with every problem.
 *
 * The end of its life is counted from the instant the database read it, by the database's clock.
 */
export function toSessionChange(
  request: UpdateSessionRequest,
  session: Session,
  view: UpdateView,
): SessionChange {
  const { prefill, answers: partial, allowPartial, definition } = view;
  const metadata = merged(session.metadata, request.metadata);
  const end = endOf(request, session);
  const given = prefill.ok && partial.ok && (request.prefill !== undefined || request.answers !== undefined);
  const prefilled = prefill.ok ? merged(session.prefill, prefill.answers) : session.prefill;
  const partialAnswers = mergeAnswers(session.partialAnswers ?? {}, partial.ok ? partial.answers : {});
  const held = mergeAnswers(prefilled, partialAnswers);
  const violations = [
    ...lifeProblems(request.expiresIn, 'expires_in'),
    ...lifeProblems(request.extendBy, 'extend_by'),
    ...endProblems(request, session, end),
    ...metadataProblems(request.metadata === undefined ? undefined : metadata),
    ...(prefill.ok ? [] : prefill.violations),
    ...(partial.ok ? [] : partial.violations),
    ...(allowPartial ? stepProblems(request.step) : partialRefused(request)),
    // What is saved leniently may lack anything: the submission tells.
    ...(given && !request.lenient ? agentProblems(definition, held) : []),
  ];
  if (violations.length > 0 || !prefill.ok || !partial.ok) throw invalid(view.explain(violations));

  return {
    ...(end !== undefined && { expiresAt: new Date(end) }),
    ...(request.prefill !== undefined && { prefill: prefilled }),
    ...(request.metadata !== undefined && { metadata }),
    ...(request.answers !== undefined && { partialAnswers }),
    ...(request.step !== undefined && { step: request.step }),
    ...(given && { provenance: originsAfter(session, { prefill: prefilled, partialAnswers }, view) }),
  };
}

/**
 * Where what a session holds comes from after an update. Of partial answers that an older session held it is not
 * known.
 */
function originsAfter(session: Session, after: Held, view: UpdateView): SessionOrigins {
  const { createdAt, readAt, provenance } = session;
  const { prefill, answers, keyId } = view;
  const at = readAt.toISOString();
  const origin = (by: Origin['by']): Origin => ({ by, at, ...(keyId !== undefined && { keyId }) });
  const byCall = { prefill: origin('prefill'), partial: origin('api') };
  return {
    prefill: changedOrigins({
      stored: provenance?.prefill ?? [{ by: 'prefill' }],
      before: session.prefill,
      change: prefill.ok ? prefill.answers : {},
      after: after.prefill,
      createdAt,
      originOf: () => byCall.prefill,
    }),
    partial: changedOrigins({
      stored: provenance?.partial,
      before: session.partialAnswers ?? {},
      change: answers.ok ? answers.answers : {},
      after: after.partialAnswers,
      createdAt,
      originOf: () => byCall.partial,
    }),
  };
}

/** An object with a change merged into it: null removes. */
function merged(object: JsonObject, change: JsonObject = {}): JsonObject {
  return withoutNulls({ ...object, ...change });
}

/** In milliseconds; undefined if it stays. */
function endOf(
  { expiresIn, extendBy, expireTime }: UpdateSessionRequest,
  session: Session,
): number | undefined {
  if (expireTime !== undefined) return timestampMs(expireTime);
  if (expiresIn !== undefined) return session.readAt.getTime() + Number(expiresIn.seconds) * 1000;
  if (extendBy !== undefined) return session.expiresAt.getTime() + Number(extendBy.seconds) * 1000;
  return undefined;
}

function endProblems(request: UpdateSessionRequest, session: Session, end: number | undefined): Violation[] {
  const { expiresIn, extendBy, expireTime } = request;
  const path = expireTime === undefined ? 'extend_by' : 'expire_time';
  if ([expiresIn, extendBy, expireTime].filter((given) => given !== undefined).length > 1) {
    return [{ path, code: 'custom', message: 'Expected only one new end of the session' }];
  }
  if (end === undefined || expiresIn !== undefined) return [];
  const now = session.readAt.getTime();
  if (end < now + sessionSeconds.min * 1000)
    return [{ path, code: 'too_small', message: 'Must end at least a second from now' }];
  if (end <= now + sessionSeconds.max * 1000) return [];
  return [{ path, code: 'too_big', message: 'Must end at most 30 days from now' }];
}

function stepProblems(step = 1): Violation[] {
  if (step < 1) return [{ path: 'step', code: 'too_small', message: 'Expected at least 1' }];
  if (step <= MAX_PAGES) return [];
  return [{ path: 'step', code: 'too_big', message: `Expected at most ${MAX_PAGES}` }];
}

function partialRefused(request: UpdateSessionRequest): Violation[] {
  const message = 'This form keeps no partial answers: its setting allowPartial is off';
  const given = (['answers', 'step'] as const).filter((name) => request[name] !== undefined);
  return given.map((path) => ({ path, code: 'custom', message }));
}

/** The documented limit of a session's metadata. */
const MAX_METADATA_KIB = 16;

/** What an update is judged by: the checks of what it gives, the session's version, and the form's setting. */
export type UpdateView = {
  prefill: AnswersResult;
  answers: AnswersResult;
  /** Says what is wrong with them in the caller's language. */
  explain: (violations: readonly Violation[]) => Violation[];
  definition: FormDefinition;
  allowPartial: boolean;
  /** The key that the update comes with. */
  keyId: string | undefined;
};

type Held = { prefill: Answers; partialAnswers: Answers };

import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  EraseSubmissionsRequest,
  EraseSubmissionsResponseSchema,
} from '../../../gen/forms/v1/submissions_pb.js';
import { mailboxOf } from '../../domain/delivery/mailbox.ts';
import { isEmailAddress } from '../../domain/email-address.ts';
import { textProblem } from '../../domain/text.ts';
import type { Violation } from '../../domain/violations.ts';
import type { Caller } from '../../rpc/context.ts';
import { invalid } from '../../rpc/errors.ts';
import type { Transaction } from '../../store/database/queries.ts';
import {
  type Erased,
  eraseSessionsWith,
  eraseSubmissionsWith,
  forgetAutoresponse,
  listFormIds,
} from '../../store/erasure.ts';
import type { ServiceContext } from '../context.ts';
import { requireOwnForm } from '../forms/form-access.ts';
import { badParameter } from '../request-values.ts';

/**
 * Removes everything in which somebody is named by a value: submissions and sessions of a project, or one form of
 * it. A call goes on for `TURN_MS` and says where the next one continues.
 */
export async function eraseSubmissions(
  context: ServiceContext,
  { value, formId, pageToken }: EraseSubmissionsRequest,
  caller: Caller,
): Promise<MessageInitShape<typeof EraseSubmissionsResponseSchema>> {
  const wanted = value.trim();
  const problems = problemsOf(wanted);
  if (problems.length > 0) throw invalid(problems);
  if (formId !== '') await requireOwnForm(context.forms, caller, formId);
  const { database, uploads, settings, now } = context;
  const announcement = { at: now(), schedule: settings.retrySchedule };
  let place: Place | undefined = placeOf(pageToken) ?? { formId: '', phase: 'accepted', after: '' };
  const counts = { submissions: 0, sessions: 0 };

  const step = async (tx: Transaction, { phase, ...at }: Place): Promise<Erased> => {
    const look = { ...at, value: wanted, limit: GROUP };
    if (phase !== 'sessions') return eraseSubmissionsWith(tx, { ...look, status: phase }, announcement);
    if (isEmailAddress(wanted)) await forgetAutoresponse(tx, at.formId, mailboxOf(wanted));
    return eraseSessionsWith(tx, look);
  };
  const until = performance.now() + TURN_MS;
  do {
    const at: Place = place;
    const { erased, next } = await database.transaction(async (tx) => {
      const own = at.formId !== '' && (await isOwn(tx, caller.projectId, at.formId));
      const done = own ? await step(tx, at) : { removed: 0, uploadIds: [], last: null };
      return { erased: done, next: await placeAfter(tx, at, done.last, { caller, formId }) };
    });
    for (const id of erased.uploadIds) await uploads.remove(id);
    counts[at.phase === 'sessions' ? 'sessions' : 'submissions'] += erased.removed;
    if (erased.removed > 0) context.forms.forget(at.formId);
    place = next;
  } while (place !== undefined && performance.now() < until);
  context.notifyWorkers();
  return {
    erasedSubmissions: counts.submissions,
    erasedSessions: counts.sessions,
    nextPageToken: place === undefined ? '' : [place.formId, place.phase, place.after].join('|'),
  };
}

/** Where to go on: in the same form, or in the next one of the project. */
async function placeAfter(
  tx: Transaction,
  { formId, phase }: Place,
  last: string | null,
  wanted: { caller: Caller; formId: string },
): Promise<Place | undefined> {
  if (last !== null) return { formId, phase, after: last };
  const nextPhase = formId === '' ? undefined : phases[phases.indexOf(phase) + 1];
  if (nextPhase !== undefined) return { formId, phase: nextPhase, after: '' };
  if (wanted.formId !== '') {
    return formId === '' ? { formId: wanted.formId, phase: 'accepted', after: '' } : undefined;
  }
  const [next] = await listFormIds(tx, wanted.caller.projectId, { after: formId, limit: 1 });
  return next === undefined ? undefined : { formId: next, phase: 'accepted', after: '' };
}

/** A page token is the caller's: it may name a form of others. */
async function isOwn(tx: Transaction, projectId: string, formId: string): Promise<boolean> {
  const rows = await tx.select('select from forms where id = $1 and project_id = $2', [formId, projectId]);
  return rows.length > 0;
}

function problemsOf(value: string): Violation[] {
  const path = 'value';
  if (value === '') return [{ path, code: 'invalid_type', message: 'Required' }];
  const problem = textProblem(value);
  if (problem !== undefined) return [{ path, code: 'custom', message: problem }];
  if (value.length <= MAX_VALUE_LENGTH) return [];
  return [{ path, code: 'too_big', message: `Expected at most ${MAX_VALUE_LENGTH} characters` }];
}

function placeOf(token: string): Place | undefined {
  if (token === '') return undefined;
  const [formId = '', name, after = '', ...rest] = token.split('|');
  const phase = phases.find((each) => each === name);
  if (phase !== undefined && rest.length === 0 && validPlace.test(`${formId}|${after}`)) {
    return { formId, phase, after };
  }
  throw badParameter('page_token', 'invalid_string', 'Expected a token that an erasure has given');
}

const validPlace = /^form_\w{1,64}\|(|sub_\w{1,64}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z sess_\w{1,64})$/;

/** What is looked through of each form. The first two are the statuses of submissions. */
const phases = ['accepted', 'spam', 'sessions'] as const;

/** A caller waits: some ten thousand submissions are looked through by then. */
const TURN_MS = 2_000;

/** Rows of one transaction: some milliseconds. */
const GROUP = 200;

const MAX_VALUE_LENGTH = 1_000;

type Place = { formId: string; phase: (typeof phases)[number]; after: string };

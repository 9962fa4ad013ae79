import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type {
  EraseSubmissionsRequest,
  EraseSubmissionsResponseSchema,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { isEmailAddress, mailboxOf } from '../../domain/addresses/email-address.ts';
import { soughtValue } from '../../domain/answers/answer-texts.ts';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { createSlices } from '../../store/database/slices.ts';
import { RESPONDENT_CODE, voidMailedLinks } from '../../store/mail/mailed-links.ts';
import {
  type Erased,
  eraseEventsWith,
  eraseSessionsWith,
  eraseSubmissionsWith,
  eraseUnclaimedUploadsWith,
  forgetAutoresponse,
  isFormOf,
  listFormIds,
  type Mention,
} from '../../store/submissions/erasure.ts';
import { removeSubmission } from '../../store/submissions/submission-removal.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { requireProjectForm } from '../forms/form-access.ts';
import { badParameter, textProblems } from '../request-values.ts';

/** Deletes a submission that the caller may delete. */
export async function deleteStored(
  { database, forms, settings, now, notifyWorkers, audit }: ServiceContext,
  { id, formId, projectId }: Submission,
  call: HandlerContext,
): Promise<void> {
  const announcement = { at: now(), schedule: settings.retrySchedule };
  await database.transaction(async (tx) => {
    if (!(await removeSubmission(tx, { projectId, id }, announcement))) throw notFound('submission');
    await audit.change(tx, call, { projectId, resource: id, formId });
  });
  notifyWorkers();
  forms.forget(formId);
}

/** Removes what `eraseByValue` finds in the caller's project. */
export async function eraseSubmissions(
  context: ServiceContext,
  request: EraseSubmissionsRequest,
  call: HandlerContext,
): Promise<MessageInitShape<typeof EraseSubmissionsResponseSchema>> {
  const { value, formId, pageToken, includeMentions } = request;
  const { projectId } = callerOf(call);
  const problems = erasureProblems(value);
  if (problems.length > 0) throw invalid(problems);
  if (formId !== '') await requireProjectForm(context.forms, callerOf(call), formId);
  const erased = await eraseByValue(
    {
      ...context,
      schedule: context.settings.retrySchedule,
      onErased: (id) => context.forms.forget(id),
      record: (tx, about) => context.audit.change(tx, call, about),
    },
    { projectId, value, formId, place: placeOf(pageToken), includeMentions },
  );
  context.notifyWorkers();
  return {
    erasedSubmissions: erased.submissions,
    erasedSessions: erased.sessions,
    searchedRows: erased.searched,
    mentions: erased.mentions,
    nextPageToken: erased.next === undefined ? '' : tokenOf(erased.next),
  };
}

/** What is wrong with a value to look for. */
export function erasureProblems(value: string): Violation[] {
  return textProblems(value.trim(), 'value', { max: MAX_VALUE_LENGTH, needed: true });
}

/**
 * Removes everything in which somebody is named by a value: submissions, sessions and events of a project, or one
 * form of it. Goes on for `TIME_SLICE_MS` and returns where the next call continues. What is removed is recorded by
 * its number with each removal, and once that it was looked for.
 */
export async function eraseByValue(
  { database, now, schedule, onErased, record }: ErasureOptions,
  { projectId, value, formId, place: begin, includeMentions }: Erasure,
) {
  const wanted = value.trim();
  const address = asciiAddress(wanted);
  const sought = soughtValue(wanted);
  const announcement = { at: now(), schedule };
  let place: ErasurePlace | undefined = begin ?? { formId: '', phase: 'accepted', after: '' };
  const counts = { submissions: 0, sessions: 0, events: 0 };
  const slice = createSlices(database, MOST_ROWS);
  let searched = 0;
  const mentions: { count: number; first: Mention[] } = { count: 0, first: [] };

  const step = async (tx: Transaction, limit: number, { phase, ...at }: ErasurePlace): Promise<Erased> => {
    const look = { ...at, value: sought, limit };
    if (phase === 'events') return eraseEventsWith(tx, look);
    if (phase !== 'sessions')
      return eraseSubmissionsWith(tx, { ...look, status: phase, includeMentions }, announcement);
    if (isEmailAddress(address)) {
      await forgetAutoresponse(tx, at.formId, mailboxOf(address));
      await voidMailedLinks(tx, { address, purpose: RESPONDENT_CODE, formId: at.formId });
    }
    await eraseUnclaimedUploadsWith(tx, at.formId, sought);
    return eraseSessionsWith(tx, look);
  };
  const until = performance.now() + TIME_SLICE_MS;
  do {
    const at: ErasurePlace = place;
    const kind = at.phase === 'sessions' || at.phase === 'events' ? at.phase : 'submissions';
    const { erased, next } = await slice(async (tx, rows) => {
      // A page token is the caller's: it may name a form of others.
      const own = at.formId !== '' && (await isFormOf(tx, projectId, at.formId));
      const done = own ? await step(tx, rows, at) : { searched: 0, removed: 0, last: null };
      const following = await placeAfter(tx, at, done.last, { projectId, formId });
      if (at.formId === '') await record(tx, { ...(formId !== '' && { formId }), count: 0, detail: 'begun' });
      if (done.removed > 0) await record(tx, { formId: at.formId, count: done.removed, detail: kind });
      return { erased: done, next: following };
    });
    counts[kind] += erased.removed;
    searched += erased.searched;
    mentions.count += erased.mentions?.length ?? 0;
    mentions.first.push(...(erased.mentions ?? []).slice(0, MOST_MENTIONS - mentions.first.length));
    if (erased.removed > 0) onErased(at.formId);
    place = next;
  } while (place !== undefined && performance.now() < until);
  return { submissions: counts.submissions, sessions: counts.sessions, searched, mentions, next: place };
}

/** Where to go on: in the same form, or in the next one of the project. */
async function placeAfter(
  tx: Transaction,
  { formId, phase }: ErasurePlace,
  last: string | null,
  wanted: { projectId: string; formId: string },
): Promise<ErasurePlace | undefined> {
  if (last !== null) return { formId, phase, after: last };
  const nextPhase = formId === '' ? undefined : phases[phases.indexOf(phase) + 1];
  if (nextPhase !== undefined) return { formId, phase: nextPhase, after: '' };
  if (wanted.formId !== '') {
    return formId === '' ? { formId: wanted.formId, phase: 'accepted', after: '' } : undefined;
  }
  const [next] = await listFormIds(tx, wanted.projectId, { after: formId, limit: 1 });
  return next === undefined ? undefined : { formId: next, phase: 'accepted', after: '' };
}

/** Where the call goes on that has this token. Throws for a token that no erasure gave. */
function placeOf(token: string): ErasurePlace | undefined {
  if (token === '') return undefined;
  const [formId = '', name, after = '', ...rest] = token.split('|');
  const phase = phases.find((each) => each === name);
  if (phase !== undefined && rest.length === 0 && validPlace.test(`${formId}|${after}`)) {
    return { formId, phase, after };
  }
  throw badParameter('page_token', 'invalid_string', 'Expected a token that an erasure has given');
}

/** What `placeOf` reads. */
function tokenOf({ formId, phase, after }: ErasurePlace): string {
  return [formId, phase, after].join('|');
}

const validPlace =
  /^form_\w{1,64}\|(|sub_\w{1,64}|evt_\w{1,64}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z sess_\w{1,64})$/;

/** What is looked through of each form. The first three are the statuses of submissions. */
const phases = ['accepted', 'spam', 'replaced', 'sessions', 'events'] as const;

/** A caller waits: some ten thousand submissions are looked through by then. */
const TIME_SLICE_MS = 2_000;

/** Of one transaction, which may find all of them. */
const MOST_ROWS = 1_000;

const MAX_VALUE_LENGTH = 1_000;

/** Those that a reply names. */
const MOST_MENTIONS = 100;

/** How far an erasure has come. */
export type ErasurePlace = { formId: string; phase: (typeof phases)[number]; after: string };

/** `formId` is empty for all forms; without a place it begins. */
type Erasure = Pick<EraseSubmissionsRequest, 'value' | 'formId' | 'includeMentions'> & {
  projectId: string;
  place: ErasurePlace | undefined;
};

export type ErasureOptions = Pick<ServiceContext, 'database' | 'now'> & {
  /** Seconds before each attempt to tell webhooks of what is deleted. */
  schedule: readonly number[];
  /** Called with the form of what was removed. */
  onErased: (formId: string) => void;
  record: (tx: Transaction, about: { formId?: string; count: number; detail: string }) => Promise<void>;
};

import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { isId } from '../../domain/ids.ts';
import type { Caller } from '../../rpc/context.ts';
import { failed, notFound } from '../../rpc/errors.ts';
import type { Queries } from '../../store/database/database.ts';
import { type Form, findForm } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import type { FormReader, LiveForm, LiveVersion } from './form-reader.ts';

/** A form of the caller's project, in any status. Throws NOT_FOUND. */
export async function ownForm(db: Queries, caller: Caller, formId: string): Promise<Form> {
  const form = isId('form', formId) ? await findForm(db, caller.projectId, formId) : null;
  if (form === null) throw notFound('form');
  return form;
}

/** Throws NOT_FOUND unless the form is of the caller's project, in any status. Reads from the cache. */
export async function requireOwnForm(forms: FormReader, caller: Caller, formId: string): Promise<void> {
  const form = await forms.find(formId);
  if (form?.projectId !== caller.projectId) throw notFound('form');
}

/** A form's current definition, or a draft's first. */
export async function definitionInUse(db: Queries, form: Form): Promise<FormDefinition> {
  const version = form.currentVersionId === null ? null : await findVersion(db, form.currentVersionId);
  const definition = version?.definition ?? form.draftDefinition;
  if (definition === null) throw new TypeError(`The form ${form.id} has no definition`);
  return definition;
}

/**
 * The form that a submission, session or upload is for.
 *
 * Throws `NOT_FOUND` for one that is not published, as for none at all, and says of an archived one
 * that it is. With `projectId`, forms of other projects are not there.
 */
export async function publishedForm(
  forms: FormReader,
  formId: string,
  projectId?: string,
): Promise<PublishedForm> {
  const form = await forms.find(formId);
  if (form === undefined || (projectId !== undefined && form.projectId !== projectId)) throw notFound('form');
  const { version } = form;
  if (version === null || form.status === 'draft') throw notFound('form');
  return { ...form, version };
}

/** Throws if the form takes no submissions any more. `now` is in milliseconds. */
export function refuseIfClosed(form: PublishedForm, now: number): void {
  switch (availabilityOf(form, now)) {
    case 'open':
      return;
    case 'archived':
      throw failed(Reason.ARCHIVED, 'This form is archived');
    case 'closed':
      throw failed(Reason.CLOSED, 'This form takes no more submissions');
  }
}

/** Whether a form takes submissions, as its current version's settings and its counts say. */
export function availabilityOf(form: PublishedForm, now: number): Availability {
  if (form.status === 'archived') return 'archived';
  if (form.closedAt !== null) return 'closed';
  const { closesAt } = form.version.definition.settings;
  if (closesAt !== undefined && now >= Date.parse(closesAt)) return 'closed';
  return remainingSubmissions(form) > 0 ? 'open' : 'closed';
}

/**
 * Drops the cached counts of a form that is almost full, so that the next call counts again:
 * a limit of one holds for the second call, and forms without a limit pay nothing.
 */
export function recountIfAlmostFull(forms: FormReader, form: PublishedForm): void {
  if (remainingSubmissions(form) <= ALMOST_FULL) forms.forget(form.id);
}

/** How many more submissions fit. Spam fills a keyless form too, but never uses up an owner's own limit. */
function remainingSubmissions(form: PublishedForm): number {
  const { maxSubmissions = Number.POSITIVE_INFINITY } = form.version.definition.settings;
  const ownRoom = maxSubmissions - form.accepted;
  if (form.createdBy !== 'public') return ownRoom;
  return Math.min(ownRoom, MAX_KEYLESS_SUBMISSIONS - form.accepted - form.spam);
}

/** Forms made without a key hold at most so many. */
const MAX_KEYLESS_SUBMISSIONS = 10_000;

/** More than one process accepts in the second that a count is cached. */
const ALMOST_FULL = 1000;

/** A form that has been published, archived since or not. */
export type PublishedForm = LiveForm & { version: LiveVersion };

export type Availability = 'open' | 'closed' | 'archived';

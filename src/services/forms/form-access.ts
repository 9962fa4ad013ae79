import type { ConnectError, HandlerContext } from '@connectrpc/connect';
import { LRUCache } from 'lru-cache';
import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { type CompiledForm, compileForm } from '../../domain/answers/answers.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { failed, insufficientScope, notFound } from '../../domain/errors/failure.ts';
import { isId, isKeyless } from '../../domain/ids.ts';
import { lackedToGive, type Right } from '../../domain/scopes.ts';
import { type Caller, callerIfAny } from '../../rpc/context.ts';
import type { Database, Queries } from '../../store/database/database.ts';
import { type Form, type FormState, findForm, findFormState } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import type { Submission } from '../../store/submissions/submissions.ts';
import { createFreshCache } from '../fresh-cache.ts';
import { requireFound } from '../request-values.ts';

/**
 * A form of the caller's project, in any status; a hidden one for callers with a key, who can read it. Throws
 * NOT_FOUND.
 */
export function projectForm(
  db: Queries,
  { projectId, keyId }: Pick<Caller, 'projectId' | 'keyId'>,
  formId: string,
): Promise<Form> {
  return requireFound('form', formId, async () => {
    const form = await findForm(db, projectId, formId);
    return form !== null && isHidden(form) && keyId === undefined ? null : form;
  });
}

/** The same of a form that can be changed: a hidden one can't. */
export async function changeableForm(
  db: Queries,
  caller: Pick<Caller, 'projectId' | 'keyId'>,
  formId: string,
): Promise<Form> {
  const form = await projectForm(db, caller, formId);
  if (isHidden(form)) throw notFound('form');
  return form;
}

/** Whether a form came with a session and is reached by its sessions alone. */
export function isHidden({ questionChecksum }: Pick<Form, 'questionChecksum'>): boolean {
  return questionChecksum !== null;
}

/** Throws NOT_FOUND unless the form is of the caller's project, in any status. Reads from the cache. */
export async function requireProjectForm(
  forms: FormReader,
  caller: Caller,
  formId: string,
): Promise<LiveForm> {
  const form = await forms.find(formId);
  if (form?.projectId !== caller.projectId) throw notFound('form');
  return form;
}

/** Who makes a form; undefined without a key. Throws MISSING_KEY where making forms needs one. */
export function makerOf(
  { allowPublicCreate }: { allowPublicCreate: boolean },
  call: HandlerContext,
): Caller | undefined {
  const caller = callerIfAny(call);
  if (caller === undefined && !allowPublicCreate)
    throw failed(Reason.MISSING_KEY, 'Making a form needs an API key here');
  return caller;
}

/** Throws INSUFFICIENT_SCOPE if a caller would give a right over a published form's answers that they don't hold. */
export function requireRight({ scopes }: Pick<Caller, 'scopes'>, right: Right): void {
  const scope = lackedToGive(right, scopes);
  if (scope !== undefined) throw insufficientScope(scope, purposes[right]);
}

const purposes: Record<Right, string> = {
  ownership: 'to change who owns the answers of a published form',
  destination: 'to change where the answers of a published form go',
  retention: 'to have answers that are there deleted earlier',
};

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
 * Throws `NOT_FOUND` for one that is not published or hidden, as for none at all, and says of an archived one
 * that it is. With `projectId`, forms of other projects are not there, and of a draft it says that it is one.
 */
export async function publishedForm(
  forms: FormReader,
  formId: string,
  projectId?: string,
): Promise<PublishedForm> {
  const form = await forms.find(formId);
  if (form === undefined || isHidden(form)) throw notFound('form');
  if (projectId !== undefined && form.projectId !== projectId) throw notFound('form');
  if (form.status === 'draft' && projectId !== undefined) {
    throw failed(Reason.NOT_FOUND, 'This form is a draft', { nextCall: NextCall.ACTIVATE_FORM });
  }
  return withVersion(form);
}

/** The form of a session, also a hidden one. Throws `NOT_FOUND` if it is gone. */
export async function sessionsForm(forms: FormReader, formId: string): Promise<PublishedForm> {
  return withVersion(await forms.find(formId));
}

function withVersion(form: LiveForm | undefined): PublishedForm {
  const { version = null } = form ?? {};
  if (form === undefined || version === null || form.status === 'draft') throw notFound('form');
  return { ...form, version };
}

/** Throws if the form takes no submissions any more. `now` is in milliseconds. */
export function refuseIfClosed(form: PublishedForm, now: number): void {
  const availability = availabilityOf(form, now);
  if (availability === 'archived') throw archived();
  if (availability !== 'open') throw closed();
}

/** The failure of a form that was ended. */
export function archived(): ConnectError {
  return failed(Reason.ARCHIVED, 'This form is archived');
}

/** The failure of a form that takes no more submissions, but may again. */
export function closed(): ConnectError {
  return failed(Reason.CLOSED, 'This form no longer accepts responses');
}

/** Whether a form takes submissions, as its current version's settings and its counts say. */
export function availabilityOf(form: FormStanding, now: number): Availability {
  if (form.status === 'archived') return 'archived';
  if (form.closedAt !== null) return 'closed';
  const { closesAt } = form.version.definition.settings;
  if (closesAt !== undefined && now >= Date.parse(closesAt)) return 'ended';
  return remainingSubmissions(form) > 0 ? 'open' : 'full';
}

/**
 * Drops the cached counts of a form that is almost full, so that its page says so at once, and a form made without
 * a key holds hardly more than it may. Forms without a limit pay nothing.
 */
export function recountIfAlmostFull(forms: FormReader, form: PublishedForm): void {
  if (remainingSubmissions(form) <= ALMOST_FULL) forms.forget(form.id);
}

/** How many more submissions fit. */
function remainingSubmissions(form: FormStanding): number {
  const { max, count } = submissionLimitOf(form);
  return max - count;
}

/**
 * How many submissions a form takes at most, and how many it has that count: by the limit that it reaches first. Spam
 * fills a keyless form too, but never uses up an owner's own limit.
 */
export function submissionLimitOf(form: FormStanding): { count: number; max: number } {
  const { maxSubmissions = Number.POSITIVE_INFINITY } = form.version.definition.settings;
  const own = { count: form.accepted, max: maxSubmissions };
  if (!isKeyless(form)) return own;
  const keyless = { count: form.accepted + form.spam, max: MAX_KEYLESS_SUBMISSIONS };
  return own.max - own.count <= keyless.max - keyless.count ? own : keyless;
}

/** Forms made without a key hold at most so many. */
const MAX_KEYLESS_SUBMISSIONS = 10_000;

/** More than one process accepts in the second that a count is cached. */
const ALMOST_FULL = 1000;

/** A form that has been published, archived since or not. */
export type PublishedForm = LiveForm & { version: LiveVersion };

/** `closed`: by its owner; `ended`: by the time that its settings name. */
export type Availability = 'open' | 'closed' | 'ended' | 'full' | 'archived';

/** What decides whether a form takes submissions. */
export type FormStanding = Pick<PublishedForm, 'status' | 'closedAt' | 'createdBy' | 'accepted' | 'spam'> & {
  version: Pick<LiveVersion, 'definition'>;
};

/**
 * Reads what public calls need of a form: its state, at most a second old over any number of
 * processes, and its version with the check of answers.
 *
 * Versions never change, so they are cached as long as there is room.
 */
export function createFormReader({ database, now, hidden }: FormReaderOptions): FormReader {
  const states = createFreshCache<FormState | null>({
    load: (formId) => findFormState(database, formId),
    now,
    capacity: MAX_REMEMBERED_FORMS,
  });
  const versions = new LRUCache<string, LiveVersion>({
    maxSize: MAX_VERSION_CHARS,
    sizeCalculation: ({ definition }) => JSON.stringify(definition).length,
    async fetchMethod(versionId) {
      const row = await findVersion(database, versionId);
      if (row === null) throw new TypeError(`There is no version ${versionId}`);
      const { id, formId, number, checksum, definition } = row;
      return { id, formId, number, checksum, ...compileForm(definition) };
    },
  });
  const version = async (versionId: string) => versions.get(versionId) ?? versions.forceFetch(versionId);

  return {
    async find(formId) {
      if (!isId('form', formId) || formId === hidden) return undefined;
      const state = await states.get(formId);
      if (state === null) return undefined;
      const { currentVersionId, ...rest } = state;
      return { ...rest, version: currentVersionId === null ? null : await version(currentVersionId) };
    },
    async exists(formId) {
      return isId('form', formId) && formId !== hidden && (await states.get(formId)) !== null;
    },
    version,
    forget: states.forget,
  };
}

const MAX_REMEMBERED_FORMS = 10_000;

/** In characters of JSON, since definitions differ in size by a thousand times; in memory it is several times that. */
const MAX_VERSION_CHARS = 8 * 1024 * 1024;

export type FormReader = {
  /** Any form, of any project and in any status; undefined if there is none. */
  find(formId: string): Promise<LiveForm | undefined>;
  /** Whether there is such a form. */
  exists(formId: string): Promise<boolean>;
  /** A version by an id read from the database. Throws if there is none. */
  version: (versionId: string) => Promise<LiveVersion>;
  /** Makes a change of the form by this process visible at once. Called after the commit. */
  forget: (formId: string) => void;
};

/** What public calls need of a form. */
type LiveForm = Omit<FormState, 'currentVersionId'> & {
  /** What sessions and submissions begin with now; null on a draft. */
  version: LiveVersion | null;
};

export type LiveVersion = CompiledForm & {
  id: string;
  formId: string;
  number: number;
  checksum: string;
  /** The submission that is corrected by answers to it. */
  corrects?: Submission;
};

/** `hidden` is a form that is not found. */
export type FormReaderOptions = { database: Database; now: () => number; hidden?: string | undefined };

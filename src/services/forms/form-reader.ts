import { type CompiledForm, compileForm } from '../../domain/answers/answers.ts';
import { isId } from '../../domain/ids.ts';
import type { Database } from '../../store/database/database.ts';
import { type FormState, findFormState } from '../../store/forms/forms.ts';
import { findVersion } from '../../store/forms/versions.ts';
import { createFreshCache } from '../fresh-cache.ts';

/**
 * Reads what public calls need of a form: its state, at most a second old over any number of
 * processes, and its version with the check of answers.
 *
 * Versions never change, so they are cached as long as there is room.
 */
export function createFormReader({ database, now }: FormReaderOptions): FormReader {
  const states = createFreshCache<FormState | null>({
    load: (formId) => findFormState(database, formId),
    now,
    capacity: MAX_REMEMBERED_FORMS,
  });
  const versions = createVersionCache(database);

  return {
    async find(formId) {
      if (!isId('form', formId)) return undefined;
      const state = await states.get(formId);
      if (state === null) return undefined;
      const { currentVersionId, ...rest } = state;
      return { ...rest, version: currentVersionId === null ? null : await versions.get(currentVersionId) };
    },
    async exists(formId) {
      return isId('form', formId) && (await states.get(formId)) !== null;
    },
    version: versions.get,
    forget: states.forget,
  };
}

function createVersionCache(database: Database): { get: (versionId: string) => Promise<LiveVersion> } {
  const kept = new Map<string, { version: LiveVersion; weight: number }>();
  const loading = new Map<string, Promise<LiveVersion>>();
  let weightKept = 0;

  async function load(versionId: string): Promise<LiveVersion> {
    const row = await findVersion(database, versionId);
    if (row === null) throw new TypeError(`There is no version ${versionId}`);
    const { id, formId, number, definition } = row;
    const version = { id, formId, number, ...compileForm(definition) };
    const weight = JSON.stringify(definition).length;
    kept.set(versionId, { version, weight });
    weightKept += weight;
    for (const [oldest, { weight: freed }] of kept) {
      if (weightKept <= MAX_VERSION_CHARS || oldest === versionId) break;
      kept.delete(oldest);
      weightKept -= freed;
    }
    return version;
  }

  return {
    async get(versionId) {
      const entry = kept.get(versionId);
      if (entry !== undefined) {
        // Moved to the end: what is dropped first is what was not used for longest.
        kept.delete(versionId);
        kept.set(versionId, entry);
        return entry.version;
      }
      let promise = loading.get(versionId);
      if (promise === undefined) {
        promise = load(versionId).finally(() => loading.delete(versionId));
        loading.set(versionId, promise);
      }
      return promise;
    },
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
export type LiveForm = Omit<FormState, 'currentVersionId'> & {
  /** What sessions and submissions begin with now; null on a draft. */
  version: LiveVersion | null;
};

export type LiveVersion = CompiledForm & { id: string; formId: string; number: number };

export type FormReaderOptions = { database: Database; now: () => number };

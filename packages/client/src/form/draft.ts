import type { Answer, Choice, FileState, FormOptions } from './types.ts';

/**
 * What a browser keeps of a form until it is sent. `key` makes sending it twice one submission; `files` are those of the
 * answers, and `fields` what a later version may not have any more.
 */
type Draft = { versionId: string; values: Record<string, Answer>; step: number; key: string } & {
  files?: readonly FileState[];
  fields?: { id: string; label: string; options?: Choice[] | undefined }[];
};

/** Keeps the draft of a form. A browser that refuses to store leaves the page without a draft. */
export function createDrafts(formId: string, storage: FormOptions['storage']): Drafts {
  const name = `form-draft:${formId}`;
  const attempt = <Result>(
    use: (kept: NonNullable<FormOptions['storage']>) => Result,
  ): Result | undefined => {
    try {
      const kept = storage === undefined ? globalThis.sessionStorage : storage;
      return kept ? use(kept) : undefined;
    } catch {
      return undefined;
    }
  };
  return {
    read: () => attempt((kept) => JSON.parse(kept.getItem(name) ?? 'null') ?? undefined),
    keep: (draft) => attempt((kept) => kept.setItem(name, JSON.stringify(draft))),
    forget: () => attempt((kept) => kept.removeItem(name)),
  };
}

type Drafts = { read: () => Draft | undefined; keep: (draft: Draft) => void; forget: () => void };

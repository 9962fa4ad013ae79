import { z } from 'zod';
import { exportNames } from '../../store/projects/project-export.ts';

/** What goes through the admin socket, as JSON. Times are ISO 8601; `expiresIn` is in seconds, null: no end. */
export const keyRequest = z.strictObject({
  name: z.string(),
  scopes: z.array(z.string()),
  project: z.string(),
  expiresIn: z.int().nullable(),
});

/** Without a project: the keys of all. `cursor` is the `nextCursor` of the page before. */
export const listRequest = z.strictObject({ project: z.string().optional(), cursor: z.string().optional() });

export const revokeRequest = z.strictObject({ id: z.string() });

export const projectRequest = z.strictObject({ project: z.string() });

export const erasedProject = z.object({ removed: z.int(), more: z.boolean() });

/** `place` is the `next` of the call before, or null. */
export const valueRequest = z.strictObject({
  project: z.string(),
  value: z.string(),
  place: z.string().nullable(),
});

export const erasedValue = z.object({
  submissions: z.int(),
  sessions: z.int(),
  next: z.string().nullable(),
});

/** `after` is the `next` of the call before, or empty. Without `lines`, rows are only counted. */
export const exportRequest = z.strictObject({
  project: z.string(),
  name: z.enum(exportNames),
  after: z.string(),
  lines: z.boolean(),
});

export const exportedRows = z.object({
  lines: z.array(z.string()),
  count: z.int(),
  next: z.string().nullable(),
});

/** By the id of a project; null: from the first on. */
export const chainRequest = z.strictObject({ after: z.string().nullable() });

/** Without a name if the chain is of no project; null: there is no further one. */
export const foundChain = z.object({ projectId: z.string().nullable(), name: z.string().nullable() });

const chainPlace = z.object({ sequence: z.int(), hash: z.string() });

export const checkRequest = z.strictObject({ projectId: z.string(), after: chainPlace.nullable() });

export const checkedChain = z.object({
  checked: z.int(),
  next: chainPlace.nullable(),
  problem: z.object({ sequence: z.int(), message: z.string() }).nullable(),
  end: chainPlace.extend({ from: z.int() }).optional(),
});

export const pageRequest = z.strictObject({ cursor: z.string().optional() });

/** A key without its secret. */
export const shownKey = z.object({
  id: z.string(),
  name: z.string(),
  project: z.string(),
  scopes: z.array(z.string()),
  last4: z.string(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
  lastUsedAt: z.string().nullable(),
});

export const madeKey = z.object({ key: shownKey, secret: z.string() });

export const keyPage = z.object({ items: z.array(shownKey), nextCursor: z.string().nullable() });

const countedProject = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.string(),
  keys: z.number(),
  forms: z.number(),
});

export const projectPage = z.object({ items: z.array(countedProject), nextCursor: z.string().nullable() });

/** Why an operation was refused or failed. */
export const refusal = z.object({ error: z.string() });

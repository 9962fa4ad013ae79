import { createHash } from 'node:crypto';
import { fingerprint } from '../json/canonical.ts';
import type { AuditAction } from './actions.ts';

/**
 * The hash of an entry: the SHA-256, in hex, of the canonical JSON of all that the documented interface shows of it
 * but the hash itself, so that whoever reads the log can check it. No property is ever taken from this object or put
 * into it: the chains that are stored would not fit any more.
 */
export function hashOf(entry: Omit<ChainedEntry, 'hash' | 'projectId'>): string {
  return fingerprint({
    sequence: entry.sequence,
    created_at: entry.createdAt.toISOString(),
    actor: entry.actor,
    action: entry.action,
    resource: entry.resource,
    form_id: entry.formId,
    detail: entry.detail,
    count: entry.count,
    client_address: entry.clientAddress,
    request_id: entry.requestId,
    previous_hash: entry.previousHash,
  });
}

/** What the first entry of a chain has as the hash of the one before: a chain can't be taken for another's. */
export function firstHashOf(projectId: string): string {
  return createHash('sha256').update(projectId).digest('hex');
}

/** An entry of what no call has asked for: what the service does by itself, or an admin command. */
export function uncalledEntry(entry: Uncalled): NewEntry {
  const { projectId, at, actor = SERVICE, action, resource, formId, detail, count = 1 } = entry;
  return {
    projectId,
    createdAt: new Date(at),
    actor,
    action,
    resource: resource ?? formId ?? null,
    formId: formId ?? null,
    detail: detail ?? null,
    count,
    clientAddress: null,
    requestId: null,
  };
}

/** What was done, before it has its place in a chain. */
export type NewEntry = {
  /** Whose chain it belongs to: a project's, or `INSTALLATION`. */
  projectId: string;
  createdAt: Date;
  /** `key:…`, `owner:…`, `admin:…`, `service` or `anonymous`. */
  actor: string;
  action: AuditAction;
  resource: string | null;
  formId: string | null;
  /** Words of this service. Never what callers send. */
  detail: string | null;
  count: number;
  clientAddress: string | null;
  requestId: string | null;
};

/** `at` is in milliseconds since 1970; without a resource it is the form. */
export type Uncalled = Pick<NewEntry, 'projectId' | 'action'> & {
  at: number;
  actor?: string;
  resource?: string;
  formId?: string;
  detail?: string;
  count?: number;
};

/** An entry in its chain. `action` may be of a later version. */
export type ChainedEntry = Omit<NewEntry, 'action'> & {
  action: string;
  /** From 1. */
  sequence: number;
  previousHash: string;
  hash: string;
};

/** The chain of what belongs to no project. No id of a project is empty. */
export const INSTALLATION = '';

/** The actor of what nobody has asked for. */
const SERVICE = 'service';

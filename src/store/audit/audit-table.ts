import { defineEntity, p } from '@mikro-orm/core';
import type { ChainedEntry } from '../../domain/audit/entry.ts';
import { id, text, textOrNull, time, timeOf } from '../database/columns.ts';
import type { Row } from '../database/queries.ts';

/** Where the chain of a project ends, and where it was cut because of the age of what is before. */
export const AuditChainEntity = defineEntity({
  name: 'AuditChain',
  tableName: 'audit_chains',
  properties: {
    /** Empty: the chain of what belongs to no project. */
    projectId: id().primary(),
    /** The last entry's. */
    sequence: p.bigint('number').default(0),
    hash: text(),
    /** Those of the last entry that was removed. */
    cutSequence: p.bigint('number').default(0),
    cutHash: text(),
  },
});

/** Who did what. Rows are never changed; those that are too old go, from the first on. */
export const AuditEntryEntity = defineEntity({
  name: 'AuditEntry',
  tableName: 'audit_entries',
  properties: {
    projectId: id().primary(),
    sequence: p.bigint('number').primary(),
    createdAt: time(),
    actor: text(),
    action: text(),
    resource: text().strictNullable(),
    formId: id().strictNullable(),
    detail: text().strictNullable(),
    count: p.integer(),
    clientAddress: text().strictNullable(),
    requestId: text().strictNullable(),
    previousHash: text(),
    hash: text(),
  },
  indexes: [{ name: 'audit_entries_by_time', properties: ['projectId', 'createdAt', 'sequence'] }],
});

/** The columns that `toEntry` reads. */
export const entryColumns =
  'project_id, sequence, created_at, actor, action, resource, form_id, detail, count, client_address, request_id, previous_hash, hash';

/** The row of an entry, as JSON. */
export function toRow(entry: ChainedEntry): Row {
  return {
    project_id: entry.projectId,
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
    hash: entry.hash,
  };
}

/** One row as an entry. */
export function toEntry(row: Row): ChainedEntry {
  return {
    projectId: String(row.project_id),
    sequence: Number(row.sequence),
    createdAt: timeOf(row.created_at),
    actor: String(row.actor),
    action: String(row.action),
    resource: textOrNull(row.resource),
    formId: textOrNull(row.form_id),
    detail: textOrNull(row.detail),
    count: Number(row.count),
    clientAddress: textOrNull(row.client_address),
    requestId: textOrNull(row.request_id),
    previousHash: String(row.previous_hash),
    hash: String(row.hash),
  };
}

/** One row as the ends of a chain. */
export function toChain(row: Row): Chain {
  return {
    projectId: String(row.project_id),
    sequence: Number(row.sequence),
    hash: String(row.hash),
    cutSequence: Number(row.cut_sequence),
    cutHash: String(row.cut_hash),
  };
}

/** The ends of a project's chain: of the last entry, and of the last one that was removed. */
export type Chain = {
  projectId: string;
  sequence: number;
  hash: string;
  cutSequence: number;
  cutHash: string;
};

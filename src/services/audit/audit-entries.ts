import type { ServiceImpl } from '@connectrpc/connect';
import {
  AuditEntrySchema,
  type AuditService,
  type ListAuditEntriesRequest,
} from '../../../gen/headlessforms/v1/audit_pb.js';
import { pageSizes } from '../../domain/limits/limits.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { callerOf } from '../../rpc/context.ts';
import { type EntryFilter, type EntryPlace, listEntries } from '../../store/audit/audit-log.ts';
import type { ServiceContext } from '../context.ts';
import { badParameter, dateOfTimestamp, refuseUnfitFilter, unknownCursor } from '../request-values.ts';

/** Shows the audit log of the caller's project. */
export function auditService({ database, audit }: ServiceContext): ServiceImpl<typeof AuditService> {
  return {
    async listAuditEntries(request, call) {
      const { projectId } = callerOf(call);
      const { items, next } = await listEntries(database, projectId, filterOf(request), pageOf(request));
      audit.note(call, {});
      return {
        entries: items.map((entry) => rowToMessage(AuditEntrySchema, entry, {})),
        nextPageToken: next === null ? '' : `${next.createdAt}.${next.id}`,
      };
    },
  };
}

function filterOf({ createdAfter, createdBefore, ...texts }: ListAuditEntriesRequest): EntryFilter {
  const filter: EntryFilter = {};
  for (const name of ['actor', 'action', 'resource'] as const) {
    refuseUnfitFilter(texts[name], name);
    if (texts[name] !== '') filter[name] = texts[name];
  }
  if (createdAfter !== undefined) filter.after = dateOfTimestamp(createdAfter);
  if (createdBefore !== undefined) filter.before = dateOfTimestamp(createdBefore);
  return filter;
}

function pageOf({ pageSize, pageToken }: ListAuditEntriesRequest): { limit: number; cursor?: EntryPlace } {
  if (pageSize < 0) throw badParameter('page_size', 'too_small', 'Expected at least 1');
  const limit = pageSize === 0 ? pageSizes.max : Math.min(pageSize, pageSizes.max);
  if (pageToken === '') return { limit };
  const [, createdAt = '', id] = place.exec(pageToken) ?? [];
  if (Number.isNaN(Date.parse(createdAt))) throw unknownCursor();
  return { limit, cursor: { createdAt, id: Number(id) } };
}

/** The last entry of the page before. */
const place = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\.(\d{1,15})$/;

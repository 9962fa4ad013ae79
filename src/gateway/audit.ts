import { z } from 'zod';
import { AuditEntrySchema, AuditService } from '../../gen/headlessforms/v1/audit_pb.js';
import { auditActions } from '../domain/audit.ts';
import { optional } from '../domain/json/optional.ts';
import { pageSizes } from '../domain/limits/limits.ts';
import { largePageQuery, timeInput } from '../http/schemas.ts';
import { shape, timeReply } from '../http/shape.ts';
import { listRoute, type Route, tagged } from './route.ts';

const auditEntry = shape(AuditEntrySchema, 'AuditEntry', {
  created_at: timeReply,
  actor: z
    .string()
    .describe(
      'Who: `key:key_…`, `owner:…` (a pseudonym of the address), `admin:…` (the user name), `service` or `anonymous`.',
    ),
  action: z.string().meta({ examples: [...auditActions] }),
  resource: z
    .string()
    .nullable()
    .describe('The id of what it was done to; a session is `sha256:…` of its id.'),
  form_id: z.string().nullable(),
  detail: z
    .string()
    .nullable()
    .describe('A few words on it, such as `csv` or the names of what was changed.'),
  count: z.int().describe('How many were deleted, or read within a second.'),
  client_address: z.string().nullable().describe('IPv4, or the /64 of IPv6.'),
  request_id: z.string().nullable(),
});

const auditQuery = largePageQuery.extend({
  actor: optional(z.string().min(1), 'Only what this actor did.'),
  action: optional(
    z.string().min(1),
    'Only this action; what ends in `.`, such as `submission.`, is all of a kind.',
  ),
  resource: optional(z.string().min(1), 'Only what was done to this, or to something of this form.'),
  created_after: optional(timeInput, 'Only what was done at or after this time.'),
  created_before: optional(timeInput, 'Only what was done before this time.'),
});

/** The route of the audit log. */
export const auditRoutes: Route[] = tagged('Audit', [
  listRoute('/v1/audit', AuditService.method.listAuditEntries, {
    summary: 'List who did what in the project, newest first',
    name: 'entries',
    query: auditQuery,
    pageSize: pageSizes.max,
    item: auditEntry,
  }),
]);

import { ClaimsBesideIndexes } from './2026-11-21-claims-beside-indexes.ts';
import { DeletedForms } from './2026-11-21-deleted-forms.ts';
import { FirstTables } from './2026-11-21-first-tables.ts';
import { FormsWithRetention } from './2026-11-21-forms-with-retention.ts';
import { SessionIdempotency } from './2026-11-21-session-idempotency.ts';
import { AddedRecipients } from './2026-11-22-added-recipients.ts';
import { AuditLog } from './2026-11-22-audit-log.ts';
import { CancelledSessions } from './2026-11-22-cancelled-sessions.ts';
import { CircuitBreaker } from './2026-11-22-circuit-breaker.ts';
import { ClosedForms } from './2026-11-22-closed-forms.ts';
import { DeliveryQueue } from './2026-11-22-delivery-queue.ts';
import { IdempotencyKeys } from './2026-11-22-idempotency-keys.ts';
import { KeylessStorage } from './2026-11-22-keyless-storage.ts';
import { MailAllowances } from './2026-11-22-mail-allowances.ts';
import { OwnerSessions } from './2026-11-22-owner-sessions.ts';
import { ProvenanceOfAnswers } from './2026-11-22-provenance.ts';
import { RevokedKeys } from './2026-11-22-revoked-keys.ts';
import { Traces } from './2026-11-22-traces.ts';
import { VisitorsSessions } from './2026-11-22-visitors-sessions.ts';
import { PlainAudit } from './2026-11-23-plain-audit.ts';
import { RefusedWriters } from './2026-11-23-refused-writers.ts';
import { Removals } from './2026-11-23-removals.ts';

/** Every migration in the order it runs. A released one is never edited: changes are a further one. */
export const migrations = [
  { name: '2026-11-21-first-tables', class: FirstTables },
  { name: '2026-11-21-claims-beside-indexes', class: ClaimsBesideIndexes },
  { name: '2026-11-21-deleted-forms', class: DeletedForms },
  { name: '2026-11-21-forms-with-retention', class: FormsWithRetention },
  { name: '2026-11-21-session-idempotency', class: SessionIdempotency },
  { name: '2026-11-22-cancelled-sessions', class: CancelledSessions },
  { name: '2026-11-22-mail-allowances', class: MailAllowances },
  { name: '2026-11-22-delivery-queue', class: DeliveryQueue },
  { name: '2026-11-22-keyless-storage', class: KeylessStorage },
  { name: '2026-11-22-idempotency-keys', class: IdempotencyKeys },
  { name: '2026-11-22-provenance', class: ProvenanceOfAnswers },
  { name: '2026-11-22-circuit-breaker', class: CircuitBreaker },
  { name: '2026-11-22-revoked-keys', class: RevokedKeys },
  { name: '2026-11-22-visitors-sessions', class: VisitorsSessions },
  { name: '2026-11-22-owner-sessions', class: OwnerSessions },
  { name: '2026-11-22-traces', class: Traces },
  { name: '2026-11-22-closed-forms', class: ClosedForms },
  { name: '2026-11-22-added-recipients', class: AddedRecipients },
  { name: '2026-11-22-audit-log', class: AuditLog },
  { name: '2026-11-23-removals', class: Removals },
  { name: '2026-11-23-refused-writers', class: RefusedWriters },
  { name: '2026-11-23-plain-audit', class: PlainAudit },
];

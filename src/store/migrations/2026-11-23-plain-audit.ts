import { Migration } from '@mikro-orm/migrations';

/**
 * Entries of the audit log are plain inserts: they have an `id` of their own, by which those of the same time are in
 * order, and need no place in a chain. Former versions go on chaining theirs, in the columns and the table that they
 * know. The table is written anew for the ids: some seconds for 200,000 entries, for which whoever changes something
 * waits.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class PlainAudit extends Migration {
  override up(): void {
    this.addSql(`alter table "audit_entries" drop constraint "audit_entries_pkey"`);
    this.addSql(`drop index "audit_entries_by_time"`);
    this.addSql(
      `alter table "audit_entries" add column "id" bigserial not null, alter column "sequence" drop not null,
         alter column "previous_hash" drop not null, alter column "hash" drop not null`,
    );
    this.addSql(`alter table "audit_entries" add primary key ("created_at", "id")`);
    this.addSql(`create index "audit_entries_by_time" on "audit_entries" ("project_id", "created_at", "id")`);
  }
}

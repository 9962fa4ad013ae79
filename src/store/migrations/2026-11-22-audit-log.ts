import { Migration } from '@mikro-orm/migrations';

/**
 * Who did what: a chain of entries for each project.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class AuditLog extends Migration {
  override up(): void {
    this.addSql(
      `create table "audit_chains" (
        "project_id" text collate "C" not null,
        "sequence" bigint not null default '0',
        "hash" text not null,
        "cut_sequence" bigint not null default '0',
        "cut_hash" text not null,
        primary key ("project_id")
      )`,
    );
    this.addSql(
      `create table "audit_entries" (
        "project_id" text collate "C" not null,
        "sequence" bigint not null,
        "created_at" timestamptz(3) not null,
        "actor" text not null,
        "action" text not null,
        "resource" text null,
        "form_id" text collate "C" null,
        "detail" text null,
        "count" int not null,
        "client_address" text null,
        "request_id" text null,
        "previous_hash" text not null,
        "hash" text not null,
        primary key ("project_id", "sequence")
      )`,
    );
    this.addSql(
      `create index "audit_entries_by_time" on "audit_entries" ("project_id", "created_at", "sequence")`,
    );
  }
}

import { Migration } from '@mikro-orm/migrations';

/**
 * Counts the bytes of what came without a key by form, so that a project holds no more of it than it may.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class KeylessStorage extends Migration {
  override up(): void {
    this.addSql(`alter table "form_counters" add column "project_id" text collate "C" null`);
    this.addSql(`alter table "form_counters" add column "keyless_bytes" bigint not null default '0'`);
    this.addSql(
      `create index "form_counters_keyless" on "form_counters" ("project_id") where keyless_bytes <> 0`,
    );
    this.addSql(`alter table "uploads" add column "keyless" boolean not null default false`);
    // Submissions that are there: they are subtracted when they are removed.
    this.addSql(
      `insert into form_counters (form_id, slot, project_id, keyless_bytes)
       select s.form_id, 0, s.project_id,
         sum(2 * (octet_length(s.answers::text) + octet_length(s.metadata::text)) + 1024)
       from submissions s join forms f on f.id = s.form_id
       where f.created_by = 'public' group by s.form_id, s.project_id
       on conflict (form_id, slot) do update
         set project_id = excluded.project_id, keyless_bytes = excluded.keyless_bytes`,
    );
  }
}

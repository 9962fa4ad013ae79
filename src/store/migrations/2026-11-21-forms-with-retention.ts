import { Migration } from '@mikro-orm/migrations';

/**
 * Keeps the retention time of a form's current version on the form, where an index finds the few that have one.
 *
 * Runs beside versions from 2026-11-21-first-tables on.
 */
export class FormsWithRetention extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add column "retention_days" int null`);
    this.addSql(
      `update "forms" f set "retention_days" = (v.definition->'settings'->>'retentionDays')::int
       from "form_versions" v
       where v.id = f.current_version_id and v.definition->'settings'->>'retentionDays' is not null`,
    );
    this.addSql(`create index "forms_with_retention" on "forms" ("id") where retention_days is not null`);
  }
}

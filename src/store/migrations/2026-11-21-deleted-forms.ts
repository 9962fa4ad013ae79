import { Migration } from '@mikro-orm/migrations';

/**
 * Forms can be deleted; what belongs to them is removed in the background and found by these indexes.
 *
 * Runs beside versions from 2026-11-21-first-tables on.
 */
export class DeletedForms extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add column "deleted_at" timestamptz(3) null`);
    this.addSql(`create index "forms_deleted" on "forms" ("deleted_at") where deleted_at is not null`);
    this.addSql(`create index "events_by_form" on "events" ("form_id") where submission_id is null`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/**
 * Lets files name forms by a key, and keeps which versions broke what their form promised.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class FormKeys extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add "key" text collate "C" null, add "managed_by" text null`);
    this.addSql(
      `create unique index "forms_key_unique" on "forms" ("project_id", "key") where "key" is not null and "deleted_at" is null`,
    );
    this.addSql(`alter table "form_versions" add "breaking" boolean not null default false`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/**
 * Sessions can be cancelled, send the person back to where they came from, and are listed by form.
 *
 * Runs beside versions from 2026-11-21-first-tables on.
 */
export class CancelledSessions extends Migration {
  override up(): void {
    this.addSql(
      `alter table "sessions" add column "return_url" text null, add column "cancelled_at" timestamptz(3) null`,
    );
    this.addSql(`create index "sessions_by_age" on "sessions" ("form_id", "created_at", "id")`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/**
 * Visitors of a form's own page have sessions, too, which count as stored without a key and are removed after their end.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class VisitorsSessions extends Migration {
  override up(): void {
    this.addSql(`alter table "sessions" add column "keyless_bytes" int null`);
    this.addSql(
      `create index "sessions_of_visitors" on "sessions" ("expires_at") where keyless_bytes is not null`,
    );
  }
}

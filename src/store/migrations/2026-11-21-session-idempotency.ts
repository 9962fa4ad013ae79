import { Migration } from '@mikro-orm/migrations';

/**
 * Lets a form's sessions be made once for each idempotency key.
 *
 * Runs beside versions from 2026-11-21-first-tables on.
 */
export class SessionIdempotency extends Migration {
  override up(): void {
    this.addSql(
      `alter table "sessions" add column "idempotency_key" text null, add column "request_fingerprint" text null`,
    );
    this.addSql(
      `create unique index "sessions_idempotency_unique" on "sessions" ("form_id", "idempotency_key")
       where idempotency_key is not null`,
    );
  }
}

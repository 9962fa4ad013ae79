import { Migration } from '@mikro-orm/migrations';

/**
 * What requests with an idempotency key made, and what their replies show once.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class IdempotencyKeys extends Migration {
  override up(): void {
    this.addSql(`create table "idempotency_keys" (
      "id" text collate "C" not null,
      "request_fingerprint" text not null,
      "made_id" text collate "C" not null,
      "secret" text null,
      "created_at" timestamptz(3) not null,
      primary key ("id")
    )`);
    this.addSql(`create index "idempotency_keys_by_age" on "idempotency_keys" ("created_at")`);
  }
}

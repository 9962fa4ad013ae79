import { Migration } from '@mikro-orm/migrations';

/**
 * A revoked key leaves its hash, so that no start registers it again.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class RevokedKeys extends Migration {
  override up(): void {
    this.addSql(`create table "revoked_keys" (
      "secret_hash" text not null,
      "revoked_at" timestamptz(3) not null,
      primary key ("secret_hash")
    )`);
  }
}

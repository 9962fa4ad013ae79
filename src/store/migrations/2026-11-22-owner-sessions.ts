import { Migration } from '@mikro-orm/migrations';

/**
 * Owners of forms sign in by mail and find their forms by their address.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class OwnerSessions extends Migration {
  override up(): void {
    this.addSql(
      `create table "owner_sessions" (
        "token_hash" text collate "C" not null,
        "address" text not null,
        "created_at" timestamptz(3) not null,
        "expires_at" timestamptz(3) not null,
        primary key ("token_hash")
      )`,
    );
    this.addSql(`create index "owner_sessions_by_address" on "owner_sessions" ("address")`);
    this.addSql(`create index "owner_sessions_by_end" on "owner_sessions" ("expires_at")`);
    this.addSql(
      `create table "used_sign_in_links" (
        "token_hash" text collate "C" not null,
        "expires_at" timestamptz(3) not null,
        primary key ("token_hash")
      )`,
    );
    this.addSql(`create index "used_sign_in_links_by_end" on "used_sign_in_links" ("expires_at")`);
    this.addSql(`create index "forms_by_owner" on "forms" (lower("owner_email"), "id")`);
  }
}

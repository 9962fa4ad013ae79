import { Migration } from '@mikro-orm/migrations';

/**
 * Keeps mailed links, so that each works once and can be voided; how often a form was handed over, which links to its
 * files name; and of owners' sessions where and when they are used.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class MailedLinks extends Migration {
  override up(): void {
    this.addSql(`create table "mailed_links" (
      "token_hash" text collate "C" not null,
      "purpose" text not null,
      "form_id" text collate "C" not null,
      "address" text not null,
      "browser_hash" text null,
      "created_at" timestamptz(3) not null,
      "expires_at" timestamptz(3) not null,
      "used_at" timestamptz(3) null,
      primary key ("token_hash")
    )`);
    this.addSql(`create index "mailed_links_by_address" on "mailed_links" ("address", "form_id")`);
    this.addSql(`create index "mailed_links_by_end" on "mailed_links" ("expires_at")`);
    this.addSql(`alter table "forms" add "owner_epoch" int not null default 0`);
    this.addSql(
      `alter table "owner_sessions" add "browser" text not null default '', add "used_at" timestamptz(3) null`,
    );
  }
}

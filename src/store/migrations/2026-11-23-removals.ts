import { Migration } from '@mikro-orm/migrations';

/**
 * Notes what is still to be removed of something whose rows are gone, such as the bytes of its files.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class Removals extends Migration {
  override up(): void {
    this.addSql(`create table "removals" (
      "id" text collate "C" not null,
      "kind" text not null,
      "subject" text collate "C" not null,
      "due_at" timestamptz(3) not null,
      "attempts" int not null default 0,
      "error" text null,
      primary key ("id")
    )`);
    this.addSql(
      `alter table "removals" add constraint "removals_kind_check"
         check (kind in ('file', 'form', 'project', 'webhook'))`,
    );
    this.addSql(`create index "removals_due" on "removals" ("due_at")`);
  }
}

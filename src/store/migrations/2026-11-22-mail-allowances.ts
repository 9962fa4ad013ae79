import { Migration } from '@mikro-orm/migrations';

/**
 * Mails are counted by delivery, and against the network that a form was made from; counts last a day.
 *
 * Runs beside versions from 2026-11-22-mail-allowances on.
 */
export class MailAllowances extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add column "created_from" text null`);
    this.addSql(`create table "mail_allowances" (
      "holder" text not null,
      "kind" text not null,
      "day" text not null,
      "delivery_ids" text[] not null,
      primary key ("holder", "kind", "day")
    )`);
    this.addSql(`create index "mail_allowances_by_day" on "mail_allowances" ("day")`);
    this.addSql(`drop table "mail_quotas"`);
  }
}

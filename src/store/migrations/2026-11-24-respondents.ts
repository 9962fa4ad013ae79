import { Migration } from '@mikro-orm/migrations';

/**
 * Lets a session name who is to answer, and a submission who has answered; and keeps the codes that respondents are
 * mailed with the links that are.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class Respondents extends Migration {
  override up(): void {
    this.addSql(`alter table "sessions" add "respondent" json null`);
    this.addSql(`alter table "submissions" add "respondent" json null, add "respondent_key" text null`);
    this.addSql(
      `create unique index "submissions_respondent_unique" on "submissions" ("form_id", "respondent_key") where "respondent_key" is not null`,
    );
    this.addSql(
      `alter table "mailed_links" add "session_id" text collate "C" null, add "tries" int not null default 0`,
    );
    this.addSql(
      `create index "mailed_links_by_browser" on "mailed_links" ("browser_hash", "form_id") where "browser_hash" is not null`,
    );
  }
}

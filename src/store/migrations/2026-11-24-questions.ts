import { Migration } from '@mikro-orm/migrations';

/**
 * Lets a session bring questions of its own, which become a hidden form, show a context, and be declined. A declined
 * session counts as cancelled too, so that a version before takes no answers for it.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class Questions extends Migration {
  override up(): void {
    this.addSql(`alter table "sessions" add "context" json null, add "allow_decline" boolean not null default false,
      add "declined_at" timestamptz(3) null, add "decline_reason" text null,
      add "return_outcome" boolean not null default false`);
    this.addSql(`alter table "forms" add "question_checksum" text collate "C" null,
      add "question_due_at" timestamptz(3) null`);
    this.addSql(`create unique index "forms_question_unique" on "forms" ("project_id", "question_checksum")
      where question_checksum is not null and deleted_at is null`);
    this.addSql(`create index "forms_questions_due" on "forms" ("question_due_at")
      where question_checksum is not null and deleted_at is null`);
    this.addSql(
      `create index "forms_listed" on "forms" ("project_id", "id") where question_checksum is null`,
    );
  }
}

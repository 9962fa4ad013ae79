import { Migration } from '@mikro-orm/migrations';

/** Owners add recipients of their own beside those that a form's definition names. */
export class AddedRecipients extends Migration {
  override up(): void {
    this.addSql(`alter table "mail_recipients" add column "added_as" text null`);
  }
}

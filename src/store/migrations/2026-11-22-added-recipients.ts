import { Migration } from '@mikro-orm/migrations';

/**
 * Owners add recipients of their own beside those that a form's definition names.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class AddedRecipients extends Migration {
  override up(): void {
    this.addSql(`alter table "mail_recipients" add column "added_as" text null`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/** Owners close forms and open them again. */
export class ClosedForms extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add column "closed_at" timestamptz(3) null`);
  }
}

import { Migration } from '@mikro-orm/migrations';

/**
 * Owners close forms and open them again.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class ClosedForms extends Migration {
  override up(): void {
    this.addSql(`alter table "forms" add column "closed_at" timestamptz(3) null`);
  }
}

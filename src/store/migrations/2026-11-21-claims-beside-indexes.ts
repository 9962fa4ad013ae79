import { Migration } from '@mikro-orm/migrations';

/**
 * Leaves room beside each delivery for its claimed version: PostgreSQL then writes it next to the first and
 * touches none of the table's indexes.
 *
 * Runs beside versions from 2026-11-21-first-tables on.
 */
export class ClaimsBesideIndexes extends Migration {
  override up(): void {
    this.addSql(`alter table "deliveries" set (fillfactor = 50)`);
  }
}

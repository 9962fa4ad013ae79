import { Migration } from '@mikro-orm/migrations';

/**
 * Records where answers come from. Of answers that are there it is not known.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class ProvenanceOfAnswers extends Migration {
  override up(): void {
    this.addSql(`alter table "submissions" add column "provenance" json null`);
    this.addSql(`alter table "sessions" add column "provenance" json null`);
  }
}

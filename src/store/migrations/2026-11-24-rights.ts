import { Migration } from '@mikro-orm/migrations';

/**
 * Notes which key made a key, so that it ends with it.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class Rights extends Migration {
  override up(): void {
    this.addSql(`alter table "api_keys" add "created_by" text collate "C" null`);
    this.addSql(
      `create index "api_keys_by_maker" on "api_keys" ("created_by") where "created_by" is not null`,
    );
  }
}

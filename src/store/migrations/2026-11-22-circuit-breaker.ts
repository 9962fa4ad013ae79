import { Migration } from '@mikro-orm/migrations';

/**
 * Lets the deliveries of a webhook that keeps failing wait together.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class CircuitBreaker extends Migration {
  override up(): void {
    this.addSql(
      `alter table "webhooks" add column "failures_in_row" int not null default 0,
         add column "open_until" timestamptz(3) null`,
    );
    this.addSql(`alter table "delivery_queue" add column "postponed" boolean not null default false`);
  }
}

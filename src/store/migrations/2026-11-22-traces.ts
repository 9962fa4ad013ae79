import { Migration } from '@mikro-orm/migrations';

/**
 * Lets a delivery go on with the trace of the request that caused it, and send it to its receiver.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class Traces extends Migration {
  override up(): void {
    this.addSql(`alter table "events" add column "traceparent" text null`);
    this.addSql(`alter table "webhooks" add column "sends_traceparent" boolean not null default false`);
  }
}

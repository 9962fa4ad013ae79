import { Migration } from '@mikro-orm/migrations';

/**
 * Gives webhooks a template for their bodies, and sessions a callback and what a person is notified by.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class SessionDeliveries extends Migration {
  override up(): void {
    this.addSql(`alter table "webhooks" add "template" json null`);
    this.addSql(
      `create unique index "webhooks_of_callbacks_unique" on "webhooks" ("project_id", "url") where form_id = 'callbacks'`,
    );
    this.addSql(
      `create index "webhooks_of_callbacks_by_use" on "webhooks" ("created_at") where form_id = 'callbacks'`,
    );
    this.addSql(
      `alter table "sessions" add "callback" json null, add "callback_secret" text null, add "notify" json null`,
    );
  }
}

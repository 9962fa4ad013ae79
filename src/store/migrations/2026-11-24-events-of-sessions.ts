import { Migration } from '@mikro-orm/migrations';

/**
 * Finds the events of a session, which go with it: they hold what it held. Those of a submission go with that.
 *
 * Runs beside versions from 2026-11-22-delivery-queue on.
 */
export class EventsOfSessions extends Migration {
  override up(): void {
    this.addSql(`create index "events_by_session" on "events" ("session_id")
      where session_id is not null and submission_id is null`);
  }
}

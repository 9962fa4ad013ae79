import type { MigrationObject } from '@mikro-orm/core';
import { Migration } from '@mikro-orm/migrations';

/** What a migration does to the tables. */
export type TableChange = {
  /** As the database remembers it. */
  name: string;
  /**
   * The oldest version that may serve on the tables afterwards, by the migration that it came with; absent: that of the
   * change before.
   */
  runsBeside?: string;
} & (
  | { sql: string[] }
  /** Where statements follow from rows. */
  | { run(execute: (sql: string) => Promise<unknown[]>): Promise<void> }
);

/** A change as MikroORM runs it. */
export function migrationOf(change: TableChange): MigrationObject & Pick<TableChange, 'runsBeside'> {
  return {
    ...change,
    class: class extends Migration {
      override async up(): Promise<void> {
        if ('run' in change) await change.run((statement) => this.execute(statement));
        else for (const statement of change.sql) this.addSql(statement);
      }
    },
  };
}

import type { MikroORM } from '@mikro-orm/core';
import { migrations } from '../migrations/index.ts';

/** What both engines tell MikroORM. */
export const ormOptions = {
  allowGlobalContext: false,
  migrations: { migrationsList: migrations, snapshot: false, tableName: 'migrations', silent: true },
  // Rows go straight to the caller: an identity map over a read would keep each of them alive.
  disableIdentityMap: true,
};

/** What the tables lack of what the entities describe, as SQL. */
export async function schemaDifference(orm: Pick<MikroORM, 'schema'>): Promise<string> {
  return orm.schema.getUpdateSchemaSQL({ wrap: false });
}

import { migrations } from './migrations/index.ts';

/** What both engines tell MikroORM. */
export const ormOptions = {
  allowGlobalContext: false,
  migrations: { migrationsList: migrations, snapshot: false, tableName: 'migrations', silent: true },
  // Rows go straight to the caller: an identity map over a read would keep each of them alive.
  disableIdentityMap: true,
};

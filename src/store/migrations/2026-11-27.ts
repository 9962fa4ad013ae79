import type { TableChange } from './table-change.ts';

/** The changes of 27 November 2026, in the order they run. */
export const november27: TableChange[] = [
  /** Finds the webhooks that work again, and for which what was postponed is still to be made due. */
  {
    name: '2026-11-27-resumable-webhooks',
    sql: [
      `create index "webhooks_resumable" on "webhooks" ("id") where open_until is not null and failing_since is null`,
    ],
  },
];

import { november21 } from './2026-11-21.ts';
import { november22 } from './2026-11-22.ts';
import { november23 } from './2026-11-23.ts';
import { november24 } from './2026-11-24.ts';
import { november25 } from './2026-11-25.ts';
import { november27 } from './2026-11-27.ts';
import { november28 } from './2026-11-28.ts';
import { november29 } from './2026-11-29.ts';
import { migrationOf } from './table-change.ts';

/** Every migration in the order it runs. A released one is never edited: changes are a further one. */
export const migrations = [
  ...november21,
  ...november22,
  ...november23,
  ...november24,
  ...november25,
  ...november27,
  ...november28,
  ...november29,
].map(migrationOf);

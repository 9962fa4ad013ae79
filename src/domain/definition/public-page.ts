import { lackingFromAgent } from '../conditions/shown-fields.ts';
import { memoize } from '../memoize.ts';
import type { FormDefinition } from './definition.ts';

/**
 * Whether a form has a page of its own that everybody may fill in: not where its settings say so, nor where an agent
 * has to give answers first, since nobody could submit it. Versions that are older than the setting have none of it.
 */
export const hasPublicPage = memoize(
  ({ fields, settings }: FormDefinition): boolean =>
    settings.publicPage !== false && lackingFromAgent(fields, {}).length === 0,
);

/** One page of a list, and where the next one begins: the id of the last item, or null at the end. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/** Which page: `cursor` is the `nextCursor` of the page before. */
export type PageRequest = { limit: number; cursor?: string | undefined };

/** Makes a page of `limit` items out of the rows of a query that asked for one more. */
export function pageOf<T extends { id: string }>(rows: T[], limit: number): Page<T> {
  const items = rows.slice(0, limit);
  return { items, nextCursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null };
}

import type { z } from 'zod';

/** The schema of a property that may be absent, with what API descriptions say of it. */
export function optional<Schema extends z.ZodType>(
  schema: Schema,
  about: string,
): z.ZodExactOptional<Schema> {
  return schema.exactOptional().describe(about);
}

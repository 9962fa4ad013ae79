import { jsonPathOf } from '../domain/definition/definition-path.ts';

/**
 * The path of a refused value as a REST caller wrote it, from the path of the RPC's field: `definition.slug` is
 * `slug` in the body, `page_size` is the parameter `limit`, and the second of several events is `events.1`.
 *
 * Answers, prefill and metadata have the same paths in both: they are JSON in both.
 */
export function restPathOf(fieldPath: string): string {
  const [, name = '', rest = ''] = /^([^.[]*)(.*)$/s.exec(fieldPath) ?? [];
  if (jsonFields.has(name)) return fieldPath;
  return jsonPathOf(fieldPath) ?? `${restNames.get(name) ?? name}${rest.replaceAll(/\[(\d+)\]/g, '.$1')}`;
}

/** The fields whose content is JSON that a caller made up, keys included. */
const jsonFields = new Set(['answers', 'prefill', 'metadata']);

/** The parameters, headers and parts of REST that have another name than the field that they become. */
const restNames = new Map([
  ['page_size', 'limit'],
  ['page_token', 'cursor'],
  ['skip', 'offset'],
  ['timeout', 'wait'],
  ['idempotency_key', 'Idempotency-Key'],
  ['field_id', 'field'],
  ['content', 'file'],
]);

/**
 * Stores `count` submissions of a form straight into the tables, as fast as the database can, and counts them. Their ids
 * sort before all that the service makes.
 */
export async function seedSubmissions(
  execute: (sql: string, params: unknown[]) => Promise<unknown>,
  formId: string,
  count: number,
): Promise<void> {
  await execute(
    `insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
     select 'sub_01a' || lpad(to_hex(n), 23, '0'), project_id, id, current_version_id, 'api',
       '{"email": "ada@example.com"}', '{}', 'accepted', now() - ($2::int - n) * interval '1 second'
     from forms, generate_series(1, $2::int) n where id = $1`,
    [formId, count],
  );
  await execute(
    `insert into form_counters (form_id, slot, accepted) values ($1, 0, $2)
     on conflict (form_id, slot) do update set accepted = form_counters.accepted + excluded.accepted`,
    [formId, count],
  );
}

/** The id of the nth of them, counted from 1. */
export function seededId(n: number): string {
  return `sub_01a${n.toString(16).padStart(23, '0')}`;
}

import { Client } from 'pg';
import { contactAnswers } from './form.ts';

/**
 * Stores `count` submissions of one form with their events, which wait for nothing, straight into the
 * tables. Their ids sort before all that the service makes.
 */
export async function seedSubmissions(url: string, { formId, versionId, count }: Seed): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // Seeding is not what is measured; rows that are lost in a crash are seeded again.
    await client.query('set synchronous_commit = off');
    for (let from = 1; from <= count; from += BATCH) {
      const to = Math.min(count, from + BATCH - 1);
      await client.query(SUBMISSIONS, [formId, versionId, JSON.stringify(contactAnswers), from, to, count]);
      await client.query(EVENTS, [seededId(from), seededId(to)]);
    }
    await client.query(COUNTED, [formId, count]);
  } finally {
    await client.end();
  }
}

/** The id of the nth seeded submission, counted from 1. */
export function seededId(n: number): string {
  return `sub_${SEEDED}${n.toString(16).padStart(26 - SEEDED.length, '0')}`;
}

const BATCH = 100_000;

/** The first characters of a time some years back, so that the ids are older than new ones. */
const SEEDED = '01a';

const SUBMISSIONS = `
insert into submissions (id, project_id, form_id, version_id, source, answers, metadata, status, created_at)
select 'sub_${SEEDED}' || lpad(to_hex(n), ${26 - SEEDED.length}, '0'), f.project_id, f.id, $2, 'api', $3::json, '{}',
  'accepted', now() - ($6::int - n) * interval '1 second'
from forms f, generate_series($4::int, $5::int) n where f.id = $1`;

const EVENTS = `
insert into events (id, project_id, form_id, type, submission_id, body, created_at, fanned_out_at)
select 'evt' || substr(id, 4), project_id, form_id, 'submission.created', id, json_build_object(
    'id', 'evt' || substr(id, 4), 'event', 'submission.created', 'createdAt', created_at,
    'data', json_build_object('submissionId', id, 'formId', form_id, 'answers', answers))::text,
  created_at, created_at
from submissions where id between $1 and $2`;

/** Without it the form would seem empty: an offset beyond its count is an empty list, found without a look. */
const COUNTED = `insert into form_counters (form_id, slot, accepted) values ($1, 0, $2)
on conflict (form_id, slot) do update set accepted = form_counters.accepted + excluded.accepted`;

type Seed = { formId: string; versionId: string; count: number };

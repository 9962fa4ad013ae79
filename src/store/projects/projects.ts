import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { demoFormId } from '../../domain/ids.ts';
import { id, rowsOf, text, time } from '../database/columns.ts';
import {
  deleteSome,
  type Page,
  type PageRequest,
  pageOf,
  type Queries,
  type Transaction,
} from '../database/queries.ts';
import { removeDeliveries } from '../deliveries/remove.ts';
import { closeWebhooks, notClosing } from '../webhooks/webhooks.ts';

/** A project: what an API key sees. Everything but versions belongs to exactly one. */
export const ProjectEntity = defineEntity({
  name: 'Project',
  tableName: 'projects',
  properties: {
    id: id().primary(),
    name: text().unique('projects_name_unique'),
    createdAt: time(),
  },
});

export type Project = InferEntity<typeof ProjectEntity>;

/** Finds the project of this name, or makes it under the given id. Callers that race get the same one. */
export async function getOrCreateProject(db: Queries, project: Project): Promise<Project> {
  await db.write((em) =>
    em.upsert(ProjectEntity, project, { onConflictFields: ['name'], onConflictAction: 'ignore' }),
  );
  return db.read((em) => em.findOneOrFail(ProjectEntity, { name: project.name }));
}

/** Finds a project by its id. */
export async function findProject(db: Queries, projectId: string): Promise<Project | null> {
  return db.read((em) => em.findOne(ProjectEntity, { id: projectId }));
}

/** Finds a project by its name. */
export async function findProjectNamed(db: Queries, name: string): Promise<Project | null> {
  return db.read((em) => em.findOne(ProjectEntity, { name }));
}

/** The names of projects by their ids. */
export async function projectNames(db: Queries, projectIds: string[]): Promise<Map<string, string>> {
  const projects = await db.read((em) => em.find(ProjectEntity, { id: { $in: projectIds } }));
  return new Map(projects.map(({ id, name }) => [id, name]));
}

/** Lists all projects, oldest first, each with the number of its keys and forms. */
export async function listProjects(db: Queries, page: PageRequest): Promise<Page<CountedProject>> {
  const rows = await db.select(
    `select ${projectRows.columns}, (select count(*) from api_keys k where k.project_id = p.id) as keys,
       (select count(*) from forms f where f.project_id = p.id and f.deleted_at is null) as forms
     from projects p where id > $1 order by id limit $2`,
    [page.cursor ?? '', page.limit + 1],
  );
  const projects = rows.map((row) => ({
    ...projectRows.map(row),
    keys: Number(row.keys),
    forms: Number(row.forms),
  }));
  return pageOf(projects, page.limit);
}

const projectRows = rowsOf(ProjectEntity);

/** Makes other transactions that lock the project wait until this one ends. */
export async function lockProject(tx: Transaction, projectId: string): Promise<void> {
  await tx.select('select id from projects where id = $1 for update', [projectId]);
}

/**
 * Ends everything of a project at once: its keys are revoked, its forms and webhooks deleted for every reader. Rows are
 * removed by `removeRowsOfForm` of each form and `removeRowsOfProject`. Doing so again changes nothing.
 */
export async function closeProject(
  tx: Transaction,
  projectId: string,
): Promise<{ keys: number; forms: number }> {
  await closeWebhooks(tx, { projectId });
  const [row] = await tx.execute(
    `with keys as (delete from api_keys where project_id = $1 returning secret_hash),
       revoked as (insert into revoked_keys (secret_hash, revoked_at)
         select secret_hash, now() from keys on conflict do nothing),
       ended as (update forms set status = 'archived', archived_at = coalesce(archived_at, now()), deleted_at = now(),
           updated_at = now()
         where project_id = $1 and deleted_at is null and id <> '${demoFormId}' returning id)
     select (select count(*) from keys) as keys, (select count(*) from ended) as forms`,
    [projectId],
  );
  return { keys: Number(row?.keys), forms: Number(row?.forms) };
}

/**
 * Removes up to `limit` rows of each kind that belong to a closed project and no form, but for what tells of deleted
 * submissions, which a sweep removes. True if there may be more.
 */
export async function removeRowsOfProject(db: Queries, projectId: string, limit: number): Promise<boolean> {
  const events = await db.select(
    "select id from events where project_id = $1 and type <> 'submission.deleted' order by id limit $2",
    [projectId, limit],
  );
  await removeDeliveries(db, 'event_id = any($1)', [events.map(({ id }) => id)]);
  await db.execute('delete from events where id = any($1)', [events.map(({ id }) => id)]);
  const webhooks = await deleteSome(db, 'webhooks', {
    where: `project_id = $1 and ${notClosing}`,
    params: [projectId],
    limit,
  });
  return events.length === limit || webhooks.length === limit;
}

/** How many submissions a project has, spam too. */
export async function countSubmissionsOfProject(db: Queries, projectId: string): Promise<number> {
  const [row] = await db.select(
    `select coalesce(sum(accepted + spam), 0) as count from form_counters
     where form_id in (select id from forms where project_id = $1)`,
    [projectId],
  );
  return Number(row?.count);
}

export type CountedProject = Project & { keys: number; forms: number };

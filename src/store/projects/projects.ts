import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time, timeOf } from '../database/columns.ts';
import { type Page, type PageRequest, pageOf, type Queries, type Transaction } from '../database/queries.ts';

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
    `select id, name, created_at, (select count(*) from api_keys k where k.project_id = p.id) as keys,
       (select count(*) from forms f where f.project_id = p.id and f.deleted_at is null) as forms
     from projects p where id > $1 order by id limit $2`,
    [page.cursor ?? '', page.limit + 1],
  );
  const projects = rows.map((row) => ({
    id: String(row.id),
    name: String(row.name),
    createdAt: timeOf(row.created_at),
    keys: Number(row.keys),
    forms: Number(row.forms),
  }));
  return pageOf(projects, page.limit);
}

export type CountedProject = Project & { keys: number; forms: number };

/** Makes other transactions that lock the project wait until this one ends. */
export async function lockProject(tx: Transaction, projectId: string): Promise<void> {
  await tx.select('select id from projects where id = $1 for update', [projectId]);
}

import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time } from './database/columns.ts';
import type { Queries, Transaction } from './database/queries.ts';

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

/** Makes other transactions that lock the project wait until this one ends. */
export async function lockProject(tx: Transaction, projectId: string): Promise<void> {
  await tx.select('select id from projects where id = $1 for update', [projectId]);
}

import { defineEntity, type InferEntity } from '@mikro-orm/core';
import { id, text, time } from './columns.ts';

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

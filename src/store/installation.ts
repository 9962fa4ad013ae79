import { defineEntity } from '@mikro-orm/core';
import { text } from './database/columns.ts';
import type { Queries } from './database/queries.ts';

/** Facts about this installation that every process must agree on, such as the secret key's check value. */
export const InstallationEntity = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    name: text().primary(),
    value: text(),
  },
});

/** The name of what starts check their SECRET_KEY against. */
export const SECRET_KEY_CHECK = 'secret_key';

/** What is kept under `name`. */
export async function findFact(db: Queries, name: string): Promise<string | undefined> {
  return (await db.read((em) => em.findOne(InstallationEntity, { name })))?.value;
}

/** Keeps `value` under `name` if nothing is kept there yet; returns what is kept, the same for all who ask. */
export async function agreeOn(db: Queries, name: string, value: string): Promise<string> {
  await db.write((em) => em.upsert(InstallationEntity, { name, value }, { onConflictAction: 'ignore' }));
  return (await db.read((em) => em.findOneOrFail(InstallationEntity, { name }))).value;
}

/** Keeps `value` under `name`, in place of what is kept there. */
export async function keepFact(db: Queries, name: string, value: string): Promise<void> {
  await db.write((em) => em.upsert(InstallationEntity, { name, value }));
}

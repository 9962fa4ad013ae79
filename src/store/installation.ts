import { defineEntity } from '@mikro-orm/core';
import { text } from './columns.ts';

/** Facts about this installation that every process must agree on, such as the secret key's check value. */
export const InstallationEntity = defineEntity({
  name: 'Installation',
  tableName: 'installation',
  properties: {
    name: text().primary(),
    value: text(),
  },
});

import { join } from 'node:path';
import { openDatabase } from '../../src/store/database/database.ts';
import type { Row } from '../support/bench.ts';
import { takeTurns } from '../support/rounds.ts';
import { acceptingService, acceptLimit, submissionsTo } from './accept.ts';

export const acceptEmbedded: Row = {
  name: 'accept-embedded',
  what: 'accept on the embedded database, beside bare node:http with a grouped insert on bare PGlite',
  async run(bench, report) {
    const { service, formId } = await acceptingService(bench, {});
    const folder = bench.folder();
    const database = await openDatabase({ dataDir: folder, log: console });
    await database.close();
    // The folder in which the service's own database would be.
    const dataDir = join(folder, 'pglite');
    const turns = await takeTurns(bench.rounds, {
      service: bench.hammered(service, submissionsTo(formId)),
      alone: bench.hammered(service, { ...submissionsTo(formId), connections: 1 }),
      limit: await acceptLimit(bench, dataDir),
    });

    report.sample('service', turns.typical('service'));
    report.sample('service, one at a time', turns.typical('alone'));
    report.sample('limit', turns.typical('limit'));
    report.atLeast('rate to the limit', turns.ratio('service', 'limit'), 0.7);
  },
};

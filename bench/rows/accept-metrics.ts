import type { Row } from '../support/bench.ts';
import { takeTurns } from '../support/rounds.ts';
import { acceptingService, submissionsTo } from './accept.ts';

export const acceptMetrics: Row = {
  name: 'accept-metrics',
  what: 'submissions by REST on PostgreSQL, with metrics and without',
  async run(bench, report) {
    const contestant = async (env: NodeJS.ProcessEnv) => {
      const databaseUrl = await bench.databases.create();
      const { service, formId } = await acceptingService(bench, { DATABASE_URL: databaseUrl, ...env });
      return bench.hammered(service, submissionsTo(formId));
    };
    const turns = await takeTurns(bench.rounds, {
      metrics: await contestant({ METRICS_PORT: '0' }),
      none: await contestant({ METRICS_PORT: 'off' }),
    });

    report.sample('with metrics', turns.typical('metrics'));
    report.sample('without', turns.typical('none'));
    report.atLeast('rate to that without', turns.ratio('metrics', 'none'), 0.98);
    report.atMost(
      'CPU of a submission to that without',
      turns.ratio('metrics', 'none', ({ cpuMicros }) => cpuMicros),
      1.02,
    );
  },
};

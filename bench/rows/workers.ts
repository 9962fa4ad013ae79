import type { Row } from '../support/bench.ts';
import { takeTurns } from '../support/rounds.ts';
import { acceptingService, submissionsTo } from './accept.ts';

export const workers: Row = {
  name: 'workers',
  what: 'accept with two processes on one port, beside one',
  async run(bench, report) {
    const acceptingBy = async (count: number) => {
      const env = { DATABASE_URL: await bench.databases.create(), WORKERS: String(count) };
      const { service, formId } = await acceptingService(bench, env);
      return bench.hammered(service, submissionsTo(formId));
    };
    const turns = await takeTurns(bench.rounds, { two: await acceptingBy(2), one: await acceptingBy(1) });

    report.sample('service, 2 workers', turns.typical('two'));
    report.sample('service, 1 worker', turns.typical('one'));
    report.fact('rate of two to that of one', turns.ratio('two', 'one').toFixed(2));
  },
};

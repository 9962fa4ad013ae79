import type { Bench, Row } from '../support/bench.ts';
import { countReceived } from '../support/delivering.ts';
import { contactForm, submissionRequest, webhookSecret } from '../support/form.ts';
import type { Program } from '../support/process.ts';
import { type Contestant, type Sample, takeTurns } from '../support/rounds.ts';
import { submissionsTo } from './accept.ts';

export const acceptDeliver: Row = {
  name: 'accept-deliver',
  what: 'submissions by REST of a form with one webhook until all have arrived, beside node:http, a grouped insert and POSTs from memory',
  async run(bench, report) {
    const turns = await takeTurns(bench.rounds, {
      service: await delivering(bench),
      limit: await acceptDeliverLimit(bench),
      down: await acceptingForNobody(bench),
    });

    report.sample('service, receiver answering', turns.typical('service'));
    report.sample('limit, receiver answering', turns.typical('limit'));
    report.sample('service, receiver down', turns.typical('down'));
    report.atLeast('receiver answering, rate to the limit', turns.ratio('service', 'limit'), 0.5);
    report.atLeast('receiver down, rate to that with it answering', turns.ratio('down', 'service'), 0.9);
  },
};

async function delivering(bench: Bench): Promise<Contestant> {
  const receivers = await startReceiver(bench);
  const service = await bench.service({ DATABASE_URL: await bench.databases.create() });
  const { formId } = await service.publish(contactForm(receivers.ready.urls[0] ?? ''));
  return untilArrived(receivers, bench.hammered(service, submissionsTo(formId)));
}

async function acceptDeliverLimit(bench: Bench): Promise<Contestant> {
  const receivers = await startReceiver(bench);
  const limit = await bench.program<{ port: number }>('limits/accept.ts', {
    databaseUrl: await bench.databases.create(),
    webhook: { url: receivers.ready.urls[0], secret: webhookSecret },
  });
  const request = submissionRequest('/');
  const target = { port: limit.ready.port, usage: limit.usage };
  return untilArrived(receivers, bench.hammered(target, { request: () => request, expect: 201 }));
}

/** Nobody listens where the webhook goes: there is no arrival to wait for. */
async function acceptingForNobody(bench: Bench): Promise<Contestant> {
  const service = await bench.service({ DATABASE_URL: await bench.databases.create() });
  const { formId } = await service.publish(contactForm('http://127.0.0.1:9/'));
  return bench.hammered(service, submissionsTo(formId));
}

/** Adds to a turn the time until its last webhook has arrived. */
function untilArrived(receivers: Program<unknown>, accept: Contestant): Contestant {
  return async (turn): Promise<Sample> => {
    const start = performance.now();
    const sample = await accept(turn);
    await countReceived(receivers, (seen) => seen >= sample.units);
    return { ...sample, seconds: (performance.now() - start) / 1000 };
  };
}

function startReceiver(bench: Bench) {
  return bench.program<{ urls: string[] }>('support/receivers.ts', { count: 1 });
}

import type { Row } from '../support/bench.ts';
import { inTurn, requestBytes } from '../support/connection.ts';
import type { Form } from '../support/form.ts';
import { takeTurns } from '../support/rounds.ts';
import { objectAt } from '../support/service.ts';

export const page: Row = {
  name: 'page',
  what: 'the hosted page of 20 fields, beside bare node:http sending the same bytes',
  async run(bench, report) {
    const service = await bench.service({
      DATABASE_URL: await bench.databases.create(),
      DELIVERY_WORKERS: '0',
    });
    const { formId } = await service.publish(formOf(20));
    const requests: Buffer[] = [];
    let path = '';
    while (requests.length < SESSIONS) {
      const created = await service.call('POST', `/v1/forms/${formId}/sessions`, {});
      path = `/f/${String(objectAt(created, 'session').id)}`;
      requests.push(requestBytes({ method: 'GET', path }));
    }
    const shown = await fetch(`http://127.0.0.1:${service.port}${path}`);
    const body = await shown.text();
    if (shown.status !== 200 || !body.includes('field_20'))
      throw new Error(`No page: ${shown.status} ${body}`);

    // The limit sets these itself.
    const own = new Set(['content-length', 'connection', 'keep-alive', 'date', 'transfer-encoding']);
    const headers = Object.fromEntries([...shown.headers].filter(([name]) => !own.has(name)));
    const limit = await bench.program<{ port: number }>('limits/page.ts', { headers, body });
    const call = { request: inTurn(requests), expect: 200 };
    const turns = await takeTurns(bench.rounds, {
      service: bench.hammered(service, call),
      limit: bench.hammered({ port: limit.ready.port, usage: limit.usage }, call),
    });

    report.sample('service', turns.typical('service'));
    report.sample('limit', turns.typical('limit'));
    report.atLeast('rate to the limit', turns.ratio('service', 'limit'), 0.3);
    report.fact('size of the page', `${Buffer.byteLength(body)} bytes`);
  },
};

/** More than are asked for at once, as each person has a session of their own. */
const SESSIONS = 256;

function formOf(count: number): Form {
  const types = ['text', 'email', 'number', 'date', 'textarea'];
  const fields = Array.from({ length: count }, (_, index) => ({
    id: `field_${index + 1}`,
    type: types[index % types.length],
    label: `Question ${index + 1}`,
    description: 'What we would like to know, in a few words.',
    required: index % 2 === 0,
  }));
  return { name: 'Twenty questions', slug: 'twenty', fields, delivery: { type: 'email' } };
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import type { Row } from '../support/bench.ts';
import { requestBytes } from '../support/connection.ts';
import { contactAnswers, contactForm } from '../support/form.ts';
import { arrive, latencies } from '../support/load.ts';
import { sampled } from '../support/rounds.ts';

/** Submissions a second: a busy form, far below what the service takes. */
const RATE = 200;

export const lag: Row = {
  name: 'lag',
  what: 'from sending a submission to its webhook at the receiver, at 200 submissions/s',
  async run(bench, report) {
    // More than from the commit on, which nobody outside can see: accepting counts too.
    const sentAt: number[] = [];
    const lags = createHistogram();
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const number = Number(/"company":"(\d+)"/.exec(Buffer.concat(chunks).toString())?.[1]);
        lags.record(Math.max(1, Math.round((performance.now() - (sentAt[number] ?? 0)) * 1000)));
        response.writeHead(200, { 'content-length': 0 }).end();
      });
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const { port } = receiver.address() as AddressInfo;
    const service = await bench.service({ DATABASE_URL: await bench.databases.create() });
    const { formId } = await service.publish(contactForm(`http://127.0.0.1:${port}/`));

    const send = (seconds: number) =>
      arrive({
        port: service.port,
        perSecond: RATE,
        seconds,
        expect: 201,
        request() {
          const number = sentAt.push(performance.now()) - 1;
          const answers = { ...contactAnswers, company: String(number) };
          return requestBytes({
            method: 'POST',
            path: `/api/forms/${formId}/submissions`,
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ source: 'bench', answers }),
          });
        },
      });
    await send(bench.seconds({ warmingUp: true }));
    while (lags.count < sentAt.length) await new Promise(setImmediate);
    lags.reset();
    const before = sentAt.length;
    const sample = await sampled(service, () => send(bench.seconds({ warmingUp: false }) * bench.rounds));
    while (lags.count < sentAt.length - before) await new Promise(setImmediate);
    receiver.close();
    receiver.closeAllConnections();

    const { p50Ms, p99Ms, maxMs } = latencies(lags);
    report.sample('service, accepting and delivering', sample);
    report.atMost('p50', p50Ms, 20, 'ms');
    report.atMost('p99', p99Ms, 200, 'ms');
    report.fact('longest', `${maxMs.toFixed(0)} ms`);
  },
};

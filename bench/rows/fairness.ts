import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import type { Row } from '../support/bench.ts';
import { contactAnswers, contactForm, webhookSecret } from '../support/form.ts';
import { startLagMeter } from '../support/lags.ts';
import { seedDeliveries } from '../support/seed-deliveries.ts';
import { objectAt } from '../support/service.ts';

/** Due at one receiver that takes connections and never answers. */
const STUCK = 100_000;

/** Submissions a second to the form beside it. */
const RATE = 20;

export const fairness: Row = {
  name: 'fairness',
  what: 'lag of one receiver while another, with 100,000 due deliveries, times out on each',
  async run(bench, report) {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    using meter = await startLagMeter();
    const databaseUrl = await bench.databases.create();
    const service = await bench.service({ DATABASE_URL: databaseUrl });
    const { formId } = await service.publish(contactForm(meter.url));
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    const registered = { url, events: ['session.expired'], secret: webhookSecret };
    const { id } = objectAt(await service.call('POST', '/v1/webhooks', registered), 'webhook');
    const body = JSON.stringify({ id: 'evt_', event: 'session.expired', data: { answers: contactAnswers } });
    const webhooks = [{ id: String(id), url }];
    await seedDeliveries(databaseUrl, {
      formId,
      body,
      count: bench.scaled(STUCK),
      webhooks,
      dueAt: new Date(),
    });

    const target = { port: service.port, formId, perSecond: RATE };
    await meter.send({ ...target, seconds: bench.seconds({ warmingUp: true }) });
    meter.reset();
    await meter.send({ ...target, seconds: bench.seconds({ warmingUp: false }) * bench.rounds });
    silent.close();

    const { p50Ms, p99Ms, maxMs } = meter.lags();
    report.fact('p50', `${p50Ms.toFixed(0)} ms`);
    report.atMost('p99', p99Ms, 1_000, 'ms');
    report.fact('longest', `${maxMs.toFixed(0)} ms`);
  },
};

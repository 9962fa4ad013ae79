import type { Row } from '../support/bench.ts';
import { contactForm } from '../support/form.ts';
import { startLagMeter } from '../support/lags.ts';
import { sampled } from '../support/rounds.ts';

/** Submissions a second: a busy form, far below what the service takes. */
const RATE = 200;

export const lag: Row = {
  name: 'lag',
  what: 'from sending a submission to its webhook at the receiver, at 200 submissions/s',
  async run(bench, report) {
    using meter = await startLagMeter();
    const service = await bench.service({ DATABASE_URL: await bench.databases.create() });
    const { formId } = await service.publish(contactForm(meter.url));
    const target = { port: service.port, formId, perSecond: RATE };

    await meter.send({ ...target, seconds: bench.seconds({ warmingUp: true }) });
    meter.reset();
    const seconds = bench.seconds({ warmingUp: false }) * bench.rounds;
    const sample = await sampled(service, () => meter.send({ ...target, seconds }));

    const { p50Ms, p99Ms, maxMs } = meter.lags();
    report.sample('service, accepting and delivering', sample);
    report.atMost('p50', p50Ms, 8, 'ms');
    report.atMost('p99', p99Ms, 40, 'ms');
    report.atMost('CPU a submission', sample.cpuMicros / 1000, 1, 'ms');
    report.fact('longest', `${maxMs.toFixed(0)} ms`);
  },
};

import type { Bench, Row } from '../support/bench.ts';
import { contactForm } from '../support/form.ts';
import { hammer } from '../support/load.ts';
import { apiKey, type Service, startService } from '../support/service.ts';
import { submissionsTo } from './accept.ts';

export const memoryEmbedded: Row = {
  name: 'memory-embedded',
  what: 'the most memory held by a first and by a later start on the embedded database, and at work on it',
  async run(bench, report) {
    const firsts: number[] = [];
    const laters: number[] = [];
    for (let round = 0; round < bench.rounds; round++) {
      const dataDir = bench.folder();
      firsts.push(await peakOf(bench, { dataDir, count: 100 }));
      laters.push(await peakOf(bench, { dataDir, count: 100 }));
    }
    const many = bench.scaled(50_000);
    const atWork = await peakOf(bench, { dataDir: bench.folder(), count: many });

    report.atMost('first start and 100 submissions, peak', Math.max(...firsts), 500, 'MiB');
    report.atMost('later start and 100 submissions, peak', Math.max(...laters), 400, 'MiB');
    report.fact(
      `${many.toLocaleString('en')} submissions and their export, peak`,
      `${atWork.toFixed(0)} MiB`,
    );
  },
};

/** The most that a service holds from its start until so many submissions are accepted and exported. */
async function peakOf(bench: Bench, { dataDir, count }: { dataDir: string; count: number }): Promise<number> {
  const receivers = await bench.program<{ urls: string[] }>('support/receivers.ts', { count: 1 });
  await using service = await startService({ dataDir, env: {} });
  const { formId } = await service.publish(contactForm(receivers.ready.urls[0] ?? ''));
  await hammer({ ...submissionsTo(formId), port: service.port, connections: 64, count });
  await exportAll(service, formId);
  return service.peakMib();
}

async function exportAll({ port }: Service, formId: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/forms/${formId}/submissions/export?format=csv`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  if (!response.ok || response.body === null) throw new Error(`The export answered ${response.status}`);
  await response.body.pipeTo(new WritableStream());
}

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Bench, Row } from '../support/bench.ts';
import type { BigProject } from '../support/big-project.ts';
import { contactForm } from '../support/form.ts';
import { type LagMeter, startLagMeter } from '../support/lags.ts';
import type { Report } from '../support/report.ts';
import { median, type Sample, sampled, type Turn, takeTurns } from '../support/rounds.ts';
import { objectAt, serviceEnv } from '../support/service.ts';
import { submissionsTo } from './accept.ts';

/** Submissions a second to the small project. */
const RATE = 40;

/** Those to the big one beside everything else that it does. */
const FLOOD = 200;

/** The big one's, before it begins. */
const STORED = 30_000;

/** Turns are longer by this factor: of 400 submissions, four would decide the p99, and one wait for the disk is that many. */
const LONGER = 3;

export const neighbours: Row = {
  name: 'neighbours',
  what: 'submits and deliveries of a small project while a big one searches, lists, exports, erases, replays and floods, beside the small one alone',
  async run(bench, report) {
    await beside(bench, report, 'PostgreSQL', { DATABASE_URL: await bench.databases.create() });
    await beside(bench, report, 'embedded', {});
  },
};

async function beside(bench: Bench, report: Report, engine: string, database: NodeJS.ProcessEnv) {
  using meter = await startLagMeter();
  const env = { ...database, DATA_DIR: bench.folder() };
  const service = await bench.service(env);
  const big = await service.publish(contactForm('http://127.0.0.1:9/'));
  const { webhooks } = await service.call('GET', '/v1/webhooks');
  const webhookId = String(Array.isArray(webhooks) && webhooks[0]?.id);
  await bench.hammered(service, { ...submissionsTo(big.formId), count: bench.scaled(STORED) })({
    warmingUp: false,
  });
  const small = await smallProject(service.port, env, meter);

  const target = { port: service.port, formId: small, perSecond: RATE };
  const send = async (turn: Turn): Promise<Sample> => {
    await meter.send({ ...target, seconds: bench.seconds({ warmingUp: true }) });
    meter.reset();
    const seconds = LONGER * bench.seconds(turn);
    return sampled(service, () => meter.send({ ...target, seconds }));
  };
  const lags: number[] = [];
  const done: Record<string, number> = {};
  const input: BigProject = { port: service.port, formId: big.formId, webhookId, perSecond: FLOOD };
  const turns = await takeTurns(bench.rounds, {
    alone: send,
    async together(turn) {
      await using load = await bench.program('support/big-project.ts', input);
      const sample = await send(turn);
      if (!turn.warmingUp) lags.push(meter.lags().p99Ms);
      for (const [what, count] of Object.entries(await load.ask<Record<string, number>>({})))
        done[what] = (done[what] ?? 0) + count;
      return sample;
    },
  });

  report.fact(
    `${engine}, what the big one did`,
    Object.entries(done)
      .map((each) => each.join(' '))
      .join(', '),
  );
  const p99 = ({ p99Ms }: Sample) => p99Ms;
  report.fact(`${engine}, p99 of a submit alone`, `${turns.typical('alone').p99Ms.toFixed(1)} ms`);
  report.fact(`${engine}, p99 of a submit`, `${turns.typical('together').p99Ms.toFixed(1)} ms`);
  report.atMost(`${engine}, p99 of a submit to that alone`, turns.ratio('together', 'alone', p99), 2);
  report.atMost(`${engine}, p99 of the lag of deliveries`, median(lags), 250, 'ms');
}

/** The id of a form in a project of its own, whose webhook is the meter. */
async function smallProject(port: number, env: { DATA_DIR: string }, meter: LagMeter): Promise<string> {
  const all = serviceEnv({ port, grpcPort: 0, dataDir: env.DATA_DIR, env });
  const command = ['src/cli/main.ts', 'admin', 'keys', 'create', '--project', 'small'];
  const { stdout } = await promisify(execFile)(process.execPath, command, { env: all });
  const headers = { authorization: `Bearer ${stdout.trim()}`, 'content-type': 'application/json' };
  const call = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    const reply: Record<string, unknown> = JSON.parse(await response.text());
    return objectAt(reply, 'form');
  };
  const { id, activate_url } = await call('/api/forms/create', contactForm(meter.url));
  await call(String(activate_url), { email: 'owner@example.com' });
  return String(id);
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { requestBytes } from './connection.ts';
import { contactAnswers } from './form.ts';
import { arrive, type Latencies, type Load, latencies } from './load.ts';

/**
 * Starts a receiver that knows when each submission was sent, and so how long its webhook took. That is
 * more than from the commit on, which nobody outside can see: accepting counts too.
 */
export async function startLagMeter(): Promise<LagMeter> {
  const sentAt: number[] = [];
  const lags = createHistogram();
  let expected = 0;
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

  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    async send({ port, formId, perSecond, seconds }) {
      const load = await arrive({
        port,
        perSecond,
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
      expected += load.units;
      while (lags.count < expected) await new Promise(setImmediate);
      return load;
    },
    reset() {
      lags.reset();
      expected = 0;
    },
    lags: () => latencies(lags),
    [Symbol.dispose]() {
      receiver.close();
      receiver.closeAllConnections();
    },
  };
}

export type LagMeter = Disposable & {
  /** Where the form's webhook is to go. */
  url: string;
  /** Sends submissions, and waits until the webhook of each has come. */
  send(options: { port: number; formId: string; perSecond: number; seconds: number }): Promise<Load>;
  /** Forgets what has come so far. */
  reset(): void;
  lags(): Latencies;
};

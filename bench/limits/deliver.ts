import { randomUUID } from 'node:crypto';
import { Agent, request } from 'undici';
import { signWebhook } from '../../src/domain/delivery/signature.ts';
import { webhookSecret } from '../support/form.ts';
import { startMeter } from '../support/load.ts';
import { serve } from '../support/serve.ts';

/** The least that sending webhooks can cost: undici POSTs with both signatures, without a database. */
serve(async () => {
  const dispatcher = new Agent();
  return { ready: {}, answer: (question: Deliveries) => deliver(dispatcher, question) };
});

async function deliver(dispatcher: Agent, { urls, body, count, connections }: Deliveries) {
  const meter = startMeter();
  let begun = 0;
  const send = async (url: string) => {
    const id = `evt_${randomUUID()}`;
    const response = await request(url, {
      method: 'POST',
      dispatcher,
      headers: {
        'content-type': 'application/json',
        ...signWebhook({ id, body, at: Date.now(), secret: webhookSecret }),
      },
      body,
    });
    await response.body.dump();
    return { status: response.statusCode };
  };
  const run = async () => {
    while (begun < count) {
      const url = urls[begun++ % urls.length] ?? '';
      await meter.time(() => send(url), 200);
    }
  };
  await Promise.all(Array.from({ length: connections }, run));
  return meter.stop();
}

type Deliveries = { urls: string[]; body: string; count: number; connections: number };

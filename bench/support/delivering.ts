import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from './bench.ts';
import { contactAnswers, contactForm, webhookSecret } from './form.ts';
import type { Program } from './process.ts';
import { objectAt, type Service } from './service.ts';

/** Starts a service that delivers to so many receivers, each registered as a webhook; nothing waits yet. */
export async function startDelivering(bench: Bench, count: number, workers: number): Promise<Delivering> {
  const databaseUrl = await bench.databases.create();
  const receivers = await bench.program<{ urls: string[] }>('support/receivers.ts', { count });
  const service = await bench.service({
    DATABASE_URL: databaseUrl,
    DELIVERY_WORKERS: String(workers),
    MAX_WEBHOOKS: String(count + 1),
  });
  const { formId } = await service.publish(contactForm('http://127.0.0.1:9/'));
  const webhooks: { id: string; url: string }[] = [];
  for (const url of receivers.ready.urls) {
    // Each of a form of its own: a few webhooks at most listen to one form.
    const { id } = objectAt(await service.call('POST', '/api/forms/create', contactForm(url)), 'form');
    const webhook = { url, events: ['session.expired'], secret: webhookSecret, form_id: id };
    const created = await service.call('POST', '/v1/webhooks', webhook);
    webhooks.push({ id: String(objectAt(created, 'webhook').id), url });
  }
  const body = JSON.stringify({ id: 'evt_', event: 'submission.created', data: { answers: contactAnswers } });
  return { databaseUrl, receivers, service, seed: { formId, body, webhooks } };
}

/** Counts what comes to the receivers until `enough` says so, and returns the count. */
export async function countReceived(
  receivers: Program<unknown>,
  enough: (seen: number) => boolean,
): Promise<number> {
  let seen = 0;
  while (!enough(seen)) {
    await sleep(20);
    const { received } = await receivers.ask<{ received: number }>({});
    seen += received;
  }
  return seen;
}

export type Delivering = {
  databaseUrl: string;
  receivers: Program<{ urls: string[] }>;
  service: Service;
  /** What deliveries are seeded with. */
  seed: { formId: string; body: string; webhooks: { id: string; url: string }[] };
};

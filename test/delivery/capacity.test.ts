import { describe, expect, it } from 'vitest';
import { ProcessCapacity } from '../../src/delivery/worker/capacity.ts';
import type { Claim } from '../../src/store/deliveries/claimed.ts';

const CONCURRENCY = 64;

describe('the queues of receivers', () => {
  it('send to quick receivers whatever others do not answer', () => {
    const { queues, answer, sent } = openQueues();
    queues.add([aClaim('wh_quick', 'dlv_first')]);
    answer(1);
    queues.add(Array.from({ length: 16 }, (_, n) => aClaim(`wh_silent_${n}`)));

    queues.add(Array.from({ length: 20 }, (_, n) => aClaim('wh_quick', `dlv_${n}`)));

    const quick = sent().filter(({ id }) => !id.includes('silent'));
    expect(sent().length - quick.length).toBe(16);
    // One more with each answer.
    expect(quick).toHaveLength(5);
  });

  it('send to a thousand receivers that have answered as to one', () => {
    const { queues, answer, sent } = openQueues();
    for (let n = 0; n < 1_000; n += 1) {
      queues.add([aClaim(`wh_${n}`)]);
      answer(1);
    }

    queues.add(Array.from({ length: 100 }, (_, n) => aClaim(`wh_${n}`, `dlv_next_${n}`)));

    expect(sent()).toHaveLength(CONCURRENCY);
  });

  it('ask for more once half of what a tenant may have claimed is done, for a claim that is worth its statement', async () => {
    const asked: number[] = [];
    const { queues, answer } = openQueues({ onFreed: () => asked.push(free()) });
    const free = () => queues.free().tenants.find(({ tenant }) => tenant === 'prj_1')?.free ?? 0;
    for (let n = 0; n < 600; n += 1) {
      queues.add([aClaim('wh_quick', `dlv_before_${n}`)]);
      answer(1);
      await new Promise(setImmediate);
    }
    asked.length = 0;
    queues.add(Array.from({ length: queues.free().perTenant }, (_, n) => aClaim('wh_quick', `dlv_${n}`)));
    expect(free()).toBe(0);

    while (asked.length === 0) {
      answer(1);
      await new Promise(setImmediate);
    }

    expect(asked).toEqual([256]);
  });

  it('release what a process stored beyond the bytes it may hold', () => {
    const { queues, released } = openQueues();
    const large = (n: number) => aClaim('wh_1', `dlv_${n}`, 'x'.repeat(4 * 1024 * 1024));

    queues.add(Array.from({ length: 10 }, (_, n) => large(n)));

    expect(released()).toEqual(['dlv_8', 'dlv_9']);
    expect(queues.free()).toMatchObject({ total: 0, bytes: 0 });
  });
});

/** Queues whose sends end when the test answers them, the oldest first. */
function openQueues({ onFreed = () => undefined }: { onFreed?: () => unknown } = {}) {
  const underWay: { id: string; end: (tookMs: number) => void }[] = [];
  const released: string[] = [];
  const queues = new ProcessCapacity({
    concurrency: CONCURRENCY,
    mailConnections: 5,
    send: (claim, onAnswer) =>
      new Promise((resolve) => {
        underWay.push({
          id: claim.id,
          end: (tookMs) => {
            onAnswer(tookMs);
            resolve(true);
          },
        });
      }),
    release: async ({ id }) => void released.push(id),
    onFreed,
  });
  return {
    queues,
    sent: () => underWay,
    released: () => released,
    answer: (tookMs: number) => underWay.shift()?.end(tookMs),
  };
}

function aClaim(receiver: string, id = `dlv_${receiver}`, body = '{}'): Claim {
  return {
    id,
    lease: 'lease',
    projectId: 'prj_1',
    tenant: 'prj_1',
    formId: 'form_1',
    kind: 'submission.created',
    receiver,
    step: 0,
    postponedFrom: null,
    traceparent: null,
    content: { channel: 'webhook', url: 'https://example.com/', eventId: 'evt_1', body, webhook: null },
  };
}

import { constants, setPriority } from 'node:os';
import { submissionRequest } from './form.ts';
import { arrive } from './load.ts';
import { serve } from './serve.ts';
import { apiKey } from './service.ts';

/**
 * What a big project does all at once: it searches and lists its submissions, exports them, erases a value that none
 * of them has, sends its failed deliveries again, and takes submissions. Asked anything, it ends and answers how often
 * each was done, and how often it failed.
 *
 * It stands for clients on other machines, so that the service and its database have this one first.
 */
serve(async ({ port, formId, webhookId, perSecond }: BigProject) => {
  setPriority(constants.priority.PRIORITY_LOW);
  let stopped = false;
  const done: Record<string, number> = { failed: 0 };
  const form = `/v1/forms/${formId}/submissions`;

  const call = async (name: string, method: string, path: string, body?: object): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const counted = response.ok ? name : 'failed';
    done[counted] = (done[counted] ?? 0) + 1;
    return text;
  };
  const again = async (times: number, work: () => Promise<unknown>) => {
    const one = async () => {
      while (!stopped) await work();
    };
    await Promise.all(Array.from({ length: times }, one));
  };
  let cursor: unknown;
  const erase = async () => {
    const reply = JSON.parse(
      await call('erased', 'POST', '/v1/erasures', { value: 'nobody@example.com', cursor }),
    );
    cursor = reply.next_cursor ?? undefined;
  };
  const flood = submissionRequest(`/api/forms/${formId}/submissions`);
  const running = Promise.all([
    again(4, () => call('searched', 'GET', `${form}?filter[company]=nobody&limit=100`)),
    again(4, () => call('listed', 'GET', `${form}?limit=100&total=true`)),
    again(2, () => call('exported', 'GET', `${form}/export?format=csv`)),
    again(2, erase),
    again(2, () => call('replayed', 'POST', `/v1/webhooks/${webhookId}/replay`, { status: 'failed' })),
    arrive({ port, perSecond, seconds: 3600, connections: 64, request: () => flood, stopped: () => stopped }),
  ]);
  return {
    ready: {},
    answer: async () => {
      stopped = true;
      const [, , , , , { units }] = await running;
      return { ...done, submitted: units };
    },
  };
});

export type BigProject = { port: number; formId: string; webhookId: string; perSecond: number };

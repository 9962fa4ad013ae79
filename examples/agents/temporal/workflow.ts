import { condition, defineSignal, proxyActivities, setHandler, workflowInfo } from '@temporalio/workflow';
import type * as activities from './activities.ts';

/** Sent by whoever gets the session's callback. */
export const answered = defineSignal<[{ outcome: string; yes: boolean }]>('answered');

const { askPerson } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** Asks a person, and goes on when the callback has sent the signal, days later too. */
export async function release(version: string): Promise<string> {
  let end: { outcome: string; yes: boolean } | undefined;
  setHandler(answered, (given) => {
    end = given;
  });
  await askPerson(workflowInfo().workflowId, `May I deploy ${version}?`);
  await condition(() => end !== undefined);
  return end?.outcome === 'submitted' && end.yes ? `deployed ${version}` : `not deployed: ${end?.outcome}`;
}

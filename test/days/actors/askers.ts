import type { Random } from '../world/types.ts';
import { again, HOUR_MS, insist, MINUTE_MS, newKey, pause, type Town } from './town.ts';

/** A program that asks people, who are mailed and reminded, and is called back: they answer, decline or do nothing. */
export async function ask(town: Town, actor: string, random: Random): Promise<void> {
  const asking: Promise<void>[] = [];
  await again(town, random, 16, async () => {
    asking.push(askOnce(town, actor, random.fork(random.text(8))));
  });
  await Promise.all(asking);
}

async function askOnce(town: Town, actor: string, random: Random): Promise<void> {
  const { url } = town.world.receivers.open(`ask-${random.text(8)}`);
  const body = {
    definition: { fields: [{ id: 'ok', label: 'Shall we?', type: 'boolean' }] },
    expires_in: random.whole(1, 8) * 3600,
    allow_decline: true,
    notify: { email: `asked-${random.text(8)}@people.example`, remind_after: [1800, 3 * 3600] },
    callback: { url, secret: `secret-${random.text(24)}` },
  };
  const call = { method: 'POST', path: '/v1/sessions', headers: newKey(random), body };
  const made = await insist(town, { actor, operation: 'ask', random }, call);
  if (made?.status !== 201) return;
  const session = `/v1/sessions/${made.json.session.id}`;
  const end = random.pick([
    { operation: 'submit asked', path: `${session}/submit`, body: { answers: { ok: true } } },
    { operation: 'decline asked', path: `${session}/decline`, body: { reason: 'Not mine' } },
    { operation: 'cancel asked', path: `${session}/cancel` },
    undefined,
  ]);
  await pause(town, random.whole(MINUTE_MS, 9 * HOUR_MS));
  if (end === undefined) return;
  const { operation, ...sent } = end;
  await insist(town, { actor, operation, random }, { method: 'POST', ...sent });
}

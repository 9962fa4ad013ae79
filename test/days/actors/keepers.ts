import type { Random } from '../world/types.ts';
import {
  again,
  DAY_MS,
  HOUR_MS,
  insist,
  MINUTE_MS,
  newKey,
  pause,
  pickOr,
  type Town,
  type TownHook,
} from './town.ts';
import { submitSomewhere } from './visitors.ts';

/** A key that registers webhooks, changes their secrets, turns them off and on, and replays. */
export async function keepWebhooks(town: Town, actor: string, random: Random): Promise<void> {
  for (let count = 2; count > 0; count--) await register(town, actor, random);
  await again(town, random, 16, async () => {
    const hook = pickOr(
      random,
      town.hooks.filter(({ state }) => state === 'on'),
    );
    const others = town.hooks.filter(({ state }) => state === 'off' || state === 'gone');
    if (hook === undefined) return register(town, actor, random);
    const back = random.chance(0.4) ? pickOr(random, others) : undefined;
    if (back !== undefined) return turnOn(town, { actor, random, hook: back });
    const change = random.pick([rotate, rotate, rotate, turnOff, replay, replay, beGone, remove, test]);
    await change(town, { actor, random, hook });
    if (town.hooks.filter(({ state }) => state === 'on').length < 3) await register(town, actor, random);
  });
}

async function register(town: Town, actor: string, random: Random): Promise<void> {
  const receiver = town.world.receivers.open(`hook-${random.text(8)}`);
  const reply = await insist(
    town,
    { actor, operation: 'register webhook', random },
    {
      method: 'POST',
      path: '/v1/webhooks',
      headers: newKey(random),
      body: {
        url: receiver.url,
        events: ['submission.created', 'submission.deleted', 'session.expired'],
        secret: `secret-${random.text(24)}`,
      },
    },
  );
  if (reply?.status === 201) town.hooks.push({ id: reply.json.webhook.id, receiver, state: 'on' });
}

async function rotate(town: Town, { actor, random, hook }: Keeping): Promise<void> {
  const delay = random.chance(0.4) ? { effective_in: random.whole(60, 4 * 3600) } : {};
  const path = `/v1/webhooks/${hook.id}/rotate-secret`;
  await town.world.call(actor, 'rotate secret', { method: 'POST', path, body: delay });
}

async function turnOff(town: Town, { actor, random, hook }: Keeping): Promise<void> {
  hook.state = 'off';
  const path = `/v1/webhooks/${hook.id}`;
  await insist(
    town,
    { actor, operation: 'turn off', random },
    { method: 'PATCH', path, body: { active: false } },
  );
}

async function turnOn(town: Town, { actor, random, hook }: Keeping): Promise<void> {
  hook.receiver.always(null);
  const path = `/v1/webhooks/${hook.id}`;
  const call = { method: 'PATCH', path, body: { active: true } };
  const reply = await insist(town, { actor, operation: 'turn on', random }, call);
  if (reply?.status === 200) hook.state = 'on';
}

async function beGone(_: Town, { hook }: Keeping): Promise<void> {
  hook.state = 'gone';
  hook.receiver.always(410);
}

async function remove(town: Town, { actor, random, hook }: Keeping): Promise<void> {
  hook.state = 'deleted';
  const call = { method: 'DELETE', path: `/v1/webhooks/${hook.id}` };
  await insist(town, { actor, operation: 'delete webhook', random }, call);
}

async function test(town: Town, { actor, hook }: Keeping): Promise<void> {
  await town.world.call(actor, 'test webhook', { method: 'POST', path: `/v1/webhooks/${hook.id}/test` });
}

async function replay(town: Town, { actor, random, hook }: Keeping): Promise<void> {
  const list = { method: 'GET', path: `/v1/webhooks/${hook.id}/deliveries?limit=20` };
  const listed = await town.world.call(actor, 'list deliveries', list);
  const deliveries: { id: string; status: string }[] = listed?.json?.deliveries ?? [];
  const delivery = pickOr(
    random,
    deliveries.filter(({ status }) => status !== 'pending'),
  );
  if (delivery === undefined) return;
  const path = random.chance(0.3)
    ? `/v1/webhooks/${hook.id}/replay`
    : `/v1/webhook-deliveries/${delivery.id}/replay`;
  await town.world.call(actor, 'replay', { method: 'POST', path });
}

/** A key that sends the mails of a form again, one or all that failed. */
export async function replayMails(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 4, async () => {
    const form = pickOr(
      random,
      town.forms.filter(({ state, kind }) => state === 'open' && kind !== 'hooked'),
    );
    if (form === undefined) return;
    const list = { method: 'GET', path: `/v1/forms/${form.id}/deliveries?limit=20` };
    const listed = await town.world.call(actor, 'list mails', list);
    const mails: { id: string; status: string; event: string }[] = listed?.json?.deliveries ?? [];
    const sent = pickOr(
      random,
      mails.filter(({ status, event }) => event === 'owner' && status !== 'pending'),
    );
    if (sent === undefined) return;
    const path = random.chance(0.5)
      ? `/v1/forms/${form.id}/replay`
      : `/v1/webhook-deliveries/${sent.id}/replay`;
    await town.world.call(actor, 'replay mail', { method: 'POST', path });
  });
}

/** A key that makes other keys, which make some, and revokes them; all are tried again then. */
export async function rotateKeys(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 3, async () => {
    const made = await insist(
      town,
      { actor, operation: 'make key', random },
      {
        method: 'POST',
        path: '/v1/keys',
        headers: newKey(random),
        body: { name: random.text(6), scopes: ['forms:read', 'submissions:read', 'keys:write'] },
      },
    );
    if (made?.status !== 201) return;
    const { secret, key } = made.json;
    const child = await town.world.call(actor, 'make key', {
      method: 'POST',
      path: '/v1/keys',
      key: secret,
      body: { name: random.text(6), scopes: ['forms:read'] },
    });
    const read = async () => {
      for (const shown of [secret, child?.json?.secret ?? secret])
        await town.world.call(actor, 'read by key', { method: 'GET', path: '/v1/forms', key: shown });
    };
    await read();
    await pause(town, random.whole(MINUTE_MS, 2 * HOUR_MS));
    const call = { method: 'DELETE', path: `/v1/keys/${key.id}?children=revoke` };
    await insist(town, { actor, operation: 'revoke key', random }, call);
    await pause(town, random.whole(MINUTE_MS, HOUR_MS));
    await read();
  });
}

/** Somebody who erases: one submission, or all of a person by a value in which they are named. */
export async function erase(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 16, async () => {
    if (random.chance(0.5)) return erasePerson(town, actor, random);
    const erasable = town.submissions.filter(
      ({ form }) => form.kind !== 'limited' && form.state !== 'deleted',
    );
    const withFile = erasable.filter(({ uploads }) => uploads.length > 0);
    const submission = pickOr(random, random.chance(0.5) && withFile.length > 0 ? withFile : erasable);
    if (submission === undefined) return;
    town.submissions.splice(town.submissions.indexOf(submission), 1);
    // What is to be removed while the store is away is seldom by chance alone.
    if (submission.uploads.length > 0 && random.chance(0.3)) {
      town.world.faults.begin('store-away', '*', random.whole(MINUTE_MS / 6, 5 * MINUTE_MS));
    }
    const call = { method: 'DELETE', path: `/v1/submissions/${submission.id}` };
    await insist(town, { actor, operation: 'erase', random }, call);
  });
}

async function erasePerson(town: Town, actor: string, random: Random): Promise<void> {
  const person = pickOr(
    random,
    town.people.filter(({ isGone, answers }) => !isGone && answers > 0),
  );
  if (person === undefined) return;
  person.isGone = true;
  await pause(town, random.whole(5 * MINUTE_MS, HOUR_MS));
  const value = person.way === 'number' ? String(person.number) : person.email;
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const body = cursor === undefined ? { value } : { value, cursor };
    const call = { method: 'POST', path: '/v1/erasures', body };
    const reply = await insist(town, { actor, operation: 'erase value', random }, call);
    if (reply?.status !== 200) return;
    cursor = reply.json.next_cursor;
  }
}

/** A key that reads what is there, old things above all: they are kept as long as promised, and no longer. */
export async function read(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 24, async () => {
    const kept = town.submissions.filter(({ form }) => form.kind === 'kept');
    const submission = pickOr(random, random.chance(0.7) && kept.length > 0 ? kept : town.submissions);
    if (submission === undefined) return;
    const path = `/v1/submissions/${submission.id}`;
    await town.world.call(actor, 'read', { method: 'GET', path });
    const ageMs = town.world.now() - submission.at;
    if (ageMs > 8 * DAY_MS) town.submissions.splice(town.submissions.indexOf(submission), 1);
  });
}

/** Whoever sets the clock of the machine to another week, for some minutes. */
export async function setClocks({ world, ...town }: Town, random: Random): Promise<void> {
  if (!random.chance(0.4)) return;
  await pause({ world, ...town }, (world.endsAt - world.now()) * random.number());
  const days = random.whole(3, 31) * (random.chance(0.6) ? 1 : -1);
  world.faults.begin('clock-off', String(days * DAY_MS), random.whole(2 * MINUTE_MS, 20 * MINUTE_MS));
  if (random.chance(0.5)) return;
  // So that there are retries in this time.
  world.faults.begin('5xx', '*', 2 * MINUTE_MS);
  world.faults.begin('mail-4xx-data', '*', 2 * MINUTE_MS);
  for (let count = 3; count > 0; count--) await submitSomewhere({ world, ...town }, 'clock setter', random);
}

type Keeping = { actor: string; random: Random; hook: TownHook };

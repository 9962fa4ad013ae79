import type { Call, Random, Receiver, Reply, World } from '../world/types.ts';

/** What the actors of one run know together: the forms they made, and what was answered to whom. */
export type Town = {
  world: World;
  beganAt: number;
  forms: TownForm[];
  hooks: TownHook[];
  submissions: TownSubmission[];
  /** People, who answer several times; of some all is erased, and they answer no more. */
  people: Person[];
  /** Calls by links that were used, and by sessions that end by themselves. */
  ended: { actor: string; call: Call }[];
};

export type TownForm = {
  id: string;
  kind: FormKind;
  definition: Record<string, unknown>;
  /** The path that publishes it. */
  activateUrl: string;
  isKeyless: boolean;
  owner: string;
  isConfirmed: boolean;
  state: 'open' | 'closed' | 'archived' | 'deleted';
};

export type FormKind = 'mailed' | 'hooked' | 'limited' | 'kept' | 'partial' | 'keyless';

export type TownHook = { id: string; receiver: Receiver; state: 'on' | 'off' | 'gone' | 'deleted' };

type TownSubmission = { id: string; form: TownForm; at: number; uploads: string[] };

/** `way` is where they are named, beside their address in the field for it. */
export type Person = {
  email: string;
  number: number;
  way: 'email' | 'nickname' | 'number' | 'source' | 'file name' | 'idempotency key';
  isGone: boolean;
  answers: number;
};

/**
 * Calls until a reply comes that says whether it was done, with the same idempotency key: what has no reply, or asks to
 * come back, is repeated after a while. Undefined if there was none.
 */
export async function insist(
  { world }: Town,
  { actor, operation, random }: Actor,
  call: Call,
  tries = 12,
): Promise<Reply | undefined> {
  let reply: Reply | undefined;
  for (let attempt = 0; attempt < tries; attempt++) {
    reply = await world.call(actor, operation, call);
    if (reply !== undefined && reply.status !== 503 && reply.status !== 429) return reply;
    await world.sleep(random.whole(1_000, 20_000 * (attempt + 1)));
  }
  return reply;
}

/** A key for `Idempotency-Key`. */
export function newKey(random: Random): { 'idempotency-key': string } {
  return { 'idempotency-key': `key-${random.text(16)}` };
}

/** Waits, but not beyond the end of the days. */
export async function pause({ world }: Town, ms: number): Promise<void> {
  await world.sleep(Math.max(1, Math.min(ms, world.endsAt - world.now())));
}

/** Waits until a link has come by mail, for so long at most. */
export async function awaitLink(
  { world }: Town,
  address: string,
  pattern: RegExp,
  withinMs: number,
): Promise<string | undefined> {
  const until = Math.min(world.now() + withinMs, world.endsAt);
  for (;;) {
    const link = world.mailbox.linkIn(address, pattern);
    if (link !== undefined || world.now() >= until) return link;
    await world.sleep(Math.min(10 * MINUTE_MS, Math.max(1, until - world.now())));
  }
}

/** Signs an owner in by a mailed link. Returns the session, which is tried again later. */
export async function signIn(town: Town, owner: string, random: Random): Promise<string | undefined> {
  const actor = `owner ${owner}`;
  const rpc = (method: string, body: object): Call => ({
    method: 'POST',
    path: `/headlessforms.v1.OwnersService/${method}`,
    key: null,
    body,
  });
  const asking = rpc('RequestSignIn', { email: owner });
  const asked = await insist(town, { actor, operation: 'ask to sign in', random }, asking);
  if (asked?.status !== 200) return undefined;
  const link = await awaitLink(town, owner, /\/owner\/sign-in\/[\w.-]+/, 10 * MINUTE_MS);
  const token = link?.split('/').at(-1);
  if (token === undefined) return undefined;
  const opening = rpc('SignIn', { token });
  const opened = await insist(town, { actor, operation: 'sign in', random }, opening);
  const session = opened?.json?.sessionToken;
  town.ended.push({ actor, call: opening });
  if (typeof session !== 'string') return undefined;
  town.ended.push({ actor, call: { ...rpc('GetOwner', {}), key: session } });
  return session;
}

/** Acts about so many times until the days end, however long they are. */
export async function again(
  { world, beganAt }: Town,
  random: Random,
  times: number,
  act: () => Promise<void>,
): Promise<void> {
  const meanMs = (world.endsAt - beganAt) / times;
  for (;;) {
    const pauseMs = Math.ceil(meanMs * (0.1 - 0.9 * Math.log(1 - random.number())));
    if (world.now() + pauseMs >= world.endsAt) return;
    await world.sleep(pauseMs);
    await act();
  }
}

export function pickOr<T>(random: Random, from: readonly T[]): T | undefined {
  return from.length === 0 ? undefined : random.pick(from);
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export type Actor = { actor: string; operation: string; random: Random };

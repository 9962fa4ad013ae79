import { createClient } from '@connectrpc/connect';
import { MailService } from '../../../gen/headlessforms/v1/mail_pb.js';
import { type Scope, scopes } from '../../../src/domain/scopes.ts';
import { givenKey, givenOwnedForm, type World } from './world.ts';

/** The scopes of keys that hold each right, as the threat model has them. */
const scopesOf: Record<Right, readonly Scope[]> = {
  reading: ['submissions:read', 'webhooks:write'],
  file: ['submissions:read'],
  deletion: ['submissions:delete'],
  session: ['sessions:read', 'sessions:write', 'webhooks:write'],
};

/** Of an actor's key. */
export const LIFE_SECONDS = 3600;

export const keysWithOneScope = scopes.map((scope) => keyWith([scope]));

export const keysWithTwoScopes = pairsOf(scopes.filter((scope) => scope !== '*')).map(keyWith);

/**
 * Keys of which each two scopes are together in one, that give no more rights than these two: as few as find what
 * `keysWithTwoScopes` do. More scopes never allow less, so those that give no right over answers are in one key.
 */
const giving = [...new Set(Object.values(scopesOf).flat())];
const others = scopes.filter((scope) => scope !== '*' && !giving.includes(scope));
export const keysWithSomeScopes = [
  keyWith(others),
  ...giving.map((scope) => keyWith([scope, ...others])),
  ...pairsOf(giving).map(keyWith),
];

/** As `keysWithOneScope`, with all other scopes. */
export const keysWithAllButOne = scopes.filter((scope) => scope !== '*').map(keyWithAllBut);

/** Whom each call answers that answers anybody. */
export const everybody: Actor = {
  name: 'everybody',
  holds: ['reading', 'deletion', 'session', 'file'],
  async join(world) {
    const { secret } = await givenKey(world.admin, { scopes: ['*'], project: world.name });
    return {
      credentials: [secret, await world.signIn(world.owner), undefined],
      tokens: [world.fileToken()],
      sessionIds: [world.sessionId, world.endedSessionId],
    };
  },
};

export const otherActors: Actor[] = [
  {
    ...keyWith(['forms:read', 'forms:write', 'sessions:read', 'sessions:write']),
    name: 'the key of an agent',
  },
  { name: 'nobody', holds: [], join: async () => ({ credentials: [undefined] }) },
  {
    name: 'a key of another project',
    holds: [],
    async join({ services }) {
      return { credentials: [await services.givenKey()] };
    },
  },
  {
    name: 'a key whose maker was revoked',
    holds: [],
    async join({ services, admin, name: project }) {
      const maker = await givenKey(admin, { scopes: ['*'], project });
      const child = await givenKey(services.as(maker.secret), { scopes: ['*'], project });
      await services.keys.deleteKey({ keyId: maker.id, revokeChildren: true }, authorized(maker.secret));
      return { credentials: [child.secret] };
    },
  },
  {
    name: 'the owner',
    holds: ['reading', 'deletion', 'file'],
    async join(world) {
      const confirmation = await world.mailedLink('confirm-owner', world.owner);
      return {
        credentials: [await world.signIn(world.owner)],
        tokens: [confirmation, world.fileToken()],
      };
    },
  },
  {
    name: 'the owner of another form',
    holds: [],
    async join(world) {
      const address = `other-${world.owner}`;
      await givenOwnedForm(world.services, world.admin, address);
      return { credentials: [await world.signIn(address)] };
    },
  },
  {
    name: 'a former owner',
    holds: [],
    async join(world) {
      const { owner, formId, services } = world;
      const session = await world.signIn(owner);
      const tokens = [
        await world.mailedLink('confirm-owner', owner),
        await world.mailedLink('change-owner', owner),
        world.fileToken(),
      ];
      const next = `next-${owner}`;
      const owners = await world.owners(owner);
      await owners.addFormRecipient({ formId, email: `friend-${owner}` });
      tokens.push(await world.mailedLink('confirm-recipient', `friend-${owner}`));
      await owners.offerOwnedForm({ formId, email: next });
      const mail = createClient(MailService, services.as());
      await mail.followMailLink({ token: await world.mailedLink('change-owner', next) });
      return { credentials: [session, await world.signIn(owner)], tokens };
    },
  },
  {
    // What was mailed to them stays theirs.
    name: 'a recipient',
    holds: ['file'],
    async join(world) {
      const { owner, formId, services } = world;
      const address = `friend-${owner}`;
      await (await world.owners(owner)).addFormRecipient({ formId, email: address });
      const token = await world.mailedLink('confirm-recipient', address);
      await createClient(MailService, services.as()).followMailLink({ token });
      return {
        credentials: [undefined, await world.signIn(address)],
        tokens: [token, await world.mailedLink('stop', address), world.fileToken()],
      };
    },
  },
  {
    name: 'a recipient who was removed',
    holds: ['file'],
    async join(world) {
      const { owner, formId } = world;
      const email = `friend-${owner}`;
      const owners = await world.owners(owner);
      await owners.addFormRecipient({ formId, email });
      const tokens = [await world.mailedLink('confirm-recipient', email), world.fileToken()];
      await owners.removeFormRecipient({ formId, email });
      return { credentials: [undefined, await world.signIn(email)], tokens };
    },
  },
  {
    name: 'a person with the link of a session',
    holds: ['session'],
    join: async ({ sessionId }) => ({ credentials: [undefined], sessionIds: [sessionId] }),
  },
];

function keyWith(held: readonly Scope[]): Actor {
  return {
    name: `a key with ${held.join(' and ')}`,
    scopes: held,
    holds: heldBy(held),
    async join({ admin, name: project }) {
      const expiresIn = { seconds: BigInt(LIFE_SECONDS) };
      const { secret, id } = await givenKey(admin, { scopes: [...held], project, expiresIn });
      return { credentials: [secret], keyIds: [id] };
    },
  };
}

function keyWithAllBut(left: Scope): Actor {
  const held = scopes.filter((scope) => scope !== '*' && scope !== left);
  return { ...keyWith(held), name: `a key with all scopes but ${left}` };
}

/** What the scopes of a key let it see, send and delete, by `scopesOf`. */
function heldBy(held: readonly Scope[]): Right[] {
  return (Object.keys(scopesOf) as Right[]).filter(
    (right) => held.includes('*') || scopesOf[right].some((scope) => held.includes(scope)),
  );
}

function pairsOf<T>(items: readonly T[]): [T, T][] {
  return items.flatMap((left, index) => items.slice(index + 1).map((right): [T, T] => [left, right]));
}

function authorized(key: string) {
  return { headers: { authorization: `Bearer ${key}` } };
}

/** `reading`: to get answers, earlier ones or those to come. `file`: to read the file of one. */
export type Right = 'reading' | 'deletion' | 'session' | 'file';

/** Who calls, and what they hold: no call of theirs shows or deletes more, or gives anybody more. */
export type Actor = {
  name: string;
  /** Of a key. */
  scopes?: readonly Scope[];
  holds: readonly Right[];
  /** Lets them into a world. */
  join: (world: World) => Promise<Party>;
};

/** What an actor, and whom they gave something, can show: keys and owners' sessions, links, and of its keys the ids and the scopes. */
export type Party = {
  credentials: (string | undefined)[];
  tokens?: string[];
  sessionIds?: string[];
  keyIds?: string[];
  scopes?: string[];
};

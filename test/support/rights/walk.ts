import {
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  isMessage,
  type Message,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { CreateKeyResponseSchema } from '../../../gen/headlessforms/v1/keys_pb.js';
import { isWithinScopes, policies, policyOf } from '../../../src/domain/methods.ts';
import type { TestServices } from '../services.ts';
import { type Actor, LIFE_SECONDS, type Party, type Right } from './actors.ts';
import { countRequests, requestOf } from './requests.ts';
import { rightsUsed, type UsedRight } from './rights.ts';
import { eve, givenWorld, marks, type World } from './world.ts';

/** The RPCs of the contract; gRPC's health and reflection know of no forms. */
export const methods = [...policies.keys()].filter(({ parent }) =>
  parent.typeName.startsWith('headlessforms.'),
);

/**
 * Lets an actor make every call with everything it can show, then every one after those that gave it something, and so
 * on, up to `depth` calls that did. A call that is refused or leaves its rights as they were ends its branch, and so
 * does one that leads to rights that another led to. Returns the ways to what the actor does not hold.
 *
 * What the actor may see anyway is not asked for, unless `onUse` wants to know which call shows or deletes what. Nor is
 * what the gate has refused to a key of the same scopes, since it knows nothing else of a call, nor what another key of
 * the party may do in the same way.
 */
export async function walk(
  services: TestServices,
  actor: Actor,
  { depth, onUse }: { depth: number; onUse?: (method: DescMethod, used: Gain[]) => void },
): Promise<string[]> {
  const found: string[] = [];
  const seen = new Set<string>();
  for (let paths: Step[][] = [[]], length = 0; length < depth && paths.length > 0; length += 1) {
    const longer: Step[][] = [];
    for (const path of paths) {
      let visit = await follow(services, actor, path);
      const { standing } = visit;
      const before = rightsOf(visit);
      for (const step of stepsOf(visit, onUse === undefined ? actor.holds : [])) {
        const { shown, gained } = await take(visit, step);
        onUse?.(step.method, visit.facts.includes('gone') ? [...shown, 'deletion'] : shown);
        const excess = [...shown, ...gained].filter((right) => !mayHold(actor, right));
        const way = [...path, step].map(nameOf).join(', ');
        if (excess.length > 0) found.push(`${actor.name}: ${way}: ${excess.join()}`);
        const rights = rightsOf(visit);
        if (rights !== before && excess.length === 0 && !seen.has(rights)) longer.push([...path, step]);
        seen.add(rights);
        if (rights !== before || visit.standing !== standing) visit = await follow(services, actor, path);
      }
    }
    paths = longer;
  }
  return found;
}

function mayHold({ holds, scopes }: Actor, gain: Gain): boolean {
  return holds.some((right) => right === gain) || (gain === 'more' && scopes?.includes('*') === true);
}

/** A new world after some calls. */
async function follow(services: TestServices, actor: Actor, path: readonly Step[]): Promise<Visit> {
  const world = await givenWorld(services);
  const joined = await actor.join(world);
  const party = { tokens: [], sessionIds: [], keyIds: [], ...joined, scopes: [...(actor.scopes ?? [])] };
  const visit: Visit = { world, party, facts: [], standing: '', kinds: new Map() };
  const [first] = joined.credentials;
  if (actor.scopes !== undefined && first !== undefined)
    visit.kinds.set(first, { scopes: actor.scopes, alike: alikeIn(world.name, LIFE_SECONDS) });
  Object.assign(visit, await observe(visit));
  for (const step of path) await take(visit, step);
  return visit;
}

/** Every call with everything that a party can show; but those that use rights that it holds, and delete nothing. */
function stepsOf({ world, party, kinds, standing }: Visit, held: readonly Right[]): Step[] {
  const called = methods.filter((method) => {
    const used = usedBy(method);
    return used.length === 0 || used.includes('deletion') || !used.every((right) => held.includes(right));
  });
  const known = new Set<string>();
  return party.credentials.flatMap((secret = '', credential) => {
    const kind = kinds.get(secret);
    const name = kind && `${kind.scopes.join()} ${kind.alike}`;
    // While all keys of the party work.
    if (name !== undefined && known.has(name) && standing.endsWith(' 0')) return [];
    if (name !== undefined) known.add(name);
    return called.flatMap((method) =>
      kind !== undefined && refusedByGate.has(refusalOf(kind, method))
        ? []
        : Array.from({ length: countRequests(method, world, party) }, (__, request) => ({
            credential,
            method,
            request,
          })),
    );
  });
}

function alikeIn(project: string | undefined, seconds: number): string {
  return `${project} ${Math.round(seconds / 60)}`;
}

/** What the gate has refused to keys, by their scopes. */
const refusedByGate = new Set<string>();

function refusalOf({ scopes }: KeyKind, { parent, name }: DescMethod): string {
  return `${scopes.join()} ${parent.name}.${name}`;
}

/** Whether the gate refuses calls of a method to keys with these scopes, whatever they hold. */
function isRefusedByGate({ scopes }: KeyKind, method: DescMethod): boolean {
  const policy = policyOf(method);
  return policy.owner !== undefined || !isWithinScopes(policy, scopes);
}

/** The rights that an RPC uses by the table. */
export function usedBy({ parent, localName }: DescMethod): UsedRight[] {
  const { none: _, ...rows } = rightsUsed[parent.name] ?? {};
  return (Object.keys(rows) as UsedRight[]).filter((right) => rows[right]?.split(/\s+/).includes(localName));
}

/** Makes a call, and returns what its reply shows, and what is given since. */
async function take(
  visit: Visit,
  { credential, method, request }: Step,
): Promise<Record<'shown' | 'gained', Gain[]>> {
  const { world, party } = visit;
  const message = requestOf(method, request, world, party);
  const secret = party.credentials[credential];
  const replies = await callOf(world.services, secret, method, message);
  if (replies === undefined) {
    const kind = visit.kinds.get(secret ?? '');
    if (kind !== undefined && isRefusedByGate(kind, method)) refusedByGate.add(refusalOf(kind, method));
    return { shown: [], gained: [] };
  }
  learn(visit, replies);
  if (method.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS) Object.assign(visit, await observe(visit));
  return { shown: marksIn(replies), gained: visit.facts.flatMap((fact) => givenBy[fact]) };
}

/** The replies of a call; undefined if it was refused. Throws on faults of the service. */
async function callOf(
  services: TestServices,
  credential: string | undefined,
  method: DescMethod,
  request: Message,
): Promise<Message[] | undefined> {
  const transport = services.as(credential);
  try {
    if (isUnary(method)) {
      const reply = await transport.unary(method, undefined, undefined, undefined, request);
      return [reply.message];
    }
    const ended = new AbortController();
    const stream = await transport.stream(
      method as DescMethodStreaming,
      ended.signal,
      undefined,
      undefined,
      only(request),
    );
    const replies: Message[] = [];
    for await (const message of stream.message) {
      replies.push(message);
      // Streams of events begin with a message without one, and go on.
      if (replies.length === 2) break;
    }
    ended.abort();
    return replies;
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.Internal || code === Code.Unknown) throw error;
    return undefined;
  }
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}

async function* only(request: Message) {
  yield request;
}

function marksIn(replies: Message[]): Gain[] {
  const text = textOf(replies);
  return (Object.keys(marks) as (keyof typeof marks)[]).filter((right) => text.includes(marks[right]));
}

/** What replies give their caller to show from then on. */
function learn({ party, kinds }: Visit, replies: Message[]): void {
  for (const [id] of textOf(replies).matchAll(/sess_\w+/g))
    if (!party.sessionIds.includes(id)) party.sessionIds.push(id);
  for (const reply of replies) {
    if (!isMessage(reply, CreateKeyResponseSchema)) continue;
    party.credentials.push(reply.secret);
    const { id = '', scopes = [], project, expireTime } = reply.key ?? {};
    party.keyIds.push(id);
    kinds.set(reply.secret, {
      scopes,
      alike: alikeIn(project, Number(expireTime?.seconds) - Date.now() / 1000),
    });
  }
}

function textOf(replies: Message[]): string {
  return JSON.stringify(replies, function (this: Record<string, unknown>, key, value) {
    // Of bytes the value is a copy in numbers.
    const bytes = this[key];
    if (bytes instanceof Uint8Array) return Buffer.from(bytes).toString('utf8');
    return typeof value === 'bigint' ? String(value) : value;
  });
}

/** What became of the form's answers and of rights over them, as the database says it. */
async function observe({ world, party }: Visit): Promise<Pick<Visit, 'facts' | 'standing'>> {
  const { services, adminKey, ...names } = world;
  const given = { ...names, ...eve, adminKeyId: adminKey.id, keyIds: party.keyIds };
  const [row = {}] = await services.database.select(observation, [JSON.stringify(given)]);
  const facts = (Object.keys(givenBy) as Fact[]).filter((fact) => row[fact] === true);
  return { facts, standing: String(row.standing) };
}

const observation = `select f.owner_email = address or f.pending_owner_email = address as owned,
    exists (select from webhooks h where h.url = given.url and h.active and h.deleted_at is null
      and (h.form_id = f.id or h.form_id is null and h.project_id = f.project_id)) as hooked,
    strpos(v.definition::text, address) + strpos(v.definition::text, given.url) > 0
      or exists (select from mail_recipients r where r.form_id = f.id and r.address = given.address) as mailed,
    v.definition->'settings'->'retentionDays' is not null as shortened,
    not exists (select from submissions where id = "submissionId")
      or not exists (select from uploads where id = "uploadId")
      or f.deleted_at is not null as gone,
    not exists (select from api_keys where id = "adminKeyId") as revoked,
    exists (select from api_keys k join api_keys maker on maker.id = k.created_by where maker.id = any("keyIds")
      and (coalesce(k.expires_at, 'infinity') > maker.expires_at or not '*' = any(maker.scopes)
        and (not k.scopes <@ maker.scopes or k.project_id <> maker.project_id))) as exceeded,
    concat_ws(' ', f.status, f.closed_at is null, s.submission_id is null, s.cancelled_at is null, s.declined_at is null,
      s.partial_answers::text, w.active and w.deleted_at is null,
      (select count(*) from owner_sessions o where strpos(o.address, given.name) > 0),
      (select count(*) from unnest("keyIds") as k(id) where id not in (select id from api_keys))) as standing
  from json_to_record($1::json) as given(address text, url text, name text, "formId" text, "sessionId" text,
      "submissionId" text, "uploadId" text, "webhookId" text, "adminKeyId" text, "keyIds" text[])
    left join forms f on f.id = "formId" left join form_versions v on v.id = f.current_version_id
    left join sessions s on s.id = "sessionId" left join webhooks w on w.id = "webhookId"`;

/** What a party can do that it could not before: who knows the id of a session can, and who may delete an archived form. */
function rightsOf({ facts, standing, party }: Visit): string {
  const enabled = [standing.startsWith('archived') && 'archived', party.sessionIds.length > 0 && 'session'];
  return [...facts, ...enabled].join();
}

/** What a caller needs to hold so that each of these may become true. */
const givenBy = {
  owned: ['reading', 'deletion'],
  hooked: ['reading'],
  mailed: ['reading'],
  shortened: ['deletion'],
  gone: ['deletion'],
  revoked: ['more'],
  exceeded: ['never'],
} as const satisfies Record<string, readonly Gain[]>;

function nameOf({ method, request }: Step): string {
  return `${method.parent.name}.${method.localName} #${request}`;
}

type Fact = keyof typeof givenBy;

/** `more`: a key with every scope is revoked. `never`: a key can do more or for longer than the one that made it. */
type Gain = Right | 'more' | 'never';

/** One of the requests of a method, with one of the credentials of a party. */
type Step = { credential: number; method: DescMethod; request: number };

/**
 * A party in its world, and what became true there. `standing` is of what else other calls depend on: whether the form,
 * the session, the webhook, and the party's own sessions and keys are as they were.
 */
type Visit = {
  world: World;
  party: Required<Party>;
  facts: Fact[];
  standing: string;
  kinds: Map<string, KeyKind>;
};

/** Keys of the same scopes that are `alike`, of one project and for as long, may do the same. */
type KeyKind = { scopes: readonly string[]; alike: string };

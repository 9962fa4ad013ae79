import type { Random } from '../world/types.ts';
import {
  again,
  awaitLink,
  DAY_MS,
  type FormKind,
  HOUR_MS,
  insist,
  newKey,
  pause,
  pickOr,
  signIn,
  type Town,
  type TownForm,
} from './town.ts';

/** A key that makes forms of each kind, publishes, changes, hands over and ends them. */
export async function makeForms(town: Town, actor: string, random: Random): Promise<void> {
  const kinds: FormKind[] = ['mailed', 'limited', 'hooked', 'kept', 'partial', 'keyless'];
  for (const kind of kinds.slice(0, 4)) await makeForm(town, { actor, random, kind });
  await again(town, random, 6, async () => {
    await makeForm(town, { actor, random, kind: random.pick(kinds) });
  });
}

/** A key that changes what is there. */
export async function changeForms(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 10, async () => {
    const form = pickOr(
      random,
      town.forms.filter(({ state }) => state === 'open'),
    );
    if (form === undefined) return;
    if (form.kind === 'kept') return publish(town, { actor, random, form });
    if (form.kind === 'limited') return;
    const change = random.pick([handOver, handOver, endForm, publish]);
    await change(town, { actor, random, form });
  });
}

async function makeForm(town: Town, { actor, random, kind }: Making): Promise<void> {
  const definition = definitionOf(town, random, kind);
  const isKeyless = kind === 'keyless';
  const created = await insist(
    town,
    { actor, operation: 'create', random },
    {
      method: 'POST',
      path: '/api/forms/create',
      ...(isKeyless && { key: null }),
      headers: newKey(random),
      body: definition,
    },
  );
  if (created?.status !== 201) return;
  const { id, activate_url: activateUrl } = created.json.form;
  const owner = `owner-${random.text(8)}@owners.example`;
  const form: TownForm = {
    id,
    kind,
    definition,
    activateUrl,
    isKeyless,
    owner,
    isConfirmed: false,
    state: 'open',
  };
  const activated = await insist(
    town,
    { actor, operation: 'publish', random },
    {
      method: 'POST',
      path: activateUrl,
      key: null,
      body: { email: owner },
    },
  );
  // What was done by a call whose reply was lost has used the token up.
  const isPublished = activated?.status === 200 || activated?.json?.error?.reason === 'token_used';
  if (!isPublished) return;
  town.forms.push(form);
}

/** Owners confirm their addresses by the link in their mailbox, most of them soon. */
export async function confirmOwner(town: Town, form: TownForm, random: Random): Promise<void> {
  const { world } = town;
  const { owner } = form;
  const actor = `owner ${owner}`;
  const link = await awaitLink(town, owner, /\/mail\/confirm-owner\.[\w.-]+/, 4 * DAY_MS);
  if (link === undefined || world.now() >= world.endsAt) return;
  await pause(town, random.whole(1_000, HOUR_MS));
  const reply = await insist(town, { actor, operation: 'confirm', random }, { ...confirm, path: link });
  form.isConfirmed ||= reply?.status === 200;
  town.ended.push({ actor, call: { ...confirm, path: link } });
}

function definitionOf(town: Town, random: Random, kind: FormKind): Record<string, unknown> {
  const name = `Form ${random.text(8)}`;
  return {
    name,
    slug: name.toLowerCase().replaceAll(' ', '-'),
    fields: [
      { id: 'email', type: 'email' },
      { id: 'note', type: 'textarea', required: true },
      { id: 'nickname', type: 'text' },
      { id: 'number', type: 'number' },
      ...(kind === 'keyless' ? [] : [{ id: 'cv', type: 'file' }]),
    ],
    delivery: deliveryOf(town, random, kind),
    settings: settingsOf(random, kind),
  };
}

function deliveryOf({ world }: Town, random: Random, kind: FormKind): Record<string, unknown> {
  if (kind === 'hooked') {
    const { url } = world.receivers.open(`own-${random.text(8)}`);
    return { type: 'webhook', url, secret: `secret-${random.text(24)}` };
  }
  const autoresponse = { to: 'email', subject: 'Thank you', message: 'We have got your answers.' };
  return { type: 'email', ...(random.chance(0.3) && kind !== 'keyless' && { autoresponse }) };
}

function settingsOf(random: Random, kind: FormKind): Record<string, unknown> {
  if (kind === 'limited') return { maxSubmissions: random.whole(1, 6) };
  if (kind === 'kept') return { retentionDays: random.whole(1, 4) };
  return kind === 'partial' ? { allowPartial: true } : {};
}

/** Publishes another version; of a form with a retention time, one that keeps answers for less long. */
async function publish(town: Town, { actor, random, form }: Changing): Promise<void> {
  const settings = { ...(form.definition.settings as Record<string, unknown>) };
  if (typeof settings.retentionDays === 'number') {
    if (settings.retentionDays === 1) return;
    settings.retentionDays -= 1;
  }
  const definition = { ...form.definition, description: `Since ${random.text(6)}`, settings };
  const reply = await insist(
    town,
    { actor, operation: 'publish version', random },
    {
      method: 'POST',
      path: `/v1/forms/${form.id}/versions`,
      headers: newKey(random),
      body: definition,
    },
  );
  if (reply?.status === 201) form.definition = definition;
}

/** Hands a form over to another address, which agrees by the link that it gets. */
async function handOver(town: Town, { actor, random, form }: Changing): Promise<void> {
  if (!form.isConfirmed) return;
  await addRecipient(town, form, random);
  const next = `heir-${random.text(8)}@owners.example`;
  const offered = await insist(
    town,
    { actor, operation: 'hand over', random },
    {
      method: 'POST',
      path: `/v1/forms/${form.id}/owner`,
      body: { email: next },
    },
  );
  if (offered === undefined || offered.status >= 400) return;
  const link = await awaitLink(town, next, /\/mail\/change-owner\.[\w.-]+/, 2 * DAY_MS);
  if (link === undefined || form.state !== 'open') return;
  const taken = await insist(
    town,
    { actor: `owner ${next}`, operation: 'take over', random },
    { ...confirm, path: link },
  );
  if (taken?.status === 200) form.owner = next;
  town.ended.push({ actor: `owner ${next}`, call: { ...confirm, path: link } });
}

/** Somebody whom the owner adds, who confirms: after the hand-over they get nothing. */
async function addRecipient(town: Town, form: TownForm, random: Random): Promise<void> {
  if (form.kind === 'hooked' || random.chance(0.4)) return;
  const session = await signIn(town, form.owner, random);
  if (session === undefined) return;
  const email = `colleague-${random.text(8)}@owners.example`;
  const actor = `owner ${form.owner}`;
  const path = '/headlessforms.v1.OwnersService/AddFormRecipient';
  const call = { method: 'POST', path, key: session, body: { formId: form.id, email } };
  const added = await insist(town, { actor, operation: 'add recipient', random }, call);
  if (added?.status !== 200) return;
  const link = await awaitLink(town, email, /\/mail\/confirm-recipient\.[\w.-]+/, HOUR_MS);
  if (link === undefined) return;
  const agreed = { actor: `recipient ${email}`, operation: 'confirm', random };
  await insist(town, agreed, { ...confirm, path: link });
}

/** Archives a form, and mostly deletes it then. */
async function endForm(town: Town, { actor, random, form }: Changing): Promise<void> {
  const open = town.forms.filter(({ state }) => state === 'open');
  if (open.length < 5) return;
  form.state = 'archived';
  const archive = { method: 'POST', path: `/v1/forms/${form.id}/archive` };
  const archived = await insist(town, { actor, operation: 'archive', random }, archive);
  if (archived?.status !== 200 || random.chance(0.2)) return;
  await pause(town, random.whole(1_000, 3 * HOUR_MS));
  form.state = 'deleted';
  await insist(
    town,
    { actor, operation: 'delete form', random },
    { method: 'DELETE', path: `/v1/forms/${form.id}` },
  );
}

/** The button of a mailed link. */
const confirm = {
  method: 'POST',
  key: null,
  headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
  body: '',
} as const;

type Making = { actor: string; random: Random; kind: FormKind };
type Changing = { actor: string; random: Random; form: TownForm };

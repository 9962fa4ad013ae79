import type { Random } from '../world/types.ts';
import {
  again,
  HOUR_MS,
  insist,
  newKey,
  type Person,
  pause,
  pickOr,
  type Town,
  type TownForm,
} from './town.ts';

/** Somebody who fills in forms now and then. */
export async function visit(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 12, async () => {
    const form = pickOr(random, takers(town));
    if (form === undefined) return;
    if (form.kind === 'partial' && random.chance(0.6)) return fillSession(town, { actor, random, form });
    await submitAs(town, actor, form, random);
  });
}

/** Many at once, as when a link is sent to all: to forms that take only so many, above all. */
export async function rush(town: Town, actor: string, random: Random): Promise<void> {
  await again(town, random, 7, async () => {
    const limited = town.forms.filter(({ kind, state }) => kind === 'limited' && state === 'open');
    const form = pickOr(random, random.chance(0.7) ? limited : takers(town));
    if (form === undefined) return;
    const size = random.whole(3, 12);
    const forks = Array.from({ length: size }, () => random.fork(random.text(8)));
    await Promise.all(
      forks.map((fork, index) =>
        submit(town, { actor: `${actor} ${index + 1}`, random: fork, form, person: personOf(town, fork) }),
      ),
    );
  });
}

/** Somebody answers a form that is open, if there is one. */
export async function submitSomewhere(town: Town, actor: string, random: Random): Promise<void> {
  const form = pickOr(random, takers(town));
  if (form !== undefined) await submitAs(town, actor, form, random);
}

export async function submitAs(town: Town, actor: string, form: TownForm, random: Random): Promise<void> {
  await submit(town, { actor, random, form, person: personOf(town, random) });
}

function takers({ forms }: Town): TownForm[] {
  return forms.filter(({ state }) => state === 'open');
}

function personOf(town: Town, random: Random): Person {
  const known = pickOr(
    random,
    town.people.filter(({ isGone, answers }) => !isGone && answers < 5),
  );
  if (known !== undefined && random.chance(0.6)) return known;
  const person: Person = {
    email: `person-${random.text(8)}@people.example`,
    number: random.whole(10_000_000, 99_999_999),
    way: random.pick([
      'email',
      'email',
      'email',
      'nickname',
      'number',
      'source',
      'file name',
      'idempotency key',
    ]),
    isGone: false,
    answers: 0,
  };
  town.people.push(person);
  return person;
}

async function submit(town: Town, { actor, random, form, person }: Submitting): Promise<void> {
  const { email, number, way } = person;
  person.answers += 1;
  const isKeyless = form.kind === 'keyless';
  const note = `mark-${random.text(16)}`;
  const withFile = !isKeyless && (way === 'file name' || random.chance(0.25));
  const filename = way === 'file name' ? email : `file-${random.text(6)}.txt`;
  const upload = withFile ? await sendFile(town, { actor, random, form, filename, note }) : undefined;
  if (person.isGone || town.world.now() >= town.world.endsAt) return;
  const answers = {
    note,
    ...(way === 'email' && { email }),
    ...(way === 'nickname' && { nickname: ` ${email} ` }),
    ...(way === 'number' && { number }),
    ...(upload !== undefined && { cv: { upload_id: upload } }),
  };
  const isByKey = !isKeyless && random.chance(0.2);
  const sent = {
    method: 'POST',
    path: `/${isByKey ? 'v1' : 'api'}/forms/${form.id}/submissions`,
    ...(!isByKey && { key: null }),
    headers:
      isByKey && way === 'idempotency key' && person.answers === 1
        ? { 'idempotency-key': email }
        : newKey(random),
    body: { source: way === 'source' ? email : 'town', answers },
  };
  const reply = await insist(town, { actor, operation: 'submit', random }, sent);
  if (reply?.status !== 201) return;
  town.submissions.push({
    id: reply.json.submission_id,
    form,
    at: town.world.now(),
    uploads: upload === undefined ? [] : [upload],
  });
  // A page that sends twice, long after the first.
  if (random.chance(0.15)) {
    await pause(town, random.whole(1_000, 8 * HOUR_MS));
    const isThere = !person.isGone && form.kind !== 'kept' && form.state === 'open';
    if (isThere && town.world.now() < town.world.endsAt) await town.world.call(actor, 'submit again', sent);
  }
}

async function sendFile(
  town: Town,
  { actor, random, form, filename, note }: Sending,
): Promise<string | undefined> {
  const reply = await insist(
    town,
    { actor, operation: 'upload', random },
    {
      method: 'POST',
      path: `/api/forms/${form.id}/uploads?field=cv&filename=${encodeURIComponent(filename)}`,
      key: null,
      headers: { ...newKey(random), 'content-type': 'application/octet-stream' },
      body: `A file of ${note}.\n`.repeat(random.whole(1, 50)),
    },
  );
  return reply?.status === 201 ? reply.json.upload.upload_id : undefined;
}

/** A session that a key opens for somebody, who saves as they go, and submits, leaves, or is told to stop. */
async function fillSession(town: Town, { actor, random, form }: Filling): Promise<void> {
  const { world } = town;
  const opened = await insist(
    town,
    { actor, operation: 'open session', random },
    {
      method: 'POST',
      path: `/v1/forms/${form.id}/sessions`,
      headers: newKey(random),
      body: { expires_in: random.whole(3600, 86_400), metadata: { order: random.text(6) } },
    },
  );
  if (opened?.status !== 201) return;
  const { id } = opened.json.session;
  const note = `mark-${random.text(16)}`;
  const post = (operation: string, inputs: Record<string, string>) =>
    insist(
      town,
      { actor, operation, random },
      {
        method: 'POST',
        path: `/f/${id}`,
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams(inputs).toString(),
      },
    );
  for (let saves = random.whole(0, 3); saves > 0; saves--) {
    await post('save', { note: `${note} so far`, _shown: 'note', _go: 'save' });
    await pause(town, random.whole(1_000, HOUR_MS / 2));
  }
  if (world.now() >= world.endsAt || random.chance(0.2)) return;
  if (random.chance(0.15)) {
    await insist(
      town,
      { actor, operation: 'cancel', random },
      { method: 'POST', path: `/v1/sessions/${id}/cancel` },
    );
    return;
  }
  const reply = random.chance(0.5)
    ? await post('submit page', { note, _shown: 'note' })
    : await insist(
        town,
        { actor, operation: 'submit session', random },
        {
          method: 'POST',
          path: `/v1/sessions/${id}/submit`,
          headers: newKey(random),
          body: { answers: { note } },
        },
      );
  if (reply?.status !== 201) return;
  const submissionId = reply.json?.submission_id;
  if (typeof submissionId === 'string') {
    town.submissions.push({ id: submissionId, form, at: world.now(), uploads: [] });
  }
}

type Filling = { actor: string; random: Random; form: TownForm };
type Submitting = Filling & { person: Person };
type Sending = Filling & { filename: string; note: string };

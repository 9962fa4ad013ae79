import type { Random } from '../world/types.ts';
import { confirmOwner } from './makers.ts';
import {
  again,
  HOUR_MS,
  insist,
  MINUTE_MS,
  pause,
  pickOr,
  signIn,
  type Town,
  type TownForm,
} from './town.ts';
import { submitAs } from './visitors.ts';

/** The owners of all forms: they confirm, try links and sessions again, stop mails and start them again, close forms and open them. */
export async function own(town: Town, random: Random): Promise<void> {
  const known = new Set<TownForm>();
  const confirming: Promise<void>[] = [];
  await again(town, random, 50, async () => {
    for (const form of town.forms) {
      if (known.has(form)) continue;
      known.add(form);
      if (random.chance(0.9)) confirming.push(confirmOwner(town, form, random.fork(form.id)));
    }
    const tried = pickOr(random, town.ended);
    if (tried !== undefined && random.chance(0.3))
      await town.world.call(tried.actor, 'try again', tried.call);
    const form = pickOr(
      random,
      town.forms.filter(({ state, isConfirmed }) => state !== 'deleted' && isConfirmed),
    );
    if (form === undefined || !random.chance(0.12)) return;
    const isClosable = form.kind === 'mailed' || form.kind === 'hooked';
    await (isClosable && random.chance(0.5) ? closeOrOpen : stopMails)(town, form, random);
  });
  await Promise.all(confirming);
}

/** By the link at the end of a mail, as people and mail programs do; some start the mails again later. */
async function stopMails(town: Town, form: TownForm, random: Random): Promise<void> {
  const { world } = town;
  const { owner } = form;
  const actor = `owner ${owner}`;
  const link = world.mailbox.linkIn(owner, /\/mail\/stop\.[\w.-]+/);
  if (link === undefined) return;
  // A mail that waits to be tried again meanwhile is seldom by chance alone.
  if (form.state === 'open' && random.chance(0.5)) {
    world.faults.begin('mail-4xx-recipient', owner, random.whole(2 * MINUTE_MS, 40 * MINUTE_MS));
    await submitAs(town, actor, form, random);
    await pause(town, MINUTE_MS);
  }
  const post = (operation: string, body: string) =>
    insist(
      town,
      { actor, operation, random },
      {
        method: 'POST',
        path: link,
        key: null,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body,
      },
    );
  await post('stop mails', random.pick(['List-Unsubscribe=One-Click', 'stop=form', 'stop=all']));
  if (random.chance(0.5)) return;
  await pause(town, random.whole(HOUR_MS, 24 * HOUR_MS));
  if (world.now() < world.endsAt) await post('start mails', 'start=yes');
}

async function closeOrOpen(town: Town, form: TownForm, random: Random): Promise<void> {
  const { world } = town;
  const { id, owner } = form;
  const actor = `owner ${owner}`;
  const rpc = (operation: string, method: string, body: object, key: string | null) =>
    insist(
      town,
      { actor, operation, random },
      {
        method: 'POST',
        path: `/headlessforms.v1.OwnersService/${method}`,
        key,
        body,
      },
    );
  const session = await signIn(town, owner, random);
  if (session === undefined || form.state === 'deleted' || form.state === 'archived') return;
  const isOpen = form.state === 'open';
  form.state = isOpen ? 'closed' : 'open';
  await rpc(
    isOpen ? 'close' : 'reopen',
    isOpen ? 'CloseOwnedForm' : 'ReopenOwnedForm',
    { formId: id },
    session,
  );
  if (!isOpen || world.now() >= world.endsAt) return;
  await pause(town, random.whole(10 * MINUTE_MS, 5 * HOUR_MS));
  if (form.state !== 'closed' || world.now() >= world.endsAt) return;
  const reopened = await rpc('reopen', 'ReopenOwnedForm', { formId: id }, session);
  if (reopened?.status === 200) form.state = 'open';
}

import { type Client, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { UploadsService } from '../../../gen/headlessforms/v1/uploads_pb.js';
import { fileLink } from '../../../src/domain/links.ts';
import { confirmRecipient, listConfirmedRecipients } from '../../../src/store/mail/mail-recipients.ts';
import { confirmOwner } from '../../../src/store/owners/owners.ts';
import { engines, oneEngine } from '../../support/database.ts';
import { failureOf } from '../../support/failures.ts';
import { givenMailLink } from '../../support/owner.ts';
import { until } from '../../support/until.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';
import { type OwnersServices, startOwnersServices } from './given.ts';

describe.each(engines)('a hand-over on %s', (engine) => {
  let rpc: OwnersServices;

  beforeAll(async () => {
    rpc = await startOwnersServices(engine);
  });

  beforeEach(awaitWholeDay);

  afterAll(() => rpc[Symbol.asyncDispose]());

  /** A form that its owner offers to another, with a recipient that was added and has confirmed. */
  async function givenOffer() {
    const given = await rpc.givenOwner();
    const { formId, owner } = given;
    const [next, added] = [`${crypto.randomUUID()}@example.com`, `${crypto.randomUUID()}@example.com`];
    await owner.addFormRecipient({ formId, email: added });
    await confirmRecipient(rpc.database, { formId, address: added });
    await owner.offerOwnedForm({ formId, email: next });
    const token = await givenMailLink(
      rpc.database,
      { purpose: 'change-owner', formId, address: next },
      { key: rpc.secretKey },
    );
    const recipients = async () =>
      (await listConfirmedRecipients(rpc.database, [formId])).map(({ address }) => address);
    return { ...given, next, added, token, recipients };
  }

  it('ends what the former owner had and gave, and tells them', async () => {
    const { formId, owner, address, next, added, token, recipients } = await givenOffer();
    const link = { formId, address } as const;
    const old = await givenMailLink(
      rpc.database,
      { purpose: 'confirm-owner', ...link },
      { key: rpc.secretKey },
    );
    const { uploadId } = await rpc.givenFile(formId);
    const fileUrl = (ownerEpoch: number) =>
      fileLink(
        { secretKey: rpc.secretKey, baseUrl: '', now: rpc.clock.ms },
        { id: formId, ownerEpoch },
        uploadId,
      );
    const open = async (url: string) => {
      for await (const _ of createClient(UploadsService, rpc.as()).getLinkedUpload({
        token: url.slice('/files/'.length),
      }))
        return 'read';
      return 'empty';
    };
    expect(await open(fileUrl(0))).toBe('read');
    expect((await rpc.mail().getMailLink({ token })).recipients).toEqual([added]);

    await rpc.mail().followMailLink({ token });

    expect(await failureOf(owner.getOwner({}))).toMatchObject({ reason: 'INVALID_KEY' });
    expect(await recipients()).toEqual([]);
    expect(await failureOf(open(fileUrl(0)))).toMatchObject({ reason: 'EXPIRED' });
    expect(await open(fileUrl(1))).toBe('read');
    expect(await failureOf(rpc.mail().followMailLink({ token: old }))).toMatchObject({
      reason: 'INVALID_TOKEN',
    });
    const told = await rpc.database.select(
      "select body from events where form_id = $1 and type = 'owner.changed'",
      [formId],
    );
    expect(told.map(({ body }) => JSON.stringify(body))).toEqual([expect.stringContaining(address)]);
    expect((await (await rpc.signedIn(next)).getOwnedForm({ formId })).form?.id).toBe(formId);
  });

  it('confirms no recipient by a link from before it was removed', async () => {
    const { formId, owner, added, recipients } = await givenOffer();
    const link = { purpose: 'confirm-recipient', formId, address: added } as const;
    const token = await givenMailLink(rpc.database, link, { key: rpc.secretKey });

    await owner.removeFormRecipient({ formId, email: added });
    await owner.addFormRecipient({ formId, email: added });

    expect(await failureOf(rpc.mail().followMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
    expect(await recipients()).toEqual([]);
  });

  it('gives the form and its submissions to whom the owner offers it, once they agree', async () => {
    const { formId, owner, address } = await rpc.givenOwner();
    const next = `${crypto.randomUUID()}@example.com`;

    await owner.offerOwnedForm({ formId, email: next });
    expect((await owner.getOwnedForm({ formId })).form?.offeredTo).toBe(next);
    expect((await rpc.forms.getForm({ formId }, rpc.owner)).form?.ownerEmail).toBe(address);
    await confirmOwner(rpc.database, formId, next);

    expect(await failureOf(owner.getOwnedForm({ formId }))).toMatchObject({ reason: 'NOT_FOUND' });
    const taken = await rpc.signedIn(next);
    expect((await taken.getOwnedForm({ formId })).form).toMatchObject({ confirmed: true, offeredTo: '' });
  });

  it.each<[string, (owner: Client<typeof OwnersService>, formId: string) => Promise<unknown>]>([
    ['offered on', (owner, formId) => owner.offerOwnedForm({ formId, email: 'other@example.com' })],
    ['closed', (owner, formId) => owner.closeOwnedForm({ formId })],
    ['opened again', (owner, formId) => owner.reopenOwnedForm({ formId })],
    ['given a recipient', (owner, formId) => owner.addFormRecipient({ formId, email: 'bob@example.com' })],
    ['rid of one', (owner, formId) => owner.removeFormRecipient({ formId, email: 'ada@example.com' })],
  ])('refuses that the form is %s by its former owner at that moment', async (what, change) => {
    const { formId, owner } = await rpc.givenOwner();
    const next = `${crypto.randomUUID()}@example.com`;
    await owner.offerOwnedForm({ formId, email: next });
    await owner.addFormRecipient({ formId, email: 'ada@example.com' });
    const isClosed = what === 'opened again';
    if (isClosed) await owner.closeOwnedForm({ formId });
    const begun = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const taking = rpc.database.transaction(async (tx) => {
      await confirmOwner(tx, formId, next);
      begun.resolve();
      await asked.promise;
    });
    await begun.promise;

    const refused = failureOf(change(owner, formId));
    // The embedded database reads nothing, either, while a transaction goes on.
    if (engine === 'postgres') await until(async () => (await waitingForLocks(rpc)) > 0);
    asked.resolve();
    await taking;

    expect(await refused).toMatchObject({ reason: 'NOT_FOUND' });
    const { form } = await (await rpc.signedIn(next)).getOwnedForm({ formId });
    expect(form).toMatchObject({
      confirmed: true,
      offeredTo: '',
      recipients: [{ address: 'ada@example.com' }],
    });
    expect(form?.closeTime !== undefined).toBe(isClosed);
  });

  // The database has no part in what follows.
  if (!oneEngine('pglite').includes(engine)) return;

  it('is taken back by its owner, whose link then does nothing', async () => {
    const { formId, owner, next, token } = await givenOffer();
    const offeredTo = async () => (await owner.getOwnedForm({ formId })).form?.offeredTo;

    expect(await offeredTo()).toBe(next);
    await owner.withdrawOwnedFormOffer({ formId });

    expect(await offeredTo()).toBe('');
    expect(await failureOf(rpc.mail().followMailLink({ token }))).toMatchObject({ reason: 'INVALID_TOKEN' });
    expect((await owner.getOwnedForm({ formId })).form?.id).toBe(formId);
  });

  it('leaves the recipients that were added if the new owner says so', async () => {
    const { added, token, recipients } = await givenOffer();

    await rpc.mail().followMailLink({ token, keepRecipients: true });

    expect(await recipients()).toEqual([added]);
  });

  it('is not needed to get what the owner gets: adding oneself is refused', async () => {
    const { formId, owner, address } = await rpc.givenOwner();

    expect(await failureOf(owner.addFormRecipient({ formId, email: address.toUpperCase() }))).toMatchObject({
      reason: 'CONFLICT',
    });
    expect((await owner.getOwnedForm({ formId })).form?.recipients).toEqual([]);
  });

  it('is no way to have many asked from one client, who makes forms without a key', async () => {
    async function givenAsker(key: string | undefined, address: string) {
      const { id: formId, token } = await rpc.givenDraft(key);
      const email = `${crypto.randomUUID()}@example.com`;
      await rpc.forms.activateForm({ formId, activationToken: token, email });
      const { token: session, confirmOwnedForm } = await rpc.signedIn(email);
      await confirmOwnedForm({ formId });
      const client = createClient(OwnersService, rpc.as(session, { 'x-forwarded-for': address }));
      return (n: number) => client.offerOwnedForm({ formId, email: `${n}@example.net` });
    }
    const ask = await givenAsker(undefined, '203.0.113.7');
    for (let n = 0; n < 100; n += 1) await ask(n);

    const again = await givenAsker(undefined, '203.0.113.7');
    expect(await failureOf(again(100))).toMatchObject({ reason: 'RATE_LIMITED' });
    await (await givenAsker(undefined, '203.0.113.8'))(101);
    await (await givenAsker(rpc.key, '203.0.113.7'))(102);
  });
});

/** How many statements of the test's own database wait for what another transaction holds. */
async function waitingForLocks({ database }: OwnersServices): Promise<number> {
  const [row] = await database.select(
    `select count(*)::int as waiting from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return Number(row?.waiting);
}

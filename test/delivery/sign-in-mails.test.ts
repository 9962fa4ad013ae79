import { beforeEach, describe, expect, it } from 'vitest';
import { addressKey } from '../../src/domain/addresses/email-address.ts';
import { newId } from '../../src/domain/ids.ts';
import { readSignInToken, SIGN_IN_MAILS } from '../../src/domain/links.ts';
import type { Database } from '../../src/store/database/database.ts';
import { queueMails } from '../../src/store/deliveries/enqueue-mails.ts';
import { stopMail } from '../../src/store/mail/mail-recipients.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import { givenForm, startDelivery, testKey } from '../support/delivery.ts';
import { type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { until } from '../support/until.ts';
import { awaitWholeDay } from '../support/utc-day.ts';

describe.each(engines)('mails to sign in with on %s', (engine) => {
  beforeEach(awaitWholeDay);

  it('go to owners alone, each with a link of its own that is stored nowhere', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    await givenForm(database, { ownerEmail: 'Ada@example.com' });
    await ask(database, ['ada@example.com', 'nobody@example.com', 'ADA@example.com']);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await finished(database);

    const [first, second] = await mailServer.expectMails(2);
    const links = [linkIn(first), linkIn(second)];
    expect(links[0]).not.toBe(links[1]);
    for (const link of links) {
      expect(readSignInToken([testKey], link, Date.now())).toMatchObject({ ok: true });
      expect(readSignInToken([testKey], link, Date.now() + 15 * 60_000)).toEqual({
        ok: false,
        reason: 'expired',
      });
      expect(readSignInToken([testKey], link, Date.now() + 14 * 60_000)).toMatchObject({ ok: true });
    }
    const rows = await database.select('select * from deliveries');
    expect(rows.map(({ receiver, error }) => [receiver, error])).toEqual([
      ['ada@example.com', null],
      ['ada@example.com', null],
    ]);
    expect(links.some((link) => JSON.stringify(rows).includes(link))).toBe(false);
  });

  it('are ten a day for a mailbox that has confirmed, three for one that others have named, with all their addresses', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    for (let n = 0; n < 12; n += 1) await givenForm(database, { ownerEmail: `ada+${n}@example.com` });
    for (let n = 0; n < 5; n += 1)
      await givenForm(database, { ownerEmail: `bob+${n}@example.com`, ownerConfirmedAt: null });
    await ask(
      database,
      Array.from({ length: 12 }, (_, n) => `ada+${n}@example.com`),
    );
    await ask(
      database,
      Array.from({ length: 5 }, (_, n) => `bob+${n}@example.com`),
    );
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await finished(database);

    const to = mailServer.mails.flatMap(({ recipients }) => recipients);
    expect(to.filter((address) => address.startsWith('ada'))).toHaveLength(10);
    expect(to.filter((address) => address.startsWith('bob'))).toHaveLength(3);
  });

  it('are half caused by one client at most, and others for devices that have signed in', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    await givenForm(database, { ownerEmail: 'ada@example.com' });
    const to = (count: number) => Array.from({ length: count }, () => 'ada@example.com');
    await ask(database, to(7), { more: { askedFrom: 'one' } });
    await ask(database, to(8), { more: { askedFrom: 'two' } });
    await ask(database, to(12), { more: { isKnown: true } });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await finished(database);

    expect(mailServer.mails).toHaveLength(20);
    const taken = await database.select(
      'select kind, cardinality(delivery_ids) as count from mail_allowances order by kind collate "C"',
    );
    expect(taken.map(({ kind, count }) => [kind, count])).toEqual([
      ['sign_in', 10],
      ['sign_in one', 5],
      ['sign_in two', 5],
      ['sign_in_known', 10],
    ]);
  });

  it('are not sent to who has stopped them, alone or with everything, nor long after they were asked for; to who has stopped all other mail they are', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const [ada, bob, cat, dan] = ['ada@example.com', 'bob@example.com', 'cat@example.com', 'dan@example.com'];
    for (const ownerEmail of [ada, bob, cat, dan]) await givenForm(database, { ownerEmail });
    const named = 'eve@example.com';
    const { id: formId } = await givenForm(database, { ownerEmail: named, ownerConfirmedAt: null });
    await stopMail(database, { address: ada, formId: SIGN_IN_MAILS });
    await stopMail(database, { address: bob, formId, scope: 'everything' });
    await stopMail(database, { address: dan, formId, scope: 'all' });
    await stopMail(database, { address: named, formId, scope: 'all' });
    await ask(database, [ada, bob, named]);
    await ask(database, [cat], { at: Date.now() - 61 * 60_000 });
    await ask(database, [dan]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await finished(database);

    expect(mailServer.mails.flatMap(({ recipients }) => recipients)).toEqual(['dan@example.com']);
  });
});

async function ask(
  database: Database,
  addresses: string[],
  { at = Date.now(), more = {} }: { at?: number; more?: object } = {},
): Promise<void> {
  const mails = addresses.map((to) => ({
    id: newId('dlv', at),
    eventId: null,
    projectId: '',
    formId: '',
    keyless: true,
    kind: 'sign_in',
    receiver: addressKey(to),
    mail: { to, signIn: true, ...more },
    delaySeconds: 0,
  }));
  await queueMails(database, mails);
}

/** Waits until no mail waits any more. */
async function finished(database: Database): Promise<void> {
  const rows = () => database.select('select id from delivery_queue');
  await until(async () => (await rows()).length === 0);
}

function linkIn(mail: ReceivedMail | undefined): string {
  return /\/owner\/sign-in\/(\S+)/.exec(mail?.text ?? '')?.[1] ?? '';
}

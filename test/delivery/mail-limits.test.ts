import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { readMailLink } from '../../src/domain/links.ts';
import type { Database } from '../../src/store/database/database.ts';
import { releaseWaitingMail } from '../../src/store/deliveries/postpone.ts';
import type { Form } from '../../src/store/forms/forms.ts';
import { stopMail } from '../../src/store/mail/mail-recipients.ts';
import { confirmOwner, proposeOwner } from '../../src/store/owners/owners.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  expectFinished,
  givenEvent,
  givenForm,
  givenSubmissions,
  plainDefinition,
  startDelivery,
  testKey,
} from '../support/delivery.ts';
import { type ReceivedMail, startMailServer } from '../support/mail-server.ts';
import { until } from '../support/until.ts';
import { awaitWholeDay } from '../support/utc-day.ts';

const keyless = { createdBy: 'public', createdFrom: 'network', ownerConfirmedAt: null };

describe.each(engines)('limits of mails on %s', (engine) => {
  beforeEach(awaitWholeDay);

  it('tells an owner of a form made without a key that answers wait, nothing of them, and sends them once confirmed', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const definition = {
      name: 'Win: https://scoundrel.example!',
      delivery: { type: 'email', subject: 'Scoundrel' } as const,
    };
    const form = await givenForm(database, { ...keyless, name: definition.name, definition });
    await givenSubmissions(database, form, Array(5).fill({ name: 'Stranger https://scoundrel.example' }));
    await using delivery = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [notice] = await mailServer.expectMails(1);
    await expectStatuses(database, { 'notice delivered': 1, 'owner pending': 5 });

    expect(notice?.subject).toBe('Confirm your email to see 5 new responses');
    expect(notice?.text).toContain('Form: Win https scoundrel example');
    expect(notice?.source).not.toMatch(/Stranger|Scoundrel|scoundrel\.example/);
    expect(linksIn(notice)).toEqual(['confirm-owner', 'stop']);
    expect(mailServer.mails).toHaveLength(1);
    const waiting = await database.select(
      "select mail::text as mail from delivery_queue where kind = 'owner'",
    );
    expect(JSON.stringify(waiting)).not.toMatch(/Stranger|scoundrel/i);

    await confirmOwner(database, form.id, 'owner@example.com');
    await releaseWaitingMail(database, { formId: form.id, address: 'owner@example.com' });
    delivery.notify();
    await expectStatuses(database, { 'notice delivered': 1, 'owner delivered': 5 });

    expect(mailServer.mails.slice(1).map(({ subject }) => subject)).toEqual(Array(5).fill('Scoundrel'));
    expect(mailServer.mails[1]?.text).toContain('Stranger https://scoundrel.example');
    const [row] = await database.select('select created_from from forms where id = $1', [form.id]);
    expect(row).toEqual({ created_from: null });
  });

  it('sends answers whole, at once and any number where owners need not confirm', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    for (const createdBy of ['public', 'key_1']) {
      const form = await givenForm(database, { ...keyless, createdBy });
      await givenSubmissions(database, form, Array(25).fill({ name: 'See https://example.com' }));
    }
    const settings = { smtpUrl: mailServer.url, ownerConfirmation: false };
    await using _ = startDelivery(database, { settings });

    await expectStatuses(database, { 'owner delivered': 50 });

    expect(mailServer.mails.every(({ text }) => text?.includes('See https://example.com'))).toBe(true);
  });

  it('sends three notices a day to one mailbox by all its addresses, and one about one form', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const addresses = [
      'a.da@gmail.com',
      'ada+1@gmail.com',
      'ADA@gmail.com',
      'ada+2@googlemail.com',
      'ad.a+3@gmail.com',
    ];
    for (const ownerEmail of addresses) {
      const form = await givenForm(database, { ...keyless, ownerEmail });
      await givenSubmissions(database, form, [{}, {}]);
    }
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectStatuses(database, { 'notice delivered': 3, 'notice failed': 2, 'owner pending': 10 });

    expect(mailServer.mails).toHaveLength(3);
  });

  it('sends twenty notices a day about forms that one client made, and counts other clients for themselves', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    for (let n = 0; n < 22; n += 1) {
      const form = await givenForm(database, { ...keyless, ownerEmail: `victim@${n}.example` });
      await givenSubmissions(database, form, [{}]);
    }
    const other = await givenForm(database, {
      ...keyless,
      createdFrom: 'other',
      ownerEmail: 'ada@example.com',
    });
    await givenSubmissions(database, other, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectStatuses(database, { 'notice delivered': 21, 'notice failed': 2, 'owner pending': 23 });

    expect(mailServer.mails.flatMap(({ recipients }) => recipients)).toContain('ada@example.com');
    const counted = await database.select(
      `select cardinality(delivery_ids) as count from mail_allowances where holder = 'network'`,
    );
    expect(counted).toEqual([{ count: 20 }]);
    // What was refused for the client was not counted against the mailboxes.
    const [mailboxes] = await database.select(
      "select count(*)::int as count from mail_allowances where holder like '%@%'",
    );
    expect(mailboxes).toEqual({ count: 21 });
  });

  it('asks a mailbox to confirm three times a day for forms made with a key, whatever strangers ask it', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    for (let n = 0; n < 4; n += 1) {
      const address = `ada+${n}@example.com`;
      await givenRequest(database, { ...keyless, ownerEmail: address, name: 'Stranger' });
      await givenRequest(database, { ownerConfirmedAt: null, ownerEmail: address, name: 'Known' });
    }
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectStatuses(database, { 'confirmation delivered': 6, 'confirmation pending': 2 });

    const subjects = mailServer.mails.map(({ subject }) => subject);
    expect(subjects.filter((subject) => subject?.endsWith('Known'))).toHaveLength(3);
    expect(subjects.filter((subject) => subject?.endsWith('Stranger'))).toHaveLength(3);
  });

  it('gives up requests that waited for a week, and answers that waited as long as deliveries are kept', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, keyless);
    await givenEvent(database, form, 'form.activated', { address: 'owner@example.com' });
    await givenSubmissions(database, form, [{}]);
    const later = (days: number) => Date.now() + days * 24 * 3600 * 1000;
    await using first = startDelivery(database, {
      settings: { smtpUrl: mailServer.url, schedule: [3600], retentionDays: 30 },
    });
    await expectStatuses(database, { 'confirmation pending': 1, 'notice pending': 1, 'owner pending': 1 });
    await first.stop(0);
    await database.execute(`delete from delivery_queue where kind = 'notice'`);
    await database.execute(`update delivery_queue set due_at = now() - interval '1 second'`);

    const settings = { smtpUrl: mailServer.url, retentionDays: 30 };
    const week = startDelivery(database, { now: () => later(8), settings });
    await expectStatuses(database, { 'confirmation failed': 1, 'owner pending': 1 });
    await week.stop(0);
    await database.execute(`update delivery_queue set due_at = now() - interval '1 second'`);
    await using _ = startDelivery(database, { now: () => later(31), settings });
    await expectStatuses(database, { 'confirmation failed': 1, 'owner failed': 1 });

    expect(mailServer.mails).toEqual([]);
  });

  it('sends nothing that waited to an address that owns the form no more, or about a form that is gone', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const taken = await givenForm(database, { ...keyless, ownerEmail: 'victim@example.com' });
    const gone = await givenForm(database, { ...keyless, ownerEmail: 'ada@example.com' });
    for (const form of [taken, gone]) await givenSubmissions(database, form, [{}]);
    await using delivery = startDelivery(database, { settings: { smtpUrl: mailServer.url } });
    await expectStatuses(database, { 'notice delivered': 2, 'owner pending': 2 });

    await proposeOwner(database, taken.projectId, taken.id, 'next@example.com');
    await confirmOwner(database, taken.id, 'next@example.com');
    await database.execute('update forms set deleted_at = now() where id = $1', [gone.id]);
    await database.execute(`update delivery_queue set due_at = now() - interval '1 second'`);
    delivery.notify();

    await expectStatuses(database, { 'notice delivered': 2, 'owner failed': 1, 'owner pending': 1 });
    expect(mailServer.mails).toHaveLength(2);
  });

  it('counts a mail once that a stop cuts off and that is sent again', async () => {
    await using database = await openTestDatabase(engine);
    let hangs = true;
    let asked = 0;
    await using mailServer = await startMailServer(() => {
      asked += 1;
      return hangs ? new Promise(() => undefined) : undefined;
    });
    for (let n = 0; n < 3; n += 1) await givenRequest(database, { ownerConfirmedAt: null });
    const cutOff = startDelivery(database, { settings: { smtpUrl: mailServer.url } });
    await until(() => asked === 3);
    await cutOff.stop(0);
    hangs = false;

    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });
    await expectStatuses(database, { 'confirmation delivered': 3 });

    expect(mailServer.mails).toHaveLength(3);
  });

  it('asks no address of a mailbox that stopped all mail by another one, and sends what it has asked for', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    await stopMail(database, { address: 'ada+1@example.com', formId: '', scope: 'all' });
    await givenRequest(database, { ...keyless, ownerEmail: 'ada+2@example.com' });
    const unconfirmed = await givenForm(database, { ...keyless, ownerEmail: 'ada+3@example.com' });
    await givenSubmissions(database, unconfirmed, [{}]);
    const wanted = await givenForm(database, { ownerEmail: 'ada@example.com' });
    await givenSubmissions(database, wanted, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectStatuses(database, {
      'confirmation failed': 1,
      'notice failed': 1,
      'owner delivered': 1,
      'owner pending': 1,
    });
    expect(mailServer.mails.map(({ recipients }) => recipients)).toEqual([['ada@example.com']]);
  });

  it('sends one autoresponse a day to a mailbox, with no word of whoever gave the address', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const autoresponse = { to: 'email', subject: 'Thank you', message: 'See https://shop.example' };
    const form = await givenForm(database, {
      definition: { ...plainDefinition, delivery: { type: 'email', autoresponse } },
      ownerEmail: null,
    });
    const answers = [1, 2, 3].map((n) => ({
      email: `victim+${n}@example.com`,
      name: 'Scoundrel https://scoundrel.example',
    }));
    await givenSubmissions(database, form, answers);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectFinished(database, form, 1);

    expect(mailServer.mails.map(({ recipients }) => recipients.join())).toEqual([
      expect.stringMatching(/^victim\+\d@example\.com$/),
    ]);
    expect(mailServer.mails[0]?.text).toContain('See https://shop.example');
    expect(mailServer.mails[0]?.source).not.toMatch(/scoundrel/i);
  });

  it('makes no link of any word for an owner who has not confirmed, and keeps them as they are for others', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const name = 'Form of acme.example';
    const definition = { name, delivery: { type: 'email', subject: `New: ${name}` } as const };
    const answers = [{ name: 'See https://evil.example, evil。com or 192.0.2.1', email: 'ada@example.com' }];
    for (const ownerConfirmedAt of [null, new Date()]) {
      const ownerEmail = ownerConfirmedAt === null ? 'new@example.com' : 'owner@example.com';
      const form = await givenForm(database, { name, definition, ownerConfirmedAt, ownerEmail });
      await givenSubmissions(database, form, answers);
    }
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const mails = await mailServer.expectMails(2);
    const mailTo = (address: string) => mails.find(({ recipients }) => recipients.includes(address));

    const before = mailTo('new@example.com');
    expect(before?.subject).toBe('New: Form of acme[.]example');
    for (const part of [before?.text, before?.html]) {
      expect(part).toContain('See https[:]//evil[.]example, evil[.]com or 192[.]0[.]2[.]1');
      expect(part).toContain('ada[@]example[.]com');
    }
    const after = mailTo('owner@example.com');
    expect(after?.subject).toBe('New: Form of acme.example');
    for (const part of [after?.text, after?.html]) {
      expect(part).toContain('See https://evil.example, evil。com or 192.0.2.1');
    }
  });

  it('cuts long answers in both parts, and says which submission to read whole', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{ name: '"😀'.repeat(500_000), email: 'ada@example.com' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);
    await expectFinished(database, form, 1);

    const [submission] = await database.select('select id from submissions');
    const path = `/owner/submissions/${String(submission?.id)}`;
    for (const part of [mail?.text ?? '', mail?.html ?? '']) {
      expect(Buffer.byteLength(part)).toBeLessThan(40 * 1024);
      expect(part).toContain(`https://forms.example.com${path}`);
      expect(part).toContain('😀…');
      expect(part).toContain('ada@example.com');
    }
    expect(mail?.source.length).toBeLessThan(120 * 1024);
  });
});

/** A form whose owner is asked to confirm. */
async function givenRequest(database: Database, given: Partial<Form>): Promise<void> {
  const form = await givenForm(database, { projectId: newId('prj', Date.now()), ...given });
  await givenEvent(database, form, 'form.activated', { address: form.ownerEmail });
}

/** Waits until there are so many deliveries of each kind and status, and none that is under way. */
async function expectStatuses(database: Database, expected: Record<string, number>): Promise<void> {
  let found: Record<string, number> = {};
  await until(
    async () => {
      const rows = await database.select(
        `select kind || ' ' || case when status = 'pending' and due_at <= now() then 'due' else status end as state,
           count(*)::int as count
         from (
           select kind, 'pending' as status, due_at from delivery_queue
           union all select kind, status, null from deliveries
         ) as d group by 1 order by 1`,
      );
      found = Object.fromEntries(rows.map(({ state, count }) => [String(state), Number(count)]));
      return JSON.stringify(found) === JSON.stringify(expected);
    },
    undefined,
    () => JSON.stringify(found),
  );
}

function linksIn(mail: ReceivedMail | undefined): (string | undefined)[] {
  return [...(mail?.text ?? '').matchAll(/https?:\S+/g)].map(([url]) => {
    const result = readMailLink([testKey], url.slice(url.lastIndexOf('/') + 1), Date.now());
    return result.ok ? result.link.purpose : undefined;
  });
}

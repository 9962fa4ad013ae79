import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { readMailLink } from '../../src/domain/links.ts';
import type { Database } from '../../src/store/database/database.ts';
import { releaseWaitingMail } from '../../src/store/deliveries/postpone.ts';
import { VersionEntity } from '../../src/store/forms/versions.ts';
import {
  addRecipient as addFormRecipient,
  confirmRecipient,
  stopMail,
} from '../../src/store/mail/mail-recipients.ts';
import { confirmOwner, proposeOwner } from '../../src/store/owners/owners.ts';
import { oneEngine, openTestDatabase } from '../support/database.ts';
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
import { temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { awaitWholeDay } from '../support/utc-day.ts';

const withReplyTo = { ...plainDefinition, delivery: { type: 'email', replyTo: 'email' } as const };

describe.each(oneEngine('pglite'))('mails on %s', (engine) => {
  beforeEach(awaitWholeDay);

  it('sends the owner the answers in words, in the order of the form, with the address to reply to', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, { definition: withReplyTo });
    await givenSubmissions(database, form, [{ email: 'ada@example.com', name: 'Ada <b>&' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);
    const [logged] = await expectFinished(database, form, 1);

    expect(mail?.recipients).toEqual(['owner@example.com']);
    expect(mail?.subject).toBe('Contact: Ada <b>&');
    expect(mail?.replyTo).toEqual([{ name: '', address: 'ada@example.com' }]);
    expect(mail?.from).toEqual({ name: 'Contact', address: 'forms@example.com' });
    expect(mail?.messageId).toBe(`<${logged?.delivery.id}@example.com>`);
    expect(mail?.text).toMatch(/Your name:\s+Ada <b>&\s+Your email:\s+ada@example.com/);
    expect(mail?.html).toContain('Ada &lt;b&gt;&amp;');
    expect(headerOf(mail, 'list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click');
    expect(linkIn(headerOf(mail, 'list-unsubscribe'))).toEqual({
      purpose: 'stop',
      formId: form.id,
      address: 'owner@example.com',
    });
    expect(logged?.delivery).toMatchObject({
      channel: 'mail',
      kind: 'owner',
      status: 'delivered',
      responseStatus: 250,
    });
  });

  it('asks the owner to confirm, and quotes nothing of the form but its name without links', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, {
      name: 'Win now https://scoundrel.example/x at scoundrel.example',
      ownerConfirmedAt: null,
    });
    await givenEvent(database, form, 'form.activated', { address: 'owner@example.com' });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);

    expect(mail?.recipients).toEqual(['owner@example.com']);
    expect(mail?.subject).toBe('Confirm your form: Win now […] at […]');
    expect(mail?.source).not.toContain('scoundrel');
    const [pageLink, ...links] = mail?.text?.match(/https:\S+/g) ?? [];
    expect(pageLink).toBe(`https://forms.example.com/f/${form.id}`);
    expect(links.map(linkIn).map((link) => link?.purpose)).toEqual(['confirm-owner', 'stop']);
  });

  it('leads who is to confirm a form that was made without a key to no words of its maker', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, { createdBy: 'public', ownerConfirmedAt: null });
    await givenEvent(database, form, 'form.activated', { address: 'owner@example.com' });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);

    const links = mail?.text?.match(/https:\S+/g) ?? [];
    expect(links.map(linkIn).map((link) => link?.purpose)).toEqual(['confirm-owner', 'stop']);
  });

  it('asks the address that is to take a form over, and not its owner', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, { name: 'Contact', pendingOwnerEmail: 'next@example.com' });
    await givenEvent(database, form, 'owner.change_requested', { address: 'next@example.com' });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);
    const logged = await expectFinished(database, form, 1);

    expect(mail?.recipients).toEqual(['next@example.com']);
    expect(mail?.subject).toBe('Take over a form: Contact');
    const [link] = mail?.text?.match(/https:\S+/g)?.map(linkIn) ?? [];
    expect(link).toMatchObject({ purpose: 'change-owner', formId: form.id, address: 'next@example.com' });
    expect(logged.map(({ delivery }) => [delivery.kind, delivery.receiver])).toEqual([
      ['owner_change', 'next@example.com'],
    ]);
  });

  it('mails further addresses only after they have confirmed', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const delivery = { type: 'email', to: ['a@example.com', 'b@example.com'] } as const;
    const definition = { ...plainDefinition, delivery: { ...delivery, to: [...delivery.to] } };
    const form = await givenForm(database, { definition });
    await confirmRecipient(database, { formId: form.id, address: 'B@example.com' });
    await givenEvent(database, form, 'recipients.added', { addresses: delivery.to });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    // One after the other, so that neither finds read what the other one needs.
    await expectFinished(database, form, 1);
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await expectFinished(database, form, 2);

    const subjects = mailServer.mails.map(({ recipients, subject }) => [recipients.join(), subject]);
    expect(Object.fromEntries(subjects)).toEqual({
      'a@example.com': 'Confirm that you want responses: Contact',
      'b@example.com': 'Contact: Ada',
    });
  });

  it('mails the owner while no listed address has confirmed, and says where responses go', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const delivery = { type: 'email' as const, to: ['listed@example.com'] };
    const form = await givenForm(database, { name: 'Contact', definition: { ...plainDefinition, delivery } });
    await givenEvent(database, form, 'form.activated', { address: 'owner@example.com' });
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await using worker = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await expectFinished(database, form, 2);
    await confirmRecipient(database, { formId: form.id, address: 'listed@example.com' });
    await givenSubmissions(database, form, [{ name: 'Bob' }]);
    worker.notify();
    await expectFinished(database, form, 3);

    const sent = mailServer.mails.map(({ recipients, subject }) => `${recipients.join()} ${subject}`);
    expect(sent.sort()).toEqual([
      'listed@example.com Contact: Bob',
      'owner@example.com Confirm your form: Contact',
      'owner@example.com Contact: Ada',
    ]);
    const asked = mailServer.mails.find(({ subject }) => subject?.startsWith('Confirm'));
    expect(asked?.text).toContain('to this address until one of them has confirmed');
  });

  it('still mails the owner what was queued before a listed address confirmed', async () => {
    await using database = await openTestDatabase(engine);
    const delivery = { type: 'email' as const, to: ['listed@example.com'] };
    const form = await givenForm(database, { definition: { ...plainDefinition, delivery } });
    let refusals = 0;
    await using mailServer = await startMailServer(async () => {
      if (refusals === 1) return undefined;
      await confirmRecipient(database, { formId: form.id, address: 'listed@example.com' });
      refusals += 1;
      return 450;
    });
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await mailServer.expectMails(1);

    expect(refusals).toBe(1);
    expect(mailServer.mails.map(({ recipients }) => recipients)).toEqual([['owner@example.com']]);
  });

  it('has the accent of the form', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const theme = { ...plainDefinition.settings.theme, accentColor: '#b00020' };
    const form = await givenForm(database, {
      definition: { ...plainDefinition, settings: { ...plainDefinition.settings, theme } },
    });
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);

    expect(mail?.html).toContain('background:#b00020;color:#ffffff');
  });

  it('says to each reader who gets it and why, in the form’s language', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const delivery = { type: 'email' as const, to: ['owner@example.com', 'named@example.com'] };
    const settings = { ...plainDefinition.settings, locale: 'de' };
    const form = await givenForm(database, { definition: { delivery, settings } });
    await confirmRecipient(database, { formId: form.id, address: 'named@example.com' });
    await addRecipient(database, { formId: form.id, address: 'added@example.com' });
    await givenSubmissions(database, form, [{ name: 'Ada' }, { name: 'Bob', email: 'bob@example.com' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const mails = await mailServer.expectMails(6);

    const textsTo = (address: string) =>
      mails.filter(({ recipients }) => recipients.includes(address)).map(({ text }) => text ?? '');
    for (const [address, why] of [
      ['owner@example.com', 'weil das Formular „Contact“ Ihnen gehört'],
      ['named@example.com', 'weil das Formular „Contact“ diese Adresse als Empfänger nennt'],
      [
        'added@example.com',
        'weil der Inhaber des Formulars „Contact“ diese Adresse als Empfänger hinzugefügt hat',
      ],
    ] as const) {
      const texts = textsTo(address);
      expect(texts).toHaveLength(2);
      for (const text of texts) {
        expect(text).toContain(why);
        expect(text).toMatch(/^Eingegangen am .* UTC\.\n/);
      }
    }
    expect(new Set(mails.map(({ subject }) => subject))).toEqual(new Set(['Contact: Ada', 'Contact: Bob']));
    expect(mails.flatMap(({ replyTo = [] }) => replyTo.map(({ address }) => address))).toEqual(
      Array.from({ length: 3 }, () => 'bob@example.com'),
    );
  });

  it('writes answers by the version that was answered, and sends them where the form delivers now', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const fields = plainDefinition.fields.map((field) => ({ ...field, label: 'New label' }));
    const newer = newId('ver', Date.now());
    const webhook = { type: 'webhook', url: 'https://example.com/' } as const;
    const form = await givenForm(database, { definition: { delivery: webhook }, currentVersionId: newer });
    const definition = { ...plainDefinition, fields };
    const version = {
      id: newer,
      formId: form.id,
      number: 2,
      definition,
      checksum: 'y',
      createdAt: new Date(),
    };
    await database.write((em) => em.insert(VersionEntity, version));
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);

    expect(mail?.text).toMatch(/Your name:\s+Ada/);
    expect(mail?.text).not.toContain('New label');
  });

  it('sends an autoresponse once a day to each address', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const autoresponse = { to: 'email', subject: 'Thank you', message: 'We will call.' };
    const form = await givenForm(database, {
      definition: { ...plainDefinition, delivery: { type: 'email', autoresponse } },
    });
    await using delivery = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await givenSubmissions(database, form, [{ email: 'ada@example.com' }, { email: 'Ada@example.com' }]);
    delivery.notify();
    await expectFinished(database, form, 3);
    await givenSubmissions(database, form, [{ email: 'ada@example.com' }, { email: 'bob@example.com' }]);
    delivery.notify();
    await expectFinished(database, form, 6);

    const thanked = mailServer.mails.filter(({ subject }) => subject === 'Thank you');
    expect(thanked.flatMap(({ recipients }) => recipients.map((to) => to.toLowerCase())).sort()).toEqual([
      'ada@example.com',
      'bob@example.com',
    ]);
    expect(headerOf(thanked[0], 'auto-submitted')).toBe('auto-replied');
  });

  it('holds back what an owner who has not confirmed gets in a day, and sends it after that', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, { ownerConfirmedAt: null });
    await givenSubmissions(
      database,
      form,
      Array.from({ length: 23 }, () => ({})),
    );
    await using delivery = startDelivery(database, { settings: { smtpUrl: mailServer.url } });
    await mailServer.expectMails(20);
    const waiting = () => database.select(`select error from delivery_queue where error like 'Waits:%'`);
    await until(async () => (await waiting()).length === 3);
    expect(mailServer.mails).toHaveLength(20);

    await database.execute('update forms set owner_confirmed_at = now() where id = $1', [form.id]);
    await releaseWaitingMail(database, { formId: form.id, address: 'Owner@example.com' });
    delivery.notify();

    await expectFinished(database, form, 23);
    expect(mailServer.mails).toHaveLength(23);
  });

  it('asks an address to confirm three times a day over all forms, and never one that stopped all mail', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    await stopMail(database, { address: 'Quiet@example.com', formId: '', scope: 'all' });
    for (const address of [
      'owner@example.com',
      'owner@example.com',
      'OWNER@example.com',
      'owner@example.com',
    ]) {
      const form = await givenForm(database, { ownerEmail: address, ownerConfirmedAt: null });
      await givenEvent(database, form, 'form.activated', { address });
    }
    const quiet = await givenForm(database, { ownerEmail: 'quiet@example.com' });
    await givenEvent(database, quiet, 'form.activated', { address: 'quiet@example.com' });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [stopped] = await expectFinished(database, quiet, 1);
    await mailServer.expectMails(3);
    const waiting = () => database.select(`select id from delivery_queue where error like 'Waits:%'`);
    await until(async () => (await waiting()).length === 1);

    expect(stopped?.delivery).toMatchObject({
      status: 'failed',
      error: 'The address has stopped these emails.',
      attemptCount: 0,
    });
    expect(mailServer.mails).toHaveLength(3);
  });

  it('tries again after a temporary answer of the mail server, and gives up after a final one', async () => {
    await using database = await openTestDatabase(engine);
    let refusals = 0;
    await using mailServer = await startMailServer((address) => {
      if (address.startsWith('never')) return 550;
      refusals += 1;
      return refusals < 3 ? 451 : undefined;
    });
    const later = await givenForm(database, { ownerEmail: 'later@example.com' });
    const never = await givenForm(database, { ownerEmail: 'never@example.com' });
    await givenSubmissions(database, later, [{}]);
    await givenSubmissions(database, never, [{}]);
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
    await using _ = startDelivery(database, { log, settings: { smtpUrl: mailServer.url } });

    const [delivered] = await expectFinished(database, later, 1);
    const [failed] = await expectFinished(database, never, 1);

    expect(delivered?.attempts.map(({ responseStatus }) => responseStatus)).toEqual([451, 451, 250]);
    expect(failed?.delivery).toMatchObject({ status: 'failed', attemptCount: 1, responseStatus: 550 });
    const warnings = lines.map((line) => JSON.parse(line)).sort((a, b) => a.status - b.status);
    expect(warnings.map(({ msg }) => msg)).toEqual(
      [451, 451, 550].map((status) => `An email could not be sent: The mail server answered ${status}.`),
    );
    expect(lines.join()).not.toContain('@example.com');
  });

  it('goes on trying while the mail server refuses the sender, and sends every mail once it does not', async () => {
    await using database = await openTestDatabase(engine);
    let isWell = false;
    await using mailServer = await startMailServer(undefined, () => (isWell ? undefined : 550));
    const form = await givenForm(database);
    await givenSubmissions(database, form, Array(20).fill({}));
    await givenEvent(database, form, 'form.activated', {});
    const settings = { smtpUrl: mailServer.url, schedule: [0, 0.1, ...Array(20).fill(2)] };
    await using _ = startDelivery(database, { settings });
    await until(async () => {
      const [row] = await database.select(
        'select count(*)::int as n from delivery_queue where attempt_count > 0',
      );
      return row?.n === 21;
    });

    isWell = true;
    const finished = await expectFinished(database, form, 21);

    expect(finished.map(({ delivery: { status } }) => status)).toEqual(Array(21).fill('delivered'));
    expect(mailServer.mails).toHaveLength(21);
    expect(finished.every(({ attempts }) => attempts[0]?.responseStatus === 550)).toBe(true);
  });

  it('sends nothing that is to be tried again to an owner who has handed the form over meanwhile', async () => {
    await using database = await openTestDatabase(engine);
    let isWell = false;
    await using mailServer = await startMailServer(undefined, () => (isWell ? undefined : 451));
    const form = await givenForm(database, { ownerEmail: 'former@example.com' });
    await givenSubmissions(database, form, [{}]);
    const settings = { smtpUrl: mailServer.url, schedule: [0, 0.1, ...Array(20).fill(1)] };
    await using _ = startDelivery(database, { settings });
    await until(async () => {
      const [row] = await database.select('select max(attempt_count)::int as most from delivery_queue');
      return row?.most === 2;
    });

    await proposeOwner(database, form.projectId, form.id, 'next@example.com');
    await confirmOwner(database, form.id, 'next@example.com');
    isWell = true;
    const [finished] = await expectFinished(database, form, 1);

    expect(finished?.delivery).toMatchObject({ status: 'failed', receiver: 'former@example.com' });
    expect(mailServer.mails).toEqual([]);
  });

  it('says in the log when the mail server can’t be reached', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, { ownerEmail: 'owner@example.com' });
    await givenSubmissions(database, form, [{}]);
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
    const settings = { smtpUrl: 'smtp://127.0.0.1:1', schedule: [0] };
    await using _ = startDelivery(database, { log, settings });

    await expectFinished(database, form, 1);

    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        code: 'ECONNREFUSED',
        hint: 'Check that it runs, and its host and port.',
        msg: "An email could not be sent: The mail server can't be reached: the connection was refused.",
      },
    ]);
  });

  it('lets no text add a header or a recipient', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const texts = [
      'x\r\nBcc: evil@example.com',
      'x\nBcc: evil@example.com\n\nbody',
      'a@example.com, evil@example.com',
      '"evil" <evil@example.com>',
      'x\u2028Bcc: evil@example.com',
      '\u202eevil@example.com',
      `${'y'.repeat(1_000_000)}\r\nBcc: evil@example.com`,
      '=?utf-8?q?x=0D=0ABcc=3A_evil=40example.com?=',
    ];
    const forms = [];
    for (const text of texts) {
      const form = await givenForm(database, {
        definition: {
          ...withReplyTo,
          name: text,
          delivery: { type: 'email', replyTo: 'email', subject: text },
        },
      });
      await givenSubmissions(database, form, [{ email: text, name: text.slice(0, 10_000) }]);
      forms.push(form);
    }
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    await mailServer.expectMails(texts.length);

    const expected = new Set(
      `from to subject message-id auto-submitted list-unsubscribe list-unsubscribe-post
        date mime-version content-type content-transfer-encoding`.split(/\s+/),
    );
    for (const mail of mailServer.mails) {
      expect(mail.recipients).toEqual(['owner@example.com']);
      expect(mail.to).toEqual([{ name: '', address: 'owner@example.com' }]);
      expect(mail.headers.map(({ key }) => key).filter((key) => !expected.has(key))).toEqual([]);
      expect(mail.subject?.length).toBeLessThanOrEqual(200);
    }
  });

  it('shows what looks like an encoded word in a header as it was written', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const name = `Win =?utf-8?b?${Buffer.from('https://scoundrel.example').toString('base64')}?=`;
    const form = await givenForm(database, { name, ownerConfirmedAt: null });
    await givenEvent(database, form, 'form.activated', { address: 'owner@example.com' });
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [mail] = await mailServer.expectMails(1);

    const shown = [mail?.subject, mail?.from?.name].map((text) => text?.replaceAll('\u2060', ''));
    expect(shown).toEqual([`Confirm your form: ${name}`, name]);
  });

  it('sends what is posted to the demo form to the operator alone', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, {
      id: 'form_demo',
      ownerEmail: 'stranger@example.com',
      ownerConfirmedAt: null,
    });
    await givenSubmissions(database, form, [{ email: 'stranger@example.com' }]);
    await using _ = startDelivery(database, {
      settings: { smtpUrl: mailServer.url, operatorEmail: 'operator@example.com' },
    });

    const [mail] = await mailServer.expectMails(1);

    expect(mail?.recipients).toEqual(['operator@example.com']);
  });
});

const answersToRecipients: [string, boolean][] = [
  ['550', true],
  ['551', true],
  ['553', true],
  ['550 5.1.1 User unknown', true],
  ['550 5.1.10 Null MX', true],
  ['550 5.2.1 Mailbox disabled', true],
  ['450 4.2.0 Greylisted', false],
  ['452 4.2.2 Over quota', false],
  ['552 5.2.2 Mailbox full', false],
  ['550 5.2.2 Mailbox full', false],
  ['550 5.7.1 Relaying denied', false],
  ['553 5.1.8 Sender address rejected', false],
  ['554 5.7.1 Client host rejected', false],
  ['530 5.7.0 Authentication required', false],
];

it.each(answersToRecipients)('takes %s after RCPT TO for final: %s', async (answer, isFinal) => {
  await using database = await openTestDatabase('pglite');
  await using mailServer = await startMailServer(() => answer);
  const form = await givenForm(database);
  await givenSubmissions(database, form, [{}]);
  await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url, schedule: [0, 0] } });

  const [logged] = await expectFinished(database, form, 1);

  expect(logged?.delivery).toMatchObject({ status: 'failed', attemptCount: isFinal ? 1 : 2 });
});

it('writes mails to files that only their owner reads, and names neither address nor subject in the log', async () => {
  await using database = await openTestDatabase('pglite');
  const form = await givenForm(database);
  await givenSubmissions(database, form, [{ name: 'Ada' }]);
  using folder = temporaryFolder();
  const mailDir = join(folder.path, 'mail');
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line) => lines.push(line) });
  await using _ = startDelivery(database, { log, settings: { mailDir } });

  const [logged] = await expectFinished(database, form, 1);

  const file = join(mailDir, `${logged?.delivery.id}.eml`);
  expect(readdirSync(mailDir)).toEqual([`${logged?.delivery.id}.eml`]);
  expect(readFileSync(file, 'utf8')).toContain('To: owner@example.com');
  expect([mailDir, file].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600]);
  expect(lines.join()).toContain(file);
  expect(lines.join()).not.toMatch(/owner@example\.com|Contact:/);
});

/** A recipient that the form's owner has added and that has confirmed. */
async function addRecipient(
  database: Database,
  { formId, address }: { formId: string; address: string },
): Promise<void> {
  await database.transaction((tx) => addFormRecipient(tx, { formId, address, max: 10 }));
  await confirmRecipient(database, { formId, address });
}

function headerOf(mail: ReceivedMail | undefined, name: string): string {
  return mail?.headers.find(({ key }) => key === name)?.value ?? '';
}

/** What the token of a mailed link says. */
function linkIn(text: string) {
  const [, token = ''] = /\/mail\/([^\s>]+)/.exec(text) ?? [];
  const result = readMailLink([testKey], token, Date.now());
  return result.ok ? result.link : undefined;
}

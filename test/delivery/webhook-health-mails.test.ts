import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { because } from '../../src/domain/delivery/causes.ts';
import type { Database } from '../../src/store/database/database.ts';
import { findWebhook } from '../../src/store/webhooks/webhooks.ts';
import { oneEngine, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const five = [{}, {}, {}, {}, {}];
const operatorEmail = 'operator@example.com';

describe.each(oneEngine('postgres'))('mails about a webhook that fails, on %s', (engine) => {
  it('go to the operator and to confirmed owners when it begins, and when it works again, once each', async () => {
    await using database = await openTestDatabase(engine);
    let works = false;
    await using receiver = await startReceiver(
      (_, response) => void response.writeHead(works ? 204 : 500).end(),
    );
    const form = await givenForm(database, deliveredByWebhook);
    const { projectId } = form;
    await givenForm(database, { projectId, createdBy: 'public', ownerEmail: 'stranger@example.com' });
    await givenForm(database, { projectId, ownerEmail: 'unconfirmed@example.com', ownerConfirmedAt: null });
    const webhook = await givenWebhook(database, form, { url: `${receiver.url}/secret-path` });
    await using delivery = startDelivery(database, { settings: { schedule: [0], operatorEmail } });
    const fail = async (count = 5) => {
      await givenSubmissions(database, form, five.slice(0, count), delivery);
      await settled(database);
    };
    const expectMails = async (count: number) => {
      await until(async () => mailsIn(delivery).length === count && (await settled(database)));
      return mailsIn(delivery);
    };

    await fail(4);
    expect(mailsIn(delivery)).toEqual([]);
    await fail(1);
    const begun = await expectMails(2);
    // Five more fail while its circuit breaker is closed again: it is the same failure.
    await database.execute('update webhooks set open_until = null');
    await fail();
    works = true;
    await database.execute('update webhooks set open_until = null');
    await fail(1);
    const ended = (await expectMails(4)).slice(2);
    await fail(2);
    // Within the hour it is not reported again.
    works = false;
    await fail();
    await database.execute('update webhooks set open_until = null');
    works = true;
    await fail(1);
    const all = mailsIn(delivery);

    const to = (mails: string[]) => mails.map((mail) => /^To: (.*)$/m.exec(mail)?.[1] ?? '').sort();
    expect(to(begun)).toEqual([operatorEmail, 'owner@example.com']);
    expect(to(ended)).toEqual([operatorEmail, 'owner@example.com']);
    for (const mail of begun) expect(mail).toContain('A webhook has begun to fail');
    for (const mail of ended) expect(mail).toContain('A webhook works again');
    for (const mail of all) {
      expect(mail).toContain(webhook.id);
      expect(mail).not.toContain('secret-path');
    }
    expect(all).toHaveLength(4);
    expect(await findWebhook(database, projectId, webhook.id)).toMatchObject({ announcedFailing: false });
  });

  it('go again after an hour, also of a webhook of one form, whose owner alone is asked', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    await givenForm(database, { projectId: form.projectId, ownerEmail: 'another@example.com' });
    await givenWebhook(database, form, { url: receiver.url, formId: form.id });
    await using delivery = startDelivery(database, { settings: { schedule: [0] } });
    await givenSubmissions(database, form, five, delivery);
    await until(() => mailsIn(delivery).length === 1);

    await database.execute(
      `update webhooks set announced_failing = false, open_until = null, failures_in_row = 0`,
    );
    await database.execute(`update events set created_at = now() - interval '61 minutes'`);
    await givenSubmissions(database, form, five, delivery);

    const toOwner = () => mailsIn(delivery).filter((mail) => mail.includes('To: owner@example.com'));
    await until(() => toOwner().length === 2);
    expect(mailsIn(delivery)).toHaveLength(2);
  });

  it('do not go of webhooks of forms made without a key, of callbacks, or to who has stopped them', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const stranger = await givenForm(database, { ...deliveredByWebhook, createdBy: 'public' });
    await givenWebhook(database, stranger, { url: receiver.url, formId: stranger.id, keyless: true });
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url, formId: form.id });
    await database.execute(
      `insert into mail_stops (address, form_id, created_at) values ('operator@example.com', $1, now())`,
      [form.projectId],
    );
    await using delivery = startDelivery(database, { settings: { schedule: [0], operatorEmail } });
    await givenSubmissions(database, stranger, five, delivery);
    await givenSubmissions(database, form, five, delivery);

    await until(() => mailsIn(delivery).length === 1);
    await settled(database);

    const logged = await database.select(
      `select receiver, status, error from deliveries where channel = 'mail' order by receiver`,
    );
    expect(logged).toMatchObject([
      { receiver: operatorEmail, status: 'failed', error: because('mail_stopped').error },
      { receiver: 'owner@example.com', status: 'delivered' },
    ]);
  });

  it('are committed with the results that cause them: a process that dies in between loses none', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    // It stores results and makes no mails of events, as one that dies right after.
    const deaf: Database = {
      ...database,
      select: (sql, ...rest) =>
        sql.includes('octet_length(body)') ? Promise.resolve([]) : database.select(sql, ...rest),
    };
    {
      await using dying = startDelivery(deaf, { settings: { schedule: [0], operatorEmail } });
      await givenSubmissions(database, form, five, dying);
      await until(async () => (await database.select('select id from delivery_queue')).length === 0);
      expect(mailsIn(dying)).toEqual([]);
    }

    await using next = startDelivery(database, { settings: { schedule: [0], operatorEmail } });

    await until(() => mailsIn(next).length === 2);
  });

  it('are one pair for any number of processes that store failures at once', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(500).end());
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    await using first = startDelivery(database, { settings: { schedule: [0], operatorEmail } });
    await using second = startDelivery(database, { settings: { schedule: [0], operatorEmail } });
    await Promise.all([first, second].map((each) => givenSubmissions(database, form, five, each)));
    await until(() => mailsIn(first).length + mailsIn(second).length === 2);
    await settled(database);

    expect(await database.select(`select id from events where type = 'webhook.failing'`)).toHaveLength(1);
    expect(mailsIn(first).length + mailsIn(second).length).toBe(2);
  });
});

/** Waits until nothing is to be sent, and no event waits for its mails. */
async function settled(database: Database): Promise<true> {
  return until(async () => {
    const [row] = await database.select(
      `select (select count(*) from delivery_queue)::int + (select count(*) from events where fanned_out_at is null)::int as left`,
    );
    return row?.left === 0;
  });
}

/** Oldest first, without those that are still being written under another name. */
function mailsIn({ options }: { options: { settings: { mailDir: string } } }): string[] {
  const { mailDir } = options.settings;
  return readdirSync(mailDir)
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .map((name) => readFileSync(join(mailDir, name), 'utf8').replaceAll('=\r\n', ''));
}

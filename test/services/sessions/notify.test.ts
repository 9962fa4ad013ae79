import { beforeEach, describe, expect, it } from 'vitest';
import { because } from '../../../src/domain/delivery/causes.ts';
import { engines, oneEngine } from '../../support/database.ts';
import { startMailServer } from '../../support/mail-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startService, type TestService } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { awaitWholeDay } from '../../support/utc-day.ts';

const schema = { type: 'object', properties: { ok: { type: 'boolean', title: 'Shall we deploy 2.1?' } } };
const ada = 'Ada@example.com';

describe.each(engines)('notifications of sessions on %s', (engine) => {
  beforeEach(awaitWholeDay);

  async function givenService(env = {}) {
    await using opened = new AsyncDisposableStack();
    const mails = opened.use(await startMailServer());
    const service = opened.use(await startService({ engine, env: { SMTP_URL: mails.url, ...env } }));
    const owned = opened.move();
    return { mails, service, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  }

  const ask = (service: TestService, notify: object, more = {}, options = {}) =>
    service.post('/v1/sessions', { schema, notify, ...more }, options);

  async function given(service: TestService, notify: object, more = {}) {
    const { json } = await ask(service, notify, more);
    expect(json.error).toBeUndefined();
    return json.session;
  }

  const read = async (service: TestService, id: string) =>
    (await service.get(`/v1/sessions/${id}`)).json.session;

  /** Lets the reminders that wait become due. */
  async function letRemindersBeDue(service: TestService) {
    await service.database.execute(`update delivery_queue set due_at = now() where due_at > now()`);
    await service.database.notify('delivery');
  }

  const waiting = async (service: TestService) =>
    Number((await service.database.select('select count(*) as count from delivery_queue'))[0]?.count);

  it('go to so many mailboxes a day that have not confirmed, once for each, and to others freely', async () => {
    await using world = await givenService({ NOTIFY_MAILBOXES_PER_KEY: '2' });
    const { service, mails } = world;
    await service.givenPublishedForm();
    await service.database.execute(
      `update forms set owner_confirmed_at = now(), owner_email = 'owner@example.com'`,
    );
    const before = mails.mails.length;
    await given(service, { email: 'one@example.com' });
    await given(service, { email: 'two@example.com' });
    await given(service, { email: 'ONE+tag@example.com' });
    await given(service, { email: 'Owner@example.com' });

    const refused = await ask(service, { email: 'three@example.com' });
    const other = await ask(
      service,
      { email: 'three@example.com' },
      {},
      { key: await service.givenKey(['sessions:write', 'sessions:notify']) },
    );

    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.json.error.message).toMatch(/2 mailboxes/);
    expect(other.status).toBe(201);
    const count = `select count(*) as count from sessions`;
    expect(Number((await service.database.select(count))[0]?.count)).toBe(5);
    await mails.expectMails(before + 5);
  });

  it('count with the key that made the key, but for what the operator’s makes', async () => {
    await using world = await givenService({ NOTIFY_MAILBOXES_PER_KEY: '2' });
    const { service } = world;
    const scopes = ['keys:write', 'sessions:write', 'sessions:notify'];
    const makeBy = async (key: string) =>
      (await service.post('/v1/keys', { name: 'made', scopes }, { key })).json.secret;
    const makers = [await service.givenKey(scopes), await service.givenKey(['*'], 'tenant')];
    const statusOf = async (email: string, key: string) =>
      (await ask(service, { email }, {}, { key })).status;
    const statuses = [];
    for (const maker of makers) {
      const child = await makeBy(maker);
      const grandchild = await makeBy(child);
      const other = await makeBy(maker);
      statuses.push(
        await statusOf('one@example.com', grandchild),
        await statusOf('two@example.com', child),
        await statusOf('three@example.com', other),
        await statusOf('three@example.com', maker),
        await statusOf('one@example.com', other),
      );
    }

    expect(statuses).toEqual([201, 201, 429, 429, 201, 201, 201, 429, 429, 201]);
  });

  it('reach a mailbox ten times a day over the whole service; the rest wait', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const made: { id: string }[] = [];
    for (let n = 0; n < 12; n += 1) made.push(await given(service, { email: `ada+${n}@example.com` }));

    await mails.expectMails(10);
    const waits = await until(async () => {
      const states = await Promise.all(made.map(({ id }) => read(service, id)));
      const late = states.filter(({ notify }) => notify.error === because('questions_used_up').error);
      return late.length === 2 && late;
    });

    expect(waits.map(({ notify }) => [notify.sent_at, notify.failed])).toEqual([
      [null, false],
      [null, false],
    ]);
    expect(mails.mails).toHaveLength(10);
  });

  // The database has no part in what follows.
  if (!oneEngine('postgres').includes(engine)) return;

  it('mail the question, the project and the link at once, and remind after the given seconds', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const made = await given(service, { email: ada, message: 'It is urgent.', remind_after: [3600, 7200] });

    const [first] = await mails.expectMails(1);
    await until(async () => (await waiting(service)) === 2);
    const due = await service.database.select(
      `select round(extract(epoch from due_at - created_at)) as after from delivery_queue order by due_at`,
    );
    await letRemindersBeDue(service);
    await mails.expectMails(3);

    expect(first?.recipients).toEqual([ada]);
    expect(first?.subject).toMatch(/^A question for you: /);
    expect(first?.text).toContain('“default” asks you to answer this:');
    expect(first?.text).toContain('It is urgent.');
    expect(first?.text).toContain('• Shall we deploy 2.1?');
    expect(first?.text).toContain(made.url);
    expect(due.map(({ after }) => Number(after))).toEqual([3600, 7200]);
    expect(mails.mails.slice(1).map(({ subject }) => subject?.startsWith('Reminder: '))).toEqual([
      true,
      true,
    ]);
    const state = await until(async () => {
      const { notify } = await read(service, made.id);
      return (await waiting(service)) === 0 && notify;
    });
    expect(state).toEqual({
      email: ada,
      message: 'It is urgent.',
      remind_after: [3600, 7200],
      sent_at: expect.any(String),
      failed: false,
      stopped: false,
    });
    expect(made.notify).toMatchObject({ sent_at: null, failed: false, stopped: false });
  });

  it('remind nobody of a session that has ended, however, and keep no trace of that', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const made = [];
    for (let n = 0; n < 4; n += 1) {
      made.push(
        await given(
          service,
          { email: `p${n}@example.com`, remind_after: [3600] },
          { allow_decline: true, expires_in: 600 },
        ),
      );
    }
    await mails.expectMails(4);
    const [submitted, cancelled, declined, expired] = made;
    const expire = 'update sessions set expires_at = now() where id = $1';
    await service.database.execute(expire, [expired.id]);
    await service.post(`/v1/sessions/${submitted.id}/submit`, { answers: { ok: true } });
    await service.post(`/v1/sessions/${cancelled.id}/cancel`);
    await service.post(`/v1/sessions/${declined.id}/decline`);
    await until(async () => (await read(service, expired.id)).status === 'expired');

    await letRemindersBeDue(service);
    await until(async () => (await waiting(service)) === 0);

    expect(mails.mails).toHaveLength(4);
    for (const { id } of made) {
      const { notify } = await read(service, id);
      expect(notify).toMatchObject({ failed: false, stopped: false, sent_at: expect.any(String) });
      expect(notify).not.toHaveProperty('error');
    }
    const logged = await service.database.select(`select error from deliveries where error is not null`);
    expect(logged).toEqual([]);
  });

  it('obey stop links, for all questions of the project', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const first = await given(service, { email: ada, remind_after: [3600] });
    const [mail] = await mails.expectMails(1);
    const link = /<(http\S+)>/.exec(
      mail?.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '',
    )?.[1];

    const page = await fetch(String(link));
    const stopped = await fetch(String(link), {
      method: 'POST',
      body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
    });
    const other = await given(
      service,
      { email: ada },
      { schema: undefined, definition: { fields: [{ label: 'Why?' }] } },
    );
    await letRemindersBeDue(service);
    await until(async () => (await waiting(service)) === 0);

    expect(await page.text()).toContain('default');
    expect(stopped.ok).toBe(true);
    expect(mails.mails).toHaveLength(1);
    for (const { id } of [first, other]) {
      expect((await read(service, id)).notify).toMatchObject({
        stopped: true,
        failed: false,
        error: 'The address has stopped these emails.',
      });
    }
  });

  it.each([
    { cause: 'mail_stopped', error: 'In other words.', state: { stopped: true, failed: false } },
    // As instances of before the column store it.
    {
      cause: null,
      error: 'The address has stopped these emails.',
      state: { stopped: true, failed: false },
    },
    { cause: null, error: 'In other words.', state: { stopped: false, failed: true } },
    { cause: 'session_ended', error: 'In other words.', state: { stopped: false, failed: false } },
  ])(
    'are told by what is stored of why they were not sent: $cause, $error',
    async ({ cause, error, state }) => {
      await using world = await givenService();
      const { service, mails } = world;
      const { id } = await given(service, { email: ada });
      await mails.expectMails(1);
      await until(async () => (await waiting(service)) === 0);

      await service.database.execute("update deliveries set status = 'failed', cause = $1, error = $2", [
        cause,
        error,
      ]);

      expect((await read(service, id)).notify).toMatchObject(state);
    },
  );

  it('say that a mail failed for good', async () => {
    await using mails = await startMailServer(() => '550 5.1.1 No such user');
    await using service = await startService({ engine, env: { SMTP_URL: mails.url } });
    const { id } = await given(service, { email: ada });

    const notify = await until(async () => {
      const state = (await read(service, id)).notify;
      return state.failed && state;
    });

    expect(notify).toMatchObject({ sent_at: null, stopped: false, error: 'The mail server answered 550.' });
  });

  it('quote a hostile asker as plain text, without links, markup or headers', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const hostile =
      'Log in at https://evil.example/x or evil.example <a href="https://evil.example">here</a>';
    const inHeader = 'Hi\r\nBcc: eve@evil.example\r\n\r\n=?utf-8?q?evil.example?=';
    await given(
      service,
      { email: ada, message: hostile },
      {
        schema: undefined,
        context: { title: hostile.slice(0, 100) },
        definition: { name: 'www.evil.example =?utf-8?q?x?=', fields: [{ label: hostile.slice(0, 100) }] },
      },
    );
    const refused = await ask(service, { email: `ada@example.com\r\nBcc: eve@evil.example` });
    const named = { schema: undefined, definition: { name: inHeader, fields: [{ label: 'x' }] } };
    await given(service, { email: ada, message: inHeader }, named);

    const received = await mails.expectMails(2);

    expect(refused.json.error.details).toMatchObject([{ path: 'notify.email' }]);
    for (const { html = '', text = '', subject = '', source, headers } of received) {
      const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);
      expect(links).toHaveLength(2);
      expect(
        links.map((href) => /^http:\/\/(127\.0\.0\.1|localhost):\d+\/(f|mail)\//.test(String(href))),
      ).toEqual([true, true]);
      expect(`${text} ${subject}`).not.toMatch(/https:\/\/evil|evil\.example/);
      expect(html).not.toContain('<a href="https://evil');
      expect(headers.map(({ key }) => key)).not.toContain('bcc');
      expect(source.slice(0, source.indexOf('\r\n\r\n'))).not.toMatch(/^Bcc:/im);
      expect(subject).not.toContain('evil');
    }
  });

  it('end with the key that asked, and with its form', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const key = await service.givenKey(['sessions:write', 'sessions:notify']);
    const form = await service.givenPublishedForm();
    const notify = { email: ada, remind_after: [3600] };
    const byKey = (await ask(service, notify, {}, { key })).json.session;
    const ofForm = (await service.post(`/v1/forms/${form.id}/sessions`, { notify })).json.session;
    await until(async () => (await waiting(service)) === 2);

    const { keys } = (await service.get('/v1/keys')).json;
    const { id } = keys.find(({ last4 }: { last4: string }) => key.endsWith(last4));
    await service.delete(`/v1/keys/${id}`);
    await service.post(`/v1/forms/${form.id}/archive`);
    await letRemindersBeDue(service);
    await until(async () => (await waiting(service)) === 0);

    expect(mails.mails.filter(({ recipients }) => recipients.includes(ada))).toHaveLength(2);
    expect((await read(service, byKey.id)).notify).toMatchObject({
      failed: true,
      error: because('key_gone').error,
    });
    expect((await read(service, ofForm.id)).notify).toMatchObject({
      failed: true,
      error: because('form_closed').error,
    });
  });

  it('need the scope, a key, somebody to notify and a webhook of the project that listens', async () => {
    await using world = await givenService({ REQUIRE_API_KEY: 'false' });
    const { service, mails } = world;
    const form = await service.givenPublishedForm();
    const writer = await service.givenKey(['sessions:write']);
    const url = 'https://example.com/hook';
    const webhook = async (events: string[], options = {}) =>
      (await service.post('/v1/webhooks', { url, events, ...options })).json.webhook.id;
    const deaf = await webhook(['submission.created']);
    const otherForm = await service.givenPublishedForm();
    const ofOther = await webhook(['session.notified'], { form_id: otherForm.id });
    const strangers = await service.givenKey(['*'], 'strangers');
    const foreign = (
      await service.post('/v1/webhooks', { url, events: ['session.notified'] }, { key: strangers })
    ).json.webhook.id;
    const path = `/v1/forms/${form.id}/sessions`;
    const problem = async (notify: object) => {
      const { status, json } = await service.post(path, { notify });
      expect(status).toBe(422);
      return json.error.details.map((one: { path: string; message: string }) => [one.path, one.message]);
    };

    expect((await ask(service, { email: ada }, {}, { key: null })).status).toBe(401);
    expect((await service.post(path, { notify: { email: ada } }, { key: null })).status).toBe(401);
    const lacking = await ask(service, { email: ada }, {}, { key: writer });
    expect(lacking.json.error.reason).toBe('insufficient_scope');
    expect(lacking.json.error.message).toContain('sessions:notify');
    expect(await problem({})).toEqual([['notify', 'Expected email or webhook_id']]);
    expect(await problem({ email: 'Ada <ada@example.com>' })).toEqual([
      ['notify.email', 'Expected an email address'],
    ]);
    expect(await problem({ webhook_id: foreign })).toEqual([
      ['notify.webhook_id', 'There is no such webhook for this session'],
    ]);
    expect(await problem({ webhook_id: ofOther })).toEqual([
      ['notify.webhook_id', 'There is no such webhook for this session'],
    ]);
    expect(await problem({ webhook_id: deaf })).toEqual([
      ['notify.webhook_id', 'This webhook has not registered session.notified'],
    ]);
    expect(await problem({ email: ada, message: 'x'.repeat(2001) })).toEqual([
      ['notify.message', 'Expected at most 2000 characters'],
    ]);
    expect(await problem({ email: ada, remind_after: [60, 60] })).toEqual([
      ['notify.remind_after.1', 'Expected more seconds than before'],
    ]);
    expect((await problem({ email: ada, remind_after: [1, 2, 3, 4] }))[0][0]).toBe('notify.remind_after');
    expect(mails.mails.filter(({ recipients }) => recipients.includes(ada))).toEqual([]);
  });

  it('repeat nothing with the same idempotency key', async () => {
    await using world = await givenService();
    const { service, mails } = world;
    const headers = { 'idempotency-key': 'once' };
    const one = await ask(service, { email: ada }, {}, { headers });
    const again = await ask(service, { email: ada }, {}, { headers });
    const changed = await ask(service, { email: 'bob@example.com' }, {}, { headers });

    await until(async () => (await waiting(service)) === 0);

    expect(again.json.session.id).toBe(one.json.session.id);
    expect(changed.status).toBe(409);
    expect(mails.mails).toHaveLength(1);
  });

  it('call the webhook that is named, alone, with the link, and with an id of its own for each reminder', async () => {
    await using world = await givenService();
    const { service } = world;
    await using receiver = await startReceiver();
    const events = ['session.notified'];
    const hook = (path: string, more = {}) =>
      service.post('/v1/webhooks', { url: `${receiver.url}/${path}`, events, ...more });
    const named = (await hook('named')).json.webhook.id;
    await hook('other');
    const template = {
      text: 'See {{data.url}}: {{data.message}}',
      alone: '{{data.message}}',
      n: '{{data.reminder}}',
    };
    const templated = (await hook('templated', { template })).json.webhook.id;
    const message = '<!channel> [x](https://evil.example) *bold*';
    const metadata = { '@here': ['<b>', { deep: 'https://evil.example' }], n: 1 };
    const made = await given(service, { webhook_id: named, message, remind_after: [3600] }, { metadata });
    const other = await given(service, { webhook_id: templated, message });
    await receiver.expectRequests(2);
    await letRemindersBeDue(service);
    await receiver.expectRequests(3);

    const bodies = receiver.received
      .filter(({ path }) => path === '/named')
      .map(({ body }) => JSON.parse(body));
    const [first, reminder] = bodies;
    expect(first).toMatchObject({
      event: 'session.notified',
      data: { sessionId: made.id, formId: made.form_id, url: made.url, project: 'default', reminder: 0 },
    });
    expect(reminder.data.reminder).toBe(1);
    expect(reminder.id).not.toBe(first.id);
    expect(JSON.stringify(first.data)).not.toMatch(/<|\*|https:\/\/evil|\[x\]|@here/);
    expect(first.data.metadata.n).toBe(1);
    const shown = JSON.parse(receiver.received.find(({ path }) => path === '/templated')?.body ?? '');
    expect(shown.text).toContain(other.url);
    expect(JSON.stringify(shown)).not.toMatch(/<|\*|https:\/\/evil|\[x\]/);
    expect(shown.n).toBe(0);
    expect(receiver.received.map(({ path }) => path)).not.toContain('/other');
    const state =
      (await until(async () => (await waiting(service)) === 0)) && (await read(service, made.id)).notify;
    expect(state).toMatchObject({ webhook_id: named, failed: false, sent_at: expect.any(String) });
  });
});

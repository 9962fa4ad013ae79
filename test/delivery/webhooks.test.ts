import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/store/database/database.ts';
import { findWebhook } from '../../src/store/webhooks/webhooks.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
  testSecret,
} from '../support/delivery.ts';
import { startReceiver } from '../support/receiver.ts';
import { freePort } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { verifySignature } from '../support/verify-signature.ts';

describe.each(engines)('webhooks on %s', (engine) => {
  it('sends each event once, signed so that public libraries accept it', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: `${receiver.url}/hook?a=1` });
    const [eventId = ''] = await givenSubmissions(database, form, [{ name: 'Ada' }]);
    await using _ = startDelivery(database);

    const [request] = await receiver.expectRequests(1);
    const [logged, ...others] = await expectFinished(database, form, 1);

    const headers = Object.fromEntries(
      Object.entries(request?.headers ?? {}).map(([name, value]) => [name, String(value)]),
    );
    const body = request?.body ?? '';
    expect(request?.path).toBe('/hook?a=1');
    expect(JSON.parse(body)).toMatchObject({
      id: eventId,
      event: 'submission.created',
      data: { answers: { name: 'Ada' } },
    });
    expect(headers['content-type']).toBe('application/json');
    expect(headers['webhook-id']).toBe(eventId);
    expect(() => new StandardWebhook(testSecret).verify(body, headers)).not.toThrow();
    const header = headers['x-service-signature'] ?? '';
    expect(verifySignature({ header, body, secret: testSecret, now: Date.now() })).toBe(true);
    expect(verifySignature({ header, body: `${body} `, secret: testSecret, now: Date.now() })).toBe(false);
    expect(logged?.delivery).toMatchObject({
      webhookId: webhook.id,
      status: 'delivered',
      attemptCount: 1,
      responseStatus: 204,
    });
    expect(logged?.attempts).toMatchObject([
      { number: 1, status: 'delivered', responseStatus: 204, error: null },
    ]);
    expect(others).toEqual([]);
  });

  it('sends what its own process stores without asking the database for it', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: receiver.url });
    const statements: string[] = [];
    const watched: Database = {
      ...database,
      execute: (sql, ...rest) => {
        statements.push(sql);
        return database.execute(sql, ...rest);
      },
    };
    await using delivery = startDelivery(watched);
    await givenSubmissions(database, form, [{}, {}, {}], delivery);

    const logged = await expectFinished(database, form, 3);

    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set(logged.map((each) => each.delivery.eventId)),
    );
    expect(logged.map((each) => each.delivery.status)).toEqual(['delivered', 'delivered', 'delivered']);
    expect(statements.filter((sql) => sql.includes('set leased_until = now() +'))).toEqual([]);
  });

  it.each([
    ['stored by this process', 30],
    ['that waited in the queue', 600],
  ])(
    'sends what comes to forms with a key past those without one, %s, of a slow webhook',
    async (how, count) => {
      await using database = await openTestDatabase(engine);
      const own = await givenForm(database, deliveredByWebhook);
      const origin = { projectId: own.projectId, createdBy: 'public', createdFrom: 'network' };
      const strangers = await givenForm(database, { ...deliveredByWebhook, ...origin });
      const isOwn = ({ body }: { body: string }) => body.includes(own.id);
      await using receiver = await startReceiver((hit, response) => void (isOwn(hit) && response.end()));
      await givenWebhook(database, own, { url: receiver.url });
      const answers = Array.from({ length: count }, () => ({}));

      if (how === 'that waited in the queue') {
        await givenSubmissions(database, strangers, answers);
        await givenSubmissions(database, own, [{}]);
      }
      await using delivery = startDelivery(database);
      if (how === 'stored by this process') {
        await givenSubmissions(database, strangers, answers, delivery);
        await receiver.expectRequests(1);
        await givenSubmissions(database, own, [{}], delivery);
      }

      // Before the first of the others is given up.
      await until(() => receiver.received.some(isOwn), 8_000);
    },
  );

  it('tries again by the schedule with the same event id and body, and gives up at its end', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((hit, response) => {
      response.writeHead(hit.path === '/never' || hit.count < 3 ? 500 : 200).end('not yet');
    });
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: `${receiver.url}/later` });
    await using delivery = startDelivery(database);
    // The first attempt is made of what is in memory, the others of what is stored.
    await givenSubmissions(database, form, [{ zeta: 'é', alpha: ['b', 1] }], delivery);

    const [logged] = await expectFinished(database, form, 1);

    expect(logged?.delivery).toMatchObject({ status: 'delivered', attemptCount: 3, error: null });
    expect(logged?.attempts.map(({ status, responseBody }) => [status, responseBody])).toEqual([
      ['failed', 'not yet'],
      ['failed', 'not yet'],
      ['delivered', 'not yet'],
    ]);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);

    await givenWebhook(database, form, { url: `${receiver.url}/never` });
    const [, second] = [
      await givenSubmissions(database, form, [{}]),
      await expectFinished(database, form, 3),
    ];
    const failed = second.find(({ delivery }) => delivery.url?.endsWith('/never'));
    expect(failed?.delivery).toMatchObject({
      status: 'failed',
      attemptCount: 3,
      error: 'Answered 500.',
      dueAt: null,
    });
  });

  it('turns a webhook off whose receiver answers 410, and sends it nothing more', async () => {
    await using database = await openTestDatabase(engine);
    await using receiver = await startReceiver((_, response) => void response.writeHead(410).end());
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: receiver.url });
    await givenSubmissions(database, form, [{}]);
    await using delivery = startDelivery(database);
    await expectFinished(database, form, 1);

    await expect
      .poll(() => findWebhook(database, form.projectId, webhook.id))
      .toMatchObject({ active: false, disabledReason: 'Its receiver answered 410 Gone.' });
    await givenSubmissions(database, form, [{}]);
    delivery.notify();
    await using witness = await startReceiver();
    await givenWebhook(database, form, { url: witness.url });
    await givenSubmissions(database, form, [{}]);
    delivery.notify();
    await witness.expectRequests(1);
    expect(receiver.received).toHaveLength(1);
  });

  it('records what a receiver did: hang up, redirect, hold the answer back, send far too much', async () => {
    await using database = await openTestDatabase(engine);
    await using canary = await startReceiver();
    await using receiver = await startReceiver(({ path, request }, response) => {
      if (path === '/reset') request.socket.resetAndDestroy();
      else if (path === '/redirect') response.writeHead(302, { location: canary.url }).end();
      else if (path === '/huge') {
        response.writeHead(200);
        const chunk = Buffer.alloc(1 << 20, 'x');
        const more = () => {
          while (!response.destroyed && response.write(chunk));
        };
        response.on('drain', more);
        more();
      } else {
        response.writeHead(200).write('slow');
      }
    });
    const form = await givenForm(database, deliveredByWebhook);
    for (const path of ['/reset', '/redirect', '/huge', '/slow']) {
      await givenWebhook(database, form, { url: `${receiver.url}${path}` });
    }
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { schedule: [0] } });

    const logged = await expectFinished(database, form, 4);

    const of = (path: string) => logged.find(({ delivery }) => delivery.url?.endsWith(path));
    expect(of('/reset')?.delivery.error).toBe('The connection was reset.');
    expect(of('/redirect')?.delivery).toMatchObject({
      status: 'failed',
      responseStatus: 302,
      error: `Answered 302 with a redirect to ${new URL(canary.url).host}. Only a 2xx answer confirms that it was received.`,
    });
    expect(of('/huge')?.delivery.status).toBe('delivered');
    expect(of('/huge')?.attempts[0]?.responseBody).toBe('x'.repeat(2048));
    expect(of('/slow')?.delivery.status).toBe('delivered');
    expect(of('/slow')?.attempts[0]?.responseBody).toBe('slow');
    expect(canary.connections()).toBe(0);
  });

  it('says of a receiver that can’t be called, or answers something else, why', async () => {
    await using database = await openTestDatabase(engine);
    await using ssh = await startSpeaking('SSH-2.0-OpenSSH_9.2\r\n');
    await using interim = await startSpeaking(
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
    );
    await using twice = await startSpeaking(
      'HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n',
    );
    await using closing = await startSpeaking('');
    await using tls = await startTls();
    await using receiver = await startReceiver((_, response) => {
      response.writeHead(200, { 'x-large': 'x'.repeat(60_000) }).end();
    });
    const nobody = await freePort();
    const causes: [url: string, error: string | null][] = [
      [`http://127.0.0.1:${nobody}/`, 'The connection was refused.'],
      [`http://127.0.0.1:${closing.port}/`, 'The connection was closed before an answer came.'],
      [
        `http://127.0.0.1:${ssh.port}/`,
        'The receiver answered, but not in HTTP: Expected HTTP/, RTSP/ or ICE/.',
      ],
      [`http://127.0.0.1:${interim.port}/`, 'The receiver answered, but not in HTTP: 100 Continue.'],
      [
        `http://127.0.0.1:${twice.port}/`,
        'The receiver answered, but not in HTTP: Duplicate Content-Length.',
      ],
      [`https://127.0.0.1:${ssh.port}/`, 'TLS failed: wrong version number.'],
      [`https://127.0.0.1:${tls.port}/`, 'The TLS certificate is self-signed.'],
      [`http://no-such-host.invalid/`, 'The host name is not known.'],
      [`${receiver.url}/`, null],
    ];
    const form = await givenForm(database, deliveredByWebhook);
    for (const [url] of causes) await givenWebhook(database, form, { url });
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { schedule: [0] } });

    const logged = await expectFinished(database, form, causes.length);

    const told = new Map(logged.map(({ delivery }) => [delivery.url, delivery.error]));
    expect(causes.map(([url]) => [url, told.get(url)])).toEqual(causes);
  });

  it.each([302, 303])(
    'asks a receiver that answers %i once more after an hour, and counts it as no failure',
    async (status) => {
      await using database = await openTestDatabase(engine);
      await using receiver = await startReceiver((_, response) => {
        response.writeHead(status, { location: 'https://elsewhere.example/done?a=b' }).end();
      });
      const form = await givenForm(database, deliveredByWebhook);
      const webhook = await givenWebhook(database, form, { url: receiver.url });
      await givenSubmissions(database, form, [{}]);
      await using delivery = startDelivery(database);
      const waiting = await until(async () => {
        const [row] = await database.select(
          `select attempt_count, due_at > now() + interval '59 minutes' as later from delivery_queue`,
        );
        return row?.attempt_count === 1 && row;
      });
      await database.execute('update delivery_queue set due_at = now()');
      delivery.notify();

      const [logged] = await expectFinished(database, form, 1);

      expect(waiting.later).toBe(true);
      expect(receiver.received).toHaveLength(2);
      expect(logged?.delivery).toMatchObject({ status: 'failed', attemptCount: 2, responseStatus: status });
      expect(logged?.delivery.error).toContain('with a redirect to elsewhere.example.');
      expect(await findWebhook(database, form.projectId, webhook.id)).toMatchObject({
        active: true,
        failingSince: null,
      });
    },
  );

  it('calls a receiver that refuses connections one at a time, and all at once when it is back', async () => {
    await using database = await openTestDatabase(engine);
    const port = await freePort();
    const form = await givenForm(database, deliveredByWebhook);
    const webhook = await givenWebhook(database, form, { url: `http://127.0.0.1:${port}`, formId: form.id });
    await using delivery = startDelivery(database, { settings: { schedule: [0, 3600] } });
    const answers = Array.from({ length: 600 }, () => ({}));
    await givenSubmissions(database, form, answers, delivery);
    const refused = async () => {
      const [row] = await database.select(`select count(*)::int as n from attempts where status = 'failed'`);
      return Number(row?.n);
    };
    // So many failures in a row that it is left alone for a while.
    await until(async () => (await findWebhook(database, form.projectId, webhook.id))?.openUntil);
    const whileDown = await refused();

    await using receiver = await startReceiver(undefined, port);
    // One that was refused just before may be stored only now.
    await until(async () => receiver.received.length + (await refused()) === 600);

    expect(whileDown).toBeLessThan(60);
    expect(await findWebhook(database, form.projectId, webhook.id)).toMatchObject({ active: true });
  });

  it('keeps a receiver with a long queue of time-outs from delaying another one', async () => {
    await using database = await openTestDatabase(engine);
    const held = { now: 0, most: 0 };
    await using dead = await startReceiver((_, response) => {
      held.now += 1;
      held.most = Math.max(held.most, held.now);
      response.once('close', () => (held.now -= 1));
    });
    await using alive = await startReceiver();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: dead.url, formId: form.id });
    await givenSubmissions(
      database,
      form,
      Array.from({ length: 1000 }, () => ({})),
    );
    await using delivery = startDelivery(database);
    await dead.expectRequests(1);

    const other = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, other, { url: alive.url });
    // Whoever waits for the dead receiver waits for its time-out of 10 s.
    for (let sent = 1; sent <= 10; sent++) {
      await givenSubmissions(database, other, [{}]);
      delivery.notify();
      await alive.expectRequests(sent, 9_000);
    }
    expect(held.most).toBeLessThanOrEqual(4);
    await delivery.stop(0);
  });
});

/** A server that says a text to whoever has said something, and ends. */
async function startSpeaking(text: string) {
  return listening(createServer((socket) => socket.once('data', () => socket.end(text))));
}

async function startTls() {
  const [key, cert] = ['key', 'crt'].map((end) => readFileSync(join(TLS_FOLDER, `first.${end}`)));
  return listening(createTlsServer({ key, cert }));
}

async function listening(server: Server) {
  server.on('connection', (socket) => socket.on('error', () => undefined));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

const TLS_FOLDER = join(import.meta.dirname, '../support/tls');

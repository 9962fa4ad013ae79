import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createFanOut } from '../../src/delivery/fan-out/fan-out.ts';
import { resolveWith } from '../../src/delivery/webhook/connector.ts';
import type { Database } from '../../src/store/database/database.ts';
import { isLocalFault, withRetries } from '../../src/store/database/faults.ts';
import { listDeliveries } from '../../src/store/deliveries/log.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { until } from '../support/until.ts';

describe.each(engines)('while names can’t be looked up, on %s', (engine) => {
  it('no mail is given up that can’t be made for want of the database', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{ name: 'Ada' }, { name: 'Bo' }]);
    await using delivery = startDelivery(database, { settings: { schedule: [3600] } });
    await delivery.stop(0);
    await database.execute('update events set fanned_out_at = null');
    await database.execute('delete from delivery_queue');
    let isAway = true;
    const lookUp = () => Promise.reject(failure('EAI_AGAIN'));
    const named: Database = {
      ...database,
      read: (work) => (isAway ? withRetries(lookUp, () => true) : database.read(work)),
    };
    const fanOut = createFanOut({ ...delivery.options, database: named });

    await expect(fanOut()).rejects.toMatchObject({ name: 'DatabaseUnavailable' });
    isAway = false;
    const { mails } = await fanOut();

    expect(mails).toBe(2);
    const { items } = await listDeliveries(database, { formId: form.id }, { limit: 10 });
    expect(items.map(({ delivery: { status } }) => status)).toEqual(['pending', 'pending']);
  });

  it('a webhook waits without a step of its schedule, and takes one for a name that there is not', async () => {
    await using database = await openTestDatabase(engine);
    await using silent = await startSilentNameServer();
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: 'https://receiver.test/' });
    await givenSubmissions(database, form, [{}]);
    let isAnswered = false;
    const unanswered = resolveWith(silent.resolver);
    await using _ = startDelivery(database, {
      resolveHost: async (host) => (isAnswered ? [] : unanswered(host)),
      settings: { allowPrivate: false, schedule: [0, 60] },
    });
    const queued = async () => {
      const [row] = await database.select(
        'select step, attempt_count, error, due_at > now() as later from delivery_queue',
      );
      return row?.later === true && row;
    };

    const waiting = await until(queued);
    isAnswered = true;
    await database.execute('update delivery_queue set due_at = now()');
    const tried = await until(async () => {
      const row = await queued();
      return row && row.step === 1 && row;
    });

    expect(waiting).toMatchObject({
      step: 0,
      attempt_count: 0,
      error: 'Waits: the service could not try it.',
    });
    expect(tried).toMatchObject({ attempt_count: 1, error: 'The host name is not known.' });
  });

  it('a delivery a day old takes the steps of its schedule', async () => {
    await using database = await openTestDatabase(engine);
    const form = await givenForm(database, deliveredByWebhook);
    await givenWebhook(database, form, { url: 'https://receiver.test/' });
    await givenSubmissions(database, form, [{}]);
    const tomorrow = Date.now() + 25 * 60 * 60 * 1000;
    await using _ = startDelivery(database, {
      now: () => tomorrow,
      resolveHost: () => Promise.reject(failure('EAI_AGAIN')),
      settings: { allowPrivate: false },
    });

    await until(async () => (await database.select('select id from deliveries')).length === 1);

    const { items } = await listDeliveries(database, { formId: form.id }, { limit: 10 });
    expect(items).toMatchObject([
      { delivery: { status: 'failed', attemptCount: 0, error: 'The service could not try it.' } },
    ]);
  });
});

const transient = `EAI_AGAIN EMFILE ENFILE ENETUNREACH ENETDOWN ECONNABORTED EADDRNOTAVAIL
  53000 53100 53200 53300 53400`.split(/\s+/);

it.concurrent.each(transient)(
  '%s leaves the database out of reach for a while, and is no fault of the request',
  async (code) => {
    const statement = withRetries(
      () => Promise.reject(failure(code)),
      () => false,
    );

    await expect(statement).rejects.toMatchObject({ name: 'DatabaseUnavailable', cause: { code } });
  },
);

it('knows which faults are this machine’s, also of several addresses and by nodemailer', () => {
  const byNodemailer = Object.assign(new Error(), { code: 'EDNS', originalCode: 'EAI_AGAIN' });
  const refused = new AggregateError([failure('ENETUNREACH'), failure('ECONNREFUSED')]);
  const unreachable = new AggregateError([failure('ENETUNREACH'), failure('ENETUNREACH')]);

  expect([byNodemailer, unreachable, failure('EMFILE')].map(isLocalFault)).toEqual([true, true, true]);
  expect([refused, failure('ENOTFOUND'), failure('ESOCKET')].map(isLocalFault)).toEqual([
    false,
    false,
    false,
  ]);
});

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** A name server that answers nothing. */
async function startSilentNameServer() {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver({ timeout: 100, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return { resolver, [Symbol.asyncDispose]: async () => void socket.close() };
}

import { buildConnector } from 'undici';
import { expect, it } from 'vitest';
import { openTestDatabase } from '../support/database.ts';
import {
  deliveredByWebhook,
  expectFinished,
  givenForm,
  givenSubmissions,
  givenWebhook,
  startDelivery,
} from '../support/delivery.ts';
import { PUBLIC_IPV4, PUBLIC_IPV6, PUBLIC_NAT64 } from './hosts.ts';
import { countUnanswered, startInternet, startTlsReceiver } from './network.ts';

it.each([
  { slow: PUBLIC_IPV4, lost: PUBLIC_IPV6 },
  { slow: PUBLIC_IPV6, lost: PUBLIC_IPV4 },
])('reaches a receiver at $slow, though slowly, where $lost goes nowhere', async ({ slow, lost }) => {
  await using _ = await startInternet({ delayMs: SLOW_MS, lost: [lost] });
  await using receiver = await startTlsReceiver();

  for (const addresses of [
    [slow, lost],
    [lost, slow],
  ]) {
    const attempts = await deliverTo(receiver.url, addresses);

    expect(attempts).toMatchObject([{ number: 1, status: 'delivered', error: null }]);
    expect(countUnanswered()).toBe(0);
  }
  expect(receiver.requests).toEqual([slow, slow]);
});

it('calls a receiver once that is slow at both addresses', async () => {
  await using _ = await startInternet({ delayMs: SLOW_MS });
  await using receiver = await startTlsReceiver();

  const attempts = await deliverTo(receiver.url, [PUBLIC_IPV6, PUBLIC_IPV4]);

  expect(attempts).toMatchObject([{ number: 1, status: 'delivered', error: null }]);
  expect(receiver.connections()).toBe(2);
  expect(receiver.requests).toHaveLength(1);
});

it('reaches a receiver at an address of NAT64 whose IPv4 is public', async () => {
  await using _ = await startInternet();
  await using receiver = await startTlsReceiver();

  const attempts = await deliverTo(receiver.url, [PUBLIC_NAT64]);

  expect(attempts).toMatchObject([{ number: 1, status: 'delivered', error: null }]);
  expect(receiver.requests).toEqual([PUBLIC_NAT64]);
});

it('sends no packet to an address of NAT64 whose IPv4 is not public, nor to one of a network’s own prefix', async () => {
  await using _ = await startInternet();
  await using receiver = await startTlsReceiver();

  const attempts = await deliverTo(receiver.url, [
    '64:ff9b::7f00:1',
    '64:ff9b::a00:1',
    '64:ff9b::c0a8:1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::5db8:d822',
  ]);

  expect(attempts.at(-1)).toMatchObject({ status: 'failed', error: 'The host has no public address.' });
  expect(receiver.connections()).toBe(0);
});

it('refuses forbidden addresses among several, not their name', async () => {
  await using _ = await startInternet();
  await using receiver = await startTlsReceiver();

  const attempts = await deliverTo(receiver.url, [
    '169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '10.0.0.1',
    PUBLIC_IPV4,
  ]);

  expect(attempts).toMatchObject([{ number: 1, status: 'delivered', error: null }]);
  expect(receiver.requests).toEqual([PUBLIC_IPV4]);
  expect(receiver.connections()).toBe(1);
});

/** In each direction: a handshake takes longer than the next address is waited for. */
const SLOW_MS = 200;

/** Delivers one submission to a webhook whose host has these addresses, and returns its attempts. */
async function deliverTo(url: string, addresses: string[]) {
  await using database = await openTestDatabase('pglite');
  const form = await givenForm(database, deliveredByWebhook);
  await givenWebhook(database, form, { url });
  await givenSubmissions(database, form, [{}]);
  await using _ = startDelivery(database, {
    settings: { allowPrivate: false, schedule: [0] },
    resolveHost: async () => addresses,
    // Nobody vouches for a name under `test`.
    openConnector: (options) => buildConnector({ ...options, rejectUnauthorized: false }),
  });
  const [logged] = await expectFinished(database, form, 1);
  return logged?.attempts ?? [];
}

import { lookup } from 'node:dns/promises';
import { expect, it } from 'vitest';
import { openTestDatabase } from '../support/database.ts';
import { expectFinished, givenForm, givenSubmissions, startDelivery } from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';
import { PUBLIC_IPV4, PUBLIC_IPV6 } from './hosts.ts';
import { countUnanswered, startInternet } from './network.ts';

it.each([
  { slow: PUBLIC_IPV4, lost: PUBLIC_IPV6 },
  { slow: PUBLIC_IPV6, lost: PUBLIC_IPV4 },
])(
  'reaches a mail server at $slow, though slowly, where $lost goes nowhere, at the first attempt',
  async ({ slow, lost }) => {
    await using _ = await startInternet({ delayMs: 200, lost: [lost] });
    await using server = await startMailServer(undefined, undefined, { host: '::' });
    await using database = await openTestDatabase('pglite');
    const form = await givenForm(database);
    await givenSubmissions(database, form, [{ name: 'Ada' }]);
    const smtpUrl = `smtp://mail.test:${new URL(server.url).port}`;
    await using _delivery = startDelivery(database, { settings: { smtpUrl, schedule: [0] } });

    const [logged] = await expectFinished(database, form, 1);

    const found = await lookup('mail.test', { all: true });
    expect(found.map(({ address }) => address).sort()).toEqual([PUBLIC_IPV6, PUBLIC_IPV4]);
    expect(logged?.attempts).toMatchObject([{ number: 1, status: 'delivered', error: null }]);
    expect(server.mails).toHaveLength(1);
    expect(server.sockets.map(({ remoteAddress }) => remoteAddress?.replace('::ffff:', ''))).toEqual([slow]);
    expect(countUnanswered()).toBe(0);
  },
);

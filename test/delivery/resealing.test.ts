import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { createResealing } from '../../src/delivery/sweeps/sweeps.ts';
import { newSessionId } from '../../src/domain/ids.ts';
import { newSecretKey, parseSecretKey, SecretBox } from '../../src/domain/secrets/secret-key.ts';
import type { Database } from '../../src/store/database/database.ts';
import { insertIdempotencyKey } from '../../src/store/idempotency-keys.ts';
import { agreeOn, SECRET_KEY_CHECK } from '../../src/store/installation.ts';
import { insertSession } from '../../src/store/sessions/sessions.ts';
import { CALLBACKS } from '../../src/store/webhooks/webhooks.ts';
import { givenForm, givenWebhook } from '../store/given.ts';
import { engines, openTestDatabase } from '../support/database.ts';

const [key, formerKey, lostKey] = [newKey(), newKey(), newKey()];
const former = new SecretBox(formerKey);
const box = new SecretBox(key, formerKey);

describe.each(engines)('after a change of the key, on %s', (engine) => {
  it('every stored secret is sealed anew, by several processes at once', async () => {
    await using database = await openTestDatabase(engine);
    await agreeOn(database, SECRET_KEY_CHECK, former.seal('check'));
    for (let n = 0; n < 250; n += 1) await givenWebhook(database, { secret: former.seal(`secret ${n}`) });
    await givenWebhook(database, {
      secret: former.seal('now'),
      nextSecret: former.seal('next'),
      nextSecretAt: new Date(),
      previousSecret: box.seal('before'),
    });
    await givenForm(database, { draftSecret: former.seal('draft').replace(/^v2\.\w+/, 'v1') });
    const { id: formId, projectId } = await givenForm(database);
    // As it stands for an origin of callbacks: their secrets are those of the sessions.
    await givenWebhook(database, { formId: CALLBACKS, secret: '' });
    await insertSession(database, {
      id: newSessionId(),
      projectId,
      formId,
      versionId: 'ver_1',
      prefill: {},
      metadata: {},
      expiresIn: 60,
      callback: { url: 'https://example.com/', origin: 'https://example.com' },
      callbackSecret: former.seal('called'),
    });
    await database.transaction((tx) =>
      insertIdempotencyKey(tx, {
        id: 'a',
        requestFingerprint: 'f',
        madeId: 'wh_1',
        secret: former.seal('made'),
      }),
    );

    const [first, second] = await Promise.all([reseal(database), reseal(database)]);

    const current = new SecretBox(key);
    const secrets = await storedSecrets(database);
    expect(secrets.map((sealed) => current.open(sealed)).sort()).toEqual(
      [
        ...Array.from({ length: 250 }, (_, n) => `secret ${n}`),
        'before',
        'called',
        'check',
        'draft',
        'made',
        'next',
        'now',
      ].sort(),
    );
    expect((first[0]?.resealed ?? 0) + (second[0]?.resealed ?? 0)).toBe(254);
    expect(await reseal(database)).toMatchObject([{ level: 30, resealed: 0 }]);
  });

  it('a secret that no key opens stays, is reported, and keeps no other from being sealed', async () => {
    await using database = await openTestDatabase(engine);
    await agreeOn(database, SECRET_KEY_CHECK, box.seal('check'));
    const lost = new SecretBox(lostKey).seal('lost');
    await givenWebhook(database, { secret: lost, previousSecret: former.seal('before') });

    const lines = await reseal(database);

    expect(lines).toMatchObject([{ level: 50, unreadable: 1 }, { level: 30 }]);
    const [row] = await database.select('select secret, previous_secret from webhooks');
    expect(row?.secret).toBe(lost);
    expect(new SecretBox(key).open(String(row?.previous_secret))).toBe('before');
  });
});

/** Runs to the end, and returns what was logged. */
async function reseal(database: Database): Promise<Line[]> {
  const lines: Line[] = [];
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line)) });
  const run = createResealing({ database, secrets: box, log });
  while (await run());
  return lines;
}

async function storedSecrets(database: Database): Promise<string[]> {
  const rows = await database.select(
    `select secret from webhooks union all select next_secret from webhooks
     union all select previous_secret from webhooks union all select draft_secret from forms
     union all select secret from idempotency_keys union all select callback_secret from sessions
     union all select value from installation where name = $1`,
    [SECRET_KEY_CHECK],
  );
  return rows.flatMap(({ secret }) => (typeof secret === 'string' && secret !== '' ? secret : []));
}

function newKey() {
  return parseSecretKey(newSecretKey());
}

type Line = { level: number; resealed?: number; unreadable?: number };

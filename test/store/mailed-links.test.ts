import { expect, it } from 'vitest';
import { DAY_MS, HOUR_MS } from '../../src/domain/limits/limits.ts';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import { findMailedLink, insertMailedLink } from '../../src/store/mail/mailed-links.ts';
import { engines, openTestDatabase } from '../support/database.ts';

const link = {
  token: 'a token',
  purpose: 'change-owner',
  formId: 'form_1',
  address: 'Ada@example.com',
  browserHash: null,
  now: Date.parse('2026-11-26T12:00:00Z'),
  lifeMs: 7 * DAY_MS,
};

it.each(engines)(
  'a link that is stored again keeps what became of it, also once it is removed, on %s',
  async (engine) => {
    await using database = await openTestDatabase(engine);
    await insertMailedLink(database, link);
    await database.execute('update mailed_links set used_at = now()');

    await insertMailedLink(database, { ...link, now: link.now + HOUR_MS });

    const kept = await findMailedLink(database, hashSecret(link.token));
    expect(kept).toMatchObject({ createdAt: new Date(link.now), usedAt: expect.any(Date) });
    // As if another call had removed the row between the insert and a look at it.
    await database.execute(
      `create function gone() returns trigger language plpgsql as 'begin return null; end'`,
    );
    await database.execute(
      'create trigger gone before insert on mailed_links for each row execute function gone()',
    );
    await database.execute('delete from mailed_links');
    await insertMailedLink(database, link);
    expect(await findMailedLink(database, hashSecret(link.token))).toBeNull();
  },
);

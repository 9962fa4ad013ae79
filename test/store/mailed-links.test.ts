import { expect, it } from 'vitest';
import { findMailedLink, insertMailedLink } from '../../src/store/mail/mailed-links.ts';
import { engines, openTestDatabase } from '../support/database.ts';

const link = {
  tokenHash: 'a'.repeat(64),
  purpose: 'change-owner',
  formId: 'form_1',
  address: 'Ada@example.com',
  browserHash: null,
  createdAt: new Date('2026-11-26T12:00:00Z'),
  expiresAt: new Date('2026-12-03T12:00:00Z'),
};

it.each(engines)(
  'a link that is stored again keeps what became of it, also once it is removed, on %s',
  async (engine) => {
    await using database = await openTestDatabase(engine);
    await insertMailedLink(database, link);
    await database.execute('update mailed_links set used_at = now()');

    await insertMailedLink(database, { ...link, createdAt: new Date('2026-11-26T13:00:00Z') });

    const kept = await findMailedLink(database, link.tokenHash);
    expect(kept).toMatchObject({ createdAt: link.createdAt, usedAt: expect.any(Date) });
    // As if another call had removed the row between the insert and a look at it.
    await database.execute(
      `create function gone() returns trigger language plpgsql as 'begin return null; end'`,
    );
    await database.execute(
      'create trigger gone before insert on mailed_links for each row execute function gone()',
    );
    await database.execute('delete from mailed_links');
    await insertMailedLink(database, link);
    expect(await findMailedLink(database, link.tokenHash)).toBeNull();
  },
);

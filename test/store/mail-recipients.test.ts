import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confirmRecipient, hasConfirmed } from '../../src/store/mail/mail-recipients.ts';
import { engines, openTestDatabase, type TestDatabase } from '../support/database.ts';

describe.each(engines)('recipients of emails on %s', (engine) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(engine);
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('finds whether an address has confirmed without reading all recipients', async () => {
    await database.execute(
      `insert into mail_recipients (form_id, address, created_at, confirmed_at)
       select 'form_' || n, n || '@example.com', now(), now() from generate_series(1, 5000) n`,
    );
    await database.execute('analyze mail_recipients');
    await confirmRecipient(database, { formId: 'form_1', address: 'Ada@example.com' });

    expect(await hasConfirmed(database, 'ada@EXAMPLE.com')).toBe(true);
    expect(await hasConfirmed(database, 'eve@example.com')).toBe(false);
    const plan = await database.select(
      `explain select 1 from mail_recipients where address = 'ada@example.com' and confirmed_at is not null limit 1`,
    );
    expect(String(plan.map((row) => row['QUERY PLAN']))).toMatch(/mail_recipients_by_address/);
  });
});

import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/store/database/database.ts';
import type { Form } from '../../src/store/forms/forms.ts';
import { addRecipient, confirmRecipient, removeRecipient } from '../../src/store/mail/mail-recipients.ts';
import { engines, openTestDatabase } from '../support/database.ts';
import {
  expectFinished,
  givenForm,
  givenSubmissions,
  plainDefinition,
  startDelivery,
} from '../support/delivery.ts';
import { startMailServer } from '../support/mail-server.ts';

describe.each(engines)('mails to recipients that an owner has added on %s', (engine) => {
  it.each(['public', 'key_1'])(
    'go beside those of the definition to who has confirmed, until they are removed, of forms made by %s',
    async (createdBy) => {
      await using database = await openTestDatabase(engine);
      await using mailServer = await startMailServer();
      const form = await givenForm(database, { createdBy, definition: plainDefinition });
      for (const address of ['Bob@example.com', 'cat@example.com', 'dan@example.com', 'owner@example.com'])
        await add(database, form, address);
      for (const address of ['bob@example.com', 'dan@example.com', 'owner@example.com'])
        await confirmRecipient(database, { formId: form.id, address });
      await removeRecipient(database, { formId: form.id, address: 'Dan@example.com', inDefinition: false });
      await givenSubmissions(database, form, [{}]);
      await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

      await expectFinished(database, form, 2);

      const to = mailServer.mails.flatMap(({ recipients }) => recipients).toSorted();
      expect(to).toEqual(['Bob@example.com', 'owner@example.com']);
      const [toBob] = mailServer.mails.filter(({ recipients }) => recipients.includes('Bob@example.com'));
      expect(toBob?.text).not.toContain('/owner/');
    },
  );

  it('wait with those of an owner who has not confirmed to own a form made without a key', async () => {
    await using database = await openTestDatabase(engine);
    await using mailServer = await startMailServer();
    const form = await givenForm(database, {
      createdBy: 'public',
      createdFrom: 'network',
      ownerConfirmedAt: null,
    });
    await add(database, form, 'bob@example.com');
    await confirmRecipient(database, { formId: form.id, address: 'bob@example.com' });
    await givenSubmissions(database, form, [{}]);
    await using _ = startDelivery(database, { settings: { smtpUrl: mailServer.url } });

    const [notice] = await mailServer.expectMails(1);

    expect(notice?.recipients).toEqual(['owner@example.com']);
    expect(notice?.subject).toContain('Confirm your email');
  });
});

async function add(database: Database, { id: formId }: Form, address: string): Promise<void> {
  await database.transaction((tx) => addRecipient(tx, { formId, address, max: 10 }));
}

import { expect, it } from 'vitest';
import { startMailServer } from '../support/mail-server.ts';
import { startService } from '../support/server.ts';

it('answers in the language in which a form was filled in, and tells webhooks which', async () => {
  await using mailServer = await startMailServer();
  await using service = await startService({ env: { SMTP_URL: mailServer.url } });
  const form = await service.givenPublishedForm({
    name: 'Order',
    fields: [{ id: 'email', type: 'email' }],
    delivery: {
      type: 'email',
      autoresponse: { to: 'email', subject: 'Thank you', message: 'We will call.' },
    },
    settings: { locale: 'en' },
    translations: {
      de: { name: 'Bestellung', autoresponse: { subject: 'Danke', message: 'Wir rufen an.' } },
      fr: { autoresponse: { subject: 'Merci' } },
    },
  });
  const submit = (language: string) =>
    service.post(
      `/api/forms/${form.id}/submissions`,
      { answers: { email: `${language}@example.com` } },
      { key: null, headers: { 'accept-language': language } },
    );

  for (const language of ['de-AT', 'fr', 'nl']) expect((await submit(language)).status).toBe(201);
  const told = await service.database.select(
    `select body::json -> 'data' ->> 'language' as language from events where type = 'submission.created' order by id`,
  );
  const sent = (await mailServer.expectMails(7)).filter(
    ({ recipients }) => !recipients[0]?.startsWith('owner'),
  );

  const mailTo = (language: string) => sent.find(({ recipients }) => recipients[0]?.startsWith(language));
  expect(told.map(({ language }) => language)).toEqual(['de', 'fr', 'en']);
  expect(mailTo('de')).toMatchObject({ subject: 'Danke', from: { name: 'Bestellung' } });
  expect(mailTo('de')?.text).toContain('Wir rufen an.');
  expect(mailTo('de')?.text).toContain('„Bestellung“');
  expect(mailTo('fr')).toMatchObject({ subject: 'Merci', from: { name: 'Order' } });
  expect(mailTo('fr')?.text).toContain('We will call.');
  expect(mailTo('nl')).toMatchObject({ subject: 'Thank you' });
  expect(mailTo('nl')?.text).toContain('We will call.');
  expect(mailTo('nl')?.text).toContain('“Order”');
});

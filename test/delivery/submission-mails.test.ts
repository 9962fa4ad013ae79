import { describe, expect, it } from 'vitest';
import { answeredVersion, submissionMail } from '../../src/delivery/mail/submission-mails.ts';
import { newSecretKey, parseSecretKey } from '../../src/domain/secrets.ts';
import { languages } from '../../src/text/words/language.ts';
import { givenDefinition } from '../domain/given.ts';

const context = {
  secretKey: parseSecretKey(newSecretKey()),
  baseUrl: 'https://api.test',
  formId: 'form_1',
  to: 'owner@example.com',
};
const fields = ['name', 'city', 'plan'].map((id) => ({ id, type: 'text' }));

function mailOf(provenance?: Record<string, { by: string }>, settings: object = {}, isOwner = true) {
  const answers = { name: 'Jo', city: 'Bern', plan: 'free' };
  const created = { submissionId: 'sub_1', formVersionId: 'ver_1', createdAt: '2026-11-22T10:00:00.000Z' };
  const body = JSON.stringify({ data: { ...created, answers, ...(provenance && { provenance }) } });
  const definition = givenDefinition({ fields, settings });
  const answered = { definition, ...answeredVersion(body).data };
  return submissionMail(context, answered, { delivery: { type: 'email' }, confirmed: true, isOwner });
}

describe('the mail to an owner', () => {
  it('says of each answer where it comes from', () => {
    const mail = mailOf({ name: { by: 'human' }, city: { by: 'api' }, plan: { by: 'prefill' } });

    expect(mail.text).toContain('Name (Filled in by a person):\nJo');
    expect(mail.text).toContain('City (By API):\nBern');
    expect(mail.html).toMatch(/City<br><span[^>]*>By API<\/span>/);
  });

  it('says it once if all come from there', () => {
    const mail = mailOf({ name: { by: 'api' }, city: { by: 'api' }, plan: { by: 'api' } });

    expect(mail.text).toMatch(/^By API\n\nName:\nJo/);
    expect(mail.text.match(/By API/g)).toHaveLength(1);
  });

  it.each(Object.entries(languages))('says it in the form’s language, %s', (locale, words) => {
    const mail = mailOf({ name: { by: 'human' }, city: { by: 'default' } }, { locale });

    expect(mail.text).toContain(`Name (${words.answeredByPerson})`);
    expect(mail.text).toContain(`City (${words.answeredByDefault})`);
  });

  it('links to the submission on the owner’s page, for the owner alone', () => {
    const link = 'https://api.test/owner/submissions/sub_1';

    expect(mailOf().text).toContain(`Open this submission:\n${link}`);
    expect(mailOf().html).toContain(`href="${link}"`);
    expect(mailOf(undefined, {}, false).html).not.toContain('/owner/');
  });

  it('says nothing of answers that are older than the record', () => {
    expect(mailOf().text).toMatch(/^Name:\nJo/);
  });
});

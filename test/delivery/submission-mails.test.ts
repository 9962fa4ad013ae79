import { describe, expect, it } from 'vitest';
import { answeredVersion, type Reader, submissionMail } from '../../src/delivery/mail/submission-mails.ts';
import { newId } from '../../src/domain/ids.ts';
import { readFileLink } from '../../src/domain/links.ts';
import { newSecretKey, parseSecretKey } from '../../src/domain/secrets/secret-key.ts';
import { chooseLanguage, languages } from '../../src/text/words.ts';
import { givenDefinition } from '../domain/given.ts';

const secretKey = parseSecretKey(newSecretKey());
const now = Date.parse('2026-11-22T10:00:05.000Z');
const texts = ['name', 'city', 'plan'].map((id) => ({ id, type: 'text' }));
const textAnswers = { name: 'Jo', city: 'Bern', plan: 'free' };

function mailOf(given: Given = {}) {
  const {
    provenance,
    source,
    settings = {},
    reader = 'owner',
    fields = texts,
    answers = textAnswers,
  } = given;
  const created = { submissionId: 'sub_1', formVersionId: 'ver_1', createdAt: '2026-11-22T10:00:00.000Z' };
  const body = JSON.stringify({ data: { ...created, answers, source, ...(provenance && { provenance }) } });
  const definition = givenDefinition({ fields, settings, ...given.definition });
  const answered = { definition, ...answeredVersion(body).data };
  const context = {
    secretKey,
    baseUrl: 'https://api.test',
    formId: 'form_1',
    to: 'owner@example.com',
    language: chooseLanguage(definition.settings.locale),
    senderName: definition.name,
  };
  const delivery = { type: 'email' as const, ...given.delivery };
  return submissionMail(context, answered, { delivery, reader, ownerEpoch: 0, now, confirmation: undefined });
}

const visibleWhen = { field: 'topic', op: 'notEmpty' };

describe('the mail to an owner', () => {
  it('names who answered in its subject, in one line, and nobody before the owner has confirmed', () => {
    const fields = [
      { id: 'topic', type: 'text' },
      { id: 'email', type: 'email' },
      { id: 'full_name', type: 'text', label: 'Who are you?' },
    ];
    const definition = { name: 'Cake orders' };
    const subjectOf = (answers: object, reader: Reader = 'owner') =>
      mailOf({ fields, definition, answers, reader }).subject;
    const email = 'ada@example.com';

    expect(subjectOf({ topic: 'Cake', email, full_name: 'Ada Lovelace' })).toBe('Cake orders: Ada Lovelace');
    expect(subjectOf({ full_name: 'Ada\r\nBcc: eve@example.com' })).toBe(
      'Cake orders: Ada Bcc: eve@example.com',
    );
    expect(subjectOf({ topic: 'Cake', email })).toBe(`Cake orders: ${email}`);
    expect(subjectOf({ topic: 'Cake' })).toBe('New response: Cake orders');
    expect(subjectOf({ full_name: 'Ada' }, 'unconfirmed')).toBe('New response: Cake orders');
  });

  it('says of each answer where it comes from', () => {
    const provenance = { name: { by: 'human' }, city: { by: 'api' }, plan: { by: 'prefill' } };
    const mail = mailOf({ provenance });

    expect(mail.text).toContain('Name (Filled in by a person):\nJo');
    expect(mail.text).toContain('City (By API):\nBern');
    expect(mail.html).toMatch(/City <span[^>]*>\(By API\)<\/span>/);
  });

  it('says it once if all come from there', () => {
    const mail = mailOf({ provenance: { name: { by: 'api' }, city: { by: 'api' }, plan: { by: 'api' } } });

    expect(mail.text).toMatch(/^Received on [^\n]*\n\nBy API\n\nName:\nJo/);
    expect(mail.text.match(/By API/g)).toHaveLength(1);
  });

  it('names the source of what a call has brought, in one line and without links for who has not confirmed', () => {
    const provenance = { name: { by: 'api' }, city: { by: 'api' }, plan: { by: 'api' } };
    const mail = mailOf({ provenance, source: 'our shop\nhttps://evil.example' });

    expect(mail.text).toContain('\n\nSent from “our shop https://evil.example”\n\n');
    expect(mail.text).not.toContain('By API');
    const early = mailOf({ provenance, source: 'https://evil.example', reader: 'unconfirmed' });
    expect(early.text).not.toContain('https://evil.example');
    const human = mailOf({ provenance: { name: { by: 'human' } }, source: 'hosted' });
    expect(human.text).toContain('Filled in by a person');
  });

  it.each(Object.entries(languages))('is in the form’s language, %s', (locale, words) => {
    const provenance = { name: { by: 'human' }, city: { by: 'default' } };
    const mail = mailOf({ provenance, settings: { locale } });
    const { mail: own, direction } = chooseLanguage(locale);

    expect(mail.text).toContain(`Name (${words.page.answeredByPerson})`);
    expect(mail.text).toContain(`City (${words.page.answeredByDefault})`);
    expect(mail.html).toContain(`<html lang="${locale}" dir="${direction}">`);
    expect(mail.text).toContain(`\n${own.stop}: https://api.test/mail/stop.`);
    expect(mail.text).toContain(`\n${own.open}:\n`);
    expect(mail.text).toMatch(/^[^\n]*(2026|٢٠٢٦)[^\n]*UTC/);
    for (const text of [mail.subject, mail.text, mail.html]) expect(text).not.toMatch(/\{\w+\}/);
  });

  it('says when the answers came, as people write that', () => {
    const german = mailOf({ settings: { locale: 'de' } });

    expect(mailOf().text).toContain('Received on November 22, 2026 at 10:00 AM UTC.\n');
    expect(german.text).toContain('Eingegangen am 22. November 2026 um 10:00 UTC.\n');
  });

  it.each([
    ['owner', 'because you own the form “Contact”'],
    ['unconfirmed', 'You haven’t confirmed that yet'],
    ['named', 'the form “Contact” lists this address as a recipient'],
    ['added', 'the owner of the form “Contact” added this address'],
    ['operator', 'someone tried its demo form'],
  ] as const)('says who gets it and why: %s', (reader, why) => {
    const { text, html } = mailOf({ reader });

    expect(text).toContain(why);
    expect(html).toContain(why);
    expect(text).toContain('Reference: sub_1');
  });

  it('links to the submission on the owner’s page, for the owner alone', () => {
    const link = 'https://api.test/owner/submissions/sub_1';

    expect(mailOf().text).toContain(`Open response:\n${link}`);
    expect(mailOf().html).toContain(`href="${link}"`);
    expect(mailOf({ reader: 'named' }).html).not.toContain('/owner/');
    expect(mailOf({ reader: 'added' }).html).not.toContain('/owner/');
  });

  it('says nothing of answers that are older than the record', () => {
    expect(mailOf().text).toMatch(/UTC\.\n\nName:\nJo/);
  });

  it('ends a label with a colon, unless it ends with a sign of its own', () => {
    const fields = [
      { id: 'why', type: 'text', label: 'Why?' },
      { id: 'how', type: 'text', label: 'どうやって？' },
    ];
    const { text } = mailOf({ fields, answers: { why: 'So', how: 'そう' } });

    expect(text).toContain('Why?\nSo\n\nどうやって？\nそう');
  });

  it('has a link for each file, for 7 days, and names alone for who has not confirmed', () => {
    const [cv, photo] = [newId('upl', 0), newId('upl', 0)];
    const fields = [
      { id: 'cv', type: 'file' },
      { id: 'photos', type: 'file', maxFiles: 2 },
    ];
    const fileOf = (id: string, filename: string, size: number) => ({ upload_id: id, filename, size });
    const answers = {
      cv: fileOf(cv, 'cv.pdf', 1_500_000),
      photos: [fileOf(photo, 'a <b>.png', 300), fileOf(photo, 'b.png', 2048)],
    };

    const mail = mailOf({ fields, answers });
    const unconfirmed = mailOf({ fields, answers, reader: 'unconfirmed' });

    const [link = ''] = mail.text.match(/https:\S+\/files\/\S+/g) ?? [];
    const token = link.split('/').at(-1) ?? '';
    expect(mail.text).toMatch(/Cv:\ncv\.pdf \(1\.4 MB\)\nhttps:/);
    expect(mail.text).toMatch(/Photos:\na <b>\.png \(1 kB\)\nhttps:\S+\nb\.png \(2 kB\)\nhttps:/);
    expect(mail.html).toContain(`<a href="${link}"`);
    expect(mail.html).toContain('>a &lt;b&gt;.png (1 kB)</a>');
    expect(mail.text).toContain(
      'File links work until November 29, 2026. Anyone with a link can open its file.',
    );
    expect(readFileLink(secretKey, token, now + 7 * 86_400_000 - 1)).toMatchObject({ uploadId: cv });
    expect(readFileLink(secretKey, token, now + 7 * 86_400_000)).toMatchObject({ reason: 'expired' });
    expect(unconfirmed.text).toContain('Cv:\ncv[.]pdf');
    expect(unconfirmed.text).toContain('after you confirm your address');
    expect(unconfirmed.html).not.toContain('/files/');
  });

  it('says who answered by the field that the form names, never by a part of a word', () => {
    const fields = [
      { id: 'product_name', type: 'text', label: 'Name of your pet' },
      { id: 'nombre_de_usuario', type: 'text', label: 'Username' },
      { id: 'email', type: 'email' },
      { id: 'caller', type: 'text', hidden: true },
    ];
    const answers = {
      product_name: 'Rex',
      nombre_de_usuario: 'x',
      email: 'ada@example.com',
      caller: 'Ada Lovelace',
    };
    const definition = { name: 'Vet' };
    const subjectOf = (delivery = {}, given: object = answers) =>
      mailOf({ fields, definition, answers: given, delivery }).subject;
    const { caller: _, ...others } = answers;

    expect(subjectOf()).toBe('Vet: ada@example.com');
    expect(subjectOf({ answererName: 'caller' })).toBe('Vet: Ada Lovelace');
    expect(subjectOf({ answererName: 'caller' }, others)).toBe('Vet: ada@example.com');
  });

  it.each([
    ['the only one that people see', [{ id: 'a', hidden: true }, { id: 'b' }], 'b'],
    ['the one that is required', [{ id: 'a' }, { id: 'b', required: true }], 'b'],
    [
      'one under no condition',
      [
        { id: 'a', required: true, visibleWhen },
        { id: 'b', required: true },
      ],
      'b',
    ],
    ['the first', [{ id: 'a' }, { id: 'b' }], 'a'],
    ['none for agents alone', [{ id: 'a', answeredBy: 'agent' }, { id: 'b' }], 'b'],
  ])('is replied to by %s', (_name, emails, expected) => {
    const fields = [{ id: 'topic', type: 'text' }, ...emails.map((field) => ({ type: 'email', ...field }))];
    const answers = { topic: 'x', a: 'a@example.com', b: 'b@example.com' };

    expect(mailOf({ fields, answers }).replyTo).toBe(`${expected}@example.com`);
  });

  it('is from the form by name, unless that could be taken for an address', () => {
    const named = (name: string) => mailOf({ definition: { name } }).senderName;

    expect(named('Bewerbung: “Design”, 2026')).toBe('Bewerbung: “Design”, 2026');
    expect(named('Line\r\nBcc: all\u202e')).toBe('Line Bcc: all');
    expect(named('ceo@bank.example')).toBeUndefined();
    expect(named('Support of bank.example')).toBeUndefined();
  });

  it('is replied to whoever answered, by the field that the form names, else by the first that people see', () => {
    const fields = [
      { id: 'agent', type: 'email', hidden: true },
      { id: 'first', type: 'email' },
      { id: 'second', type: 'email' },
    ];
    const answers = { agent: 'a@example.com', first: 'b@example.com', second: 'c@example.com' };
    const { agent: _, first: __, ...second } = answers;

    expect(mailOf({ fields, answers }).replyTo).toBe('b@example.com');
    expect(mailOf({ fields, answers: second }).replyTo).toBe('c@example.com');
    expect(mailOf({ fields, answers, delivery: { replyTo: 'agent' } }).replyTo).toBe('a@example.com');
    expect(mailOf({ fields, answers: second, delivery: { replyTo: 'first' } }).replyTo).toBeUndefined();
    expect(mailOf({ fields, answers: { first: 'x@y.example, z@y.example' } }).replyTo).toBeUndefined();
    expect(mailOf().replyTo).toBeUndefined();
  });
});

type Given = {
  source?: string;
  provenance?: Record<string, { by: string }>;
  settings?: object;
  reader?: Reader;
  fields?: object[];
  answers?: object;
  definition?: object;
  delivery?: { replyTo?: string; answererName?: string };
};

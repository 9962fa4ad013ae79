import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesIn, percentEncoded } from '../support/charsets.ts';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm({
    fields: [
      { id: 'name', type: 'text' },
      { id: 'email', type: 'email' },
      { id: 'phone', type: 'phone' },
      { id: 'message', type: 'textarea' },
      { id: 'guests', type: 'number' },
      {
        id: 'topics',
        type: 'multi_select',
        options: ['news', 'events'].map((value) => ({ label: value, value })),
      },
      { id: 'terms', type: 'checkbox' },
      { id: 'address', type: 'address' },
      { id: 'cv', type: 'file', maxFiles: 2 },
    ],
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' };

/** Posts as pages of the kinds that people have send them; what is stored of each. */
const pages: Record<string, () => Post> = {
  'a contact form of a site generator, with a named button and a trap': () => ({
    body: 'name=Ada&email=ada%40example.com&message=Hello%0D%0AWorld&_gotcha=&submit=Send',
    headers: urlencoded,
    stored: { name: 'Ada', email: 'ada@example.com', message: 'Hello\nWorld' },
    ignored: ['submit'],
  }),
  'a page of 2003 in windows-1252 that names no charset': () => ({
    body: `Name=${percentEncoded(bytesIn('windows-1252', 'Zoë'))}&E-Mail=x&message=5+%80`,
    headers: urlencoded,
    stored: { name: 'Zoë', message: '5 €' },
    ignored: ['E-Mail'],
  }),
  'a Japanese page in Shift_JIS with _charset_ at its end': () => ({
    body: `name=${percentEncoded(bytesIn('shift_jis', '表参道'))}&_charset_=Shift_JIS`,
    headers: urlencoded,
    stored: { name: '表参道' },
  }),
  'a PHP page with lists and nested names': () => ({
    body: 'topics%5B%5D=news&topics%5B%5D=events&address%5Bline1%5D=1+Rue&address%5Bcity%5D=Lyon&address%5Bcountry%5D=FR',
    headers: urlencoded,
    stored: { topics: ['news', 'events'], address: { line1: '1 Rue', city: 'Lyon', country: 'FR' } },
  }),
  'a framework’s form with a token and indexed boxes': () => ({
    body: '_token=abc&topics%5B0%5D=events&terms=0&terms=1&guests=2',
    headers: urlencoded,
    stored: { topics: ['events'], terms: true, guests: 2 },
  }),
  'a form that a script serializes': () => ({
    body: 'name=Jos%C3%A9&guests=&terms=on',
    headers: {
      'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
      'x-requested-with': 'XMLHttpRequest',
    },
    stored: { name: 'José', terms: true },
  }),
  'a builder’s page with names in upper case': () => ({
    body: 'NAME=Ada&Email=ada%40example.com&Phone=%2B1+555+0100',
    headers: urlencoded,
    stored: { name: 'Ada', email: 'ada@example.com', phone: '+1 555 0100' },
  }),
  'a page with a list of files, one of them empty': () => {
    const body = new FormData();
    body.set('name', 'Ada');
    body.append('cv[]', new File(['my life'], 'cv.txt', { type: 'text/plain' }));
    body.append('cv[]', new File([], ''));
    return {
      body,
      headers: {},
      stored: { name: 'Ada', cv: [expect.objectContaining({ filename: 'cv.txt' })] },
    };
  },
  'a program that sends parts without quotes and with charsets': () => ({
    body: [
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Disposition: form-data; name=name',
      '',
      'Zoë',
      '--b',
      "Content-Disposition: form-data; name=cv; filename=a.txt; filename*=utf-8''%C3%A4.txt",
      '',
      'my life',
      '--b--',
      '',
    ].join('\r\n'),
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    stored: { name: 'Zoë', cv: [expect.objectContaining({ filename: 'ä.txt' })] },
  }),
  'a page whose browser sends an answer in characters that its charset has not': () => ({
    body: 'message=%26%2326085%3B&_charset_=ISO-8859-1',
    headers: urlencoded,
    // As browsers write them: nothing tells them from what a person has typed.
    stored: { message: '&#26085;' },
  }),
};

describe('a post of a real page', () => {
  it.each(Object.entries(pages))('is stored as it was meant: %s', async (_name, make) => {
    const { body, headers, stored, ignored } = make();

    const reply = await service.post(`/api/forms/${form.id}/submissions`, body, {
      key: null,
      headers: { accept: 'application/json', ...headers },
    });

    expect(reply.json).toEqual({ ok: true, submission_id: expect.any(String), ...(ignored && { ignored }) });
    const { submission } = (await service.get(`/v1/submissions/${reply.json.submission_id}`)).json;
    expect(submission.answers).toEqual(stored);
  });
});

type Post = {
  body: string | FormData;
  headers: Record<string, string>;
  stored: object;
  ignored?: string[];
};

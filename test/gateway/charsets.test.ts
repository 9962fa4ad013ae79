import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesIn, type PostedPart, partsBody, percentEncoded, textsByCharset } from '../support/charsets.ts';
import { type PublishedForm, startService, type TestService } from '../support/server.ts';

let service: TestService;
let form: PublishedForm;

beforeAll(async () => {
  service = await startService();
  form = await service.givenPublishedForm({
    fields: [
      { id: 'message', type: 'textarea' },
      { id: 'name', type: 'text' },
      { id: 'cv', type: 'file' },
    ],
  });
});
afterAll(() => service[Symbol.asyncDispose]());

const urlencoded = 'application/x-www-form-urlencoded';

const post = (
  body: string | Buffer,
  headers: Record<string, string>,
  path = `/api/forms/${form.id}/submissions`,
) => service.post(path, body, { key: null, headers: { accept: 'application/json', ...headers } });

const postParts = (parts: readonly PostedPart[]) => {
  const { body, headers } = partsBody(parts);
  return post(body, headers);
};

const storedBy = async ({ status, json, text }: Awaited<ReturnType<typeof post>>) => {
  if (status !== 201) throw new Error(text);
  return (await service.get(`/v1/submissions/${json.submission_id}`)).json.submission.answers;
};

/** The ways in which a form's post says its charset. */
const ways: Record<string, (charset: string, message: Buffer) => ReturnType<typeof post>> = {
  'in its Content-Type': (charset, message) =>
    post(`message=${percentEncoded(message)}`, { 'content-type': `${urlencoded}; charset=${charset}` }),
  'in quotes, and its bytes are not encoded': (charset, message) =>
    post(Buffer.concat([Buffer.from('message='), message]), {
      'content-type': `${urlencoded}; Charset="${charset.toUpperCase()}"`,
    }),
  'in _charset_ before the values': (charset, message) =>
    post(`_charset_=${charset}&message=${percentEncoded(message)}`, { 'content-type': urlencoded }),
  'in _charset_ after the values': (charset, message) =>
    post(`message=${percentEncoded(message)}&_charset_=${charset}`, { 'content-type': urlencoded }),
  'in the Content-Type of the part': (charset, message) =>
    postParts([{ name: 'message', value: message, type: `text/plain; charset=${charset}` }]),
  'in a part _charset_ after the values': (charset, message) =>
    postParts([
      { name: 'message', value: message },
      { name: '_charset_', value: charset },
    ]),
};

describe.each(Object.entries(ways))('a post that says its charset %s', (_way, send) => {
  it.each(textsByCharset)('is stored as it was typed: %s', async (charset, text) => {
    const stored = await storedBy(await send(charset, bytesIn(charset, text)));

    expect(stored).toEqual({ message: text });
  });

  it.each(['utf-16', 'utf-16le', 'UTF-16BE', 'replacement', 'iso-2022-kr', 'klingon', 'x'.repeat(39)])(
    'is refused if the charset is %s',
    async (charset) => {
      const refused = await send(charset, Buffer.from('text'));

      expect([refused.status, refused.json.error.reason]).toEqual([422, 'invalid']);
      expect(refused.json.error.message.toLowerCase()).toContain(charset.toLowerCase());
    },
  );

  it('is refused if its bytes are not of that charset, and says where', async () => {
    const refused = await send('utf-8', Buffer.from('Sm\xf6rg\xe5s', 'latin1'));

    expect(refused.json.error).toMatchObject({
      reason: 'invalid',
      details: [{ path: 'message', message: expect.stringMatching(/utf-8/i) }],
    });
  });
});

describe('a post that says no charset', () => {
  const send = (message: Buffer) =>
    post(`message=${percentEncoded(message)}`, { 'content-type': urlencoded });
  const asParts = (message: Buffer) => postParts([{ name: 'message', value: message }]);

  it.each([
    ['urlencoded', send],
    ['in parts', asParts],
  ])('is windows-1252 if it is no UTF-8, %s', async (_kind, sent) => {
    const text = 'Smörgås – “Œuvre” 5 € Ÿ\r\nTab\t.';

    expect(await storedBy(await sent(bytesIn('windows-1252', text)))).toEqual({
      message: text.replace('\r\n', '\n'),
    });
    expect(await storedBy(await sent(Buffer.from(text)))).toEqual({ message: text.replace('\r\n', '\n') });
  });

  it('is of one charset as a whole', async () => {
    const bytes = [bytesIn('windows-1252', 'Ã©'), bytesIn('windows-1252', 'é')].map(percentEncoded);

    const stored = await storedBy(
      await post(`message=${bytes[0]}&name=${bytes[1]}`, { 'content-type': urlencoded }),
    );

    expect(stored).toEqual({ message: 'Ã©', name: 'é' });
  });

  it.each([0x81, 0x8d, 0x8f, 0x90, 0x9d, 0x00, 0x08, 0x1b, 0x7f])(
    'is refused if it is no UTF-8 and has the byte %i, which is no character of windows-1252',
    async (byte) => {
      const refused = await send(Buffer.from([0xe9, byte]));

      expect([refused.status, refused.json.error.reason]).toEqual([422, 'invalid']);
    },
  );

  it('keeps a U+FFFD and a byte order mark that its sender has sent', async () => {
    const text = '\ufeffbroken: \ufffd';

    expect(await storedBy(await send(Buffer.from(text)))).toEqual({ message: text });
  });

  it('reads what is no percent-encoding as it stands', async () => {
    const reply = await post('message=100%+%zz+%u20ac+%2', { 'content-type': urlencoded });

    expect(await storedBy(reply)).toEqual({ message: '100% %zz %u20ac %2' });
  });
});

describe('the name of a file', () => {
  const file = (filename: Buffer) => ({ name: 'cv', value: 'my life', filename, type: 'text/plain' });
  const charsetPart = (charset: string) => ({ name: '_charset_', value: charset });

  it.each(textsByCharset)('is that of the sender: %s', async (charset, text) => {
    const name = `${text.replaceAll(/[^\p{L}\p{M}]/gu, '')}.txt`;

    const reply = await postParts([charsetPart(charset), file(bytesIn(charset, name))]);

    expect((await storedBy(reply)).cv.filename).toBe(name.normalize('NFC'));
  });

  it('may end with a character whose second byte is a backslash', async () => {
    const reply = await postParts([charsetPart('shift_jis'), file(bytesIn('shift_jis', '表ソ'))]);

    expect((await storedBy(reply)).cv.filename).toBe('表ソ');
  });

  it('is refused where the charset comes after it and is another than it was read in', async () => {
    const late = await postParts([file(bytesIn('shift_jis', '表.txt')), charsetPart('shift_jis')]);
    const same = await postParts([file(Buffer.from('表.txt')), charsetPart('utf-8')]);

    expect(late.json.error.details).toEqual([expect.objectContaining({ path: 'cv' })]);
    expect((await storedBy(same)).cv.filename).toBe('表.txt');
  });

  it.each([
    ['form-data; name="cv"; filename="a.txt"; filename*=utf-8\'\'%e8%a1%a8.txt', '表.txt'],
    ['form-data; name=cv; filename=b.txt', 'b.txt'],
    ['form-data; name="cv"; filename="quo\\"te.txt"', 'quo_te.txt'],
    ['form-data; filename="C:\\dir\\c.txt"; name="cv"', 'c.txt'],
  ])('is read from %s', async (disposition, name) => {
    const body = `--x\r\nContent-Disposition: ${disposition}\r\n\r\nmy life\r\n--x--\r\n`;

    const reply = await post(body, { 'content-type': 'multipart/form-data; boundary="x"' });

    expect((await storedBy(reply)).cv.filename).toBe(name);
  });
});

describe('a link to a form’s own page', () => {
  it.each(textsByCharset)('fills in what it says in its charset: %s', async (charset, text) => {
    const value = percentEncoded(bytesIn(charset, text));

    const { text: page } = await service.get(`/f/${form.id}?_charset_=${charset}&name=${value}`, {
      key: null,
    });

    expect(page).toContain(`value="${text}"`);
  });

  it('is left out as far as its charset is not known, and the page can be answered', async () => {
    const { status, text } = await service.get(`/f/${form.id}?_charset_=klingon&name=a`, { key: null });
    const broken = await service.get(`/f/${form.id}?name=%E9%81`, { key: null });

    expect([status, broken.status]).toEqual([200, 200]);
    expect(text + broken.text).not.toMatch(/value="a"|\ufffd/);
  });

  it('leads to other languages in UTF-8', async () => {
    const translated = await service.givenPublishedForm({
      fields: [{ id: 'name', type: 'text' }],
      settings: { locale: 'en' },
      translations: { de: { name: 'Kontakt' } },
    });

    const { text } = await service.get(`/f/${translated.id}?name=Sm%F6r&_charset_=windows-1252`, {
      key: null,
    });

    expect(text).toContain('href="?name=Sm%C3%B6r&amp;lang=de"');
  });
});

describe('the query of an API request', () => {
  const upload = (query: string) =>
    service.post(`/api/forms/${form.id}/uploads?field=cv&${query}`, Buffer.from('my life'), {
      key: null,
      headers: { 'content-type': 'application/octet-stream' },
    });

  it.each(textsByCharset)('is read in its charset, as the name of a file: %s', async (charset, text) => {
    const name = `${text.replaceAll(/[^\p{L}\p{M}]/gu, '')}.txt`;

    const stored = await upload(`_charset_=${charset}&filename=${percentEncoded(bytesIn(charset, name))}`);

    expect(stored.json.upload.filename).toBe(name.normalize('NFC'));
  });

  it('is windows-1252 if it names no charset and is no UTF-8, and refused if it is neither', async () => {
    const stored = await upload('filename=Zo%EB.txt');
    const refused = [await upload('filename=%81'), await upload('_charset_=klingon&filename=a')];

    expect(stored.json.upload.filename).toBe('Zoë.txt');
    expect(refused.map(({ status, json }) => [status, json.error.reason])).toEqual([
      [400, 'bad_request'],
      [400, 'bad_request'],
    ]);
  });

  it('that says nothing stops no submission', async () => {
    const reply = await post(
      'message=a',
      { 'content-type': urlencoded },
      `/api/forms/${form.id}/submissions?utm=%81`,
    );

    expect(await storedBy(reply)).toEqual({ message: 'a' });
  });
});

describe('a post of the form’s own page', () => {
  it.each(textsByCharset)(
    'is stored as it was typed, whatever charset a browser has chosen: %s',
    async (charset, text) => {
      const before = (await service.get(`/v1/forms/${form.id}/submissions?limit=1`)).json.submissions[0]?.id;
      const { text: page } = await service.get(`/f/${form.id}`, { key: null });
      const issued = /name="_issued" value="([^"]*)"/.exec(page)?.[1] ?? '';
      const body = new URLSearchParams({
        _issued: issued,
        _page: '1',
        _shown: 'message name',
        _charset_: charset,
      });

      const reply = await service.post(
        `/f/${form.id}`,
        `${body.toString()}&message=${percentEncoded(bytesIn(charset, text))}`,
        {
          key: null,
          headers: { 'content-type': urlencoded, origin: service.url, accept: 'text/html' },
        },
      );

      expect(reply.status).toBe(200);
      const [stored] = (await service.get(`/v1/forms/${form.id}/submissions?limit=1`)).json.submissions;
      expect(stored.id).not.toBe(before);
      expect(stored.answers).toEqual({ message: text });
    },
  );
});

describe('long answers', () => {
  const fields = ['one', 'two', 'three'].map((id) => ({ id, type: 'textarea' }));
  const answers = Object.fromEntries(fields.map(({ id }) => [id, '日'.repeat(10_000)]));

  it('of three bytes a character are taken from a form as they are by JSON', async () => {
    const { id } = await service.givenPublishedForm({ fields });
    const path = `/api/forms/${id}/submissions`;
    const parts = new FormData();
    for (const [name, value] of Object.entries(answers)) parts.set(name, value);
    const headers = { accept: 'application/json' };

    const replies = [
      await service.post(path, { answers }, { key: null }),
      await service.post(path, new URLSearchParams(answers), { key: null, headers }),
      await service.post(path, parts, { key: null, headers }),
    ];

    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201]);
    const { submissions } = (await service.get(`/v1/forms/${id}/submissions`)).json;
    expect(submissions.map((each: { answers: object }) => each.answers)).toEqual([answers, answers, answers]);
  });

  it('of more bytes than JSON may have are refused, however they are encoded', async () => {
    const { id } = await service.givenPublishedForm({
      fields: [{ id: 'one', type: 'textarea', maxLength: 100_000 }],
    });
    const long = '日'.repeat(87_400);
    const parts = new FormData();
    parts.set('one', long);
    const send = (body: unknown, type?: string) =>
      service.post(`/api/forms/${id}/submissions`, body, {
        key: null,
        headers: { accept: 'application/json', ...(type !== undefined && { 'content-type': type }) },
      });

    const replies = [
      await send({ answers: { one: long } }),
      await send(new URLSearchParams({ one: long })),
      await send(parts),
      await send(
        `one=${percentEncoded(bytesIn('windows-874', 'ก').subarray(0, 1)).repeat(100_000)}`,
        `${urlencoded}; charset=windows-874`,
      ),
      await send('a&'.repeat(10_101), urlencoded),
    ];

    expect(replies.map(({ status, json }) => [status, json.error.reason])).toEqual(
      replies.map(() => [413, 'too_large']),
    );
  });
});

import { describe, expect, it } from 'vitest';
import { SubmissionsService } from '../../gen/headlessforms/v1/submissions_pb.js';
import { cutOff, sendUnended } from '../support/wire.ts';
import { startGateway } from './given.ts';

const path = '/api/forms/form_1/submissions';

describe('a JSON body', () => {
  it.each([
    ['application/json'],
    ['application/json; charset=utf-8'],
    ['APPLICATION/JSON;charset="UTF-8"'],
    ['application/vnd.forms+json'],
  ])('is read as %s', async (type) => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '{"answers":{"a":1}}',
      headers: { 'content-type': type },
    });

    expect(reply.status).toBe(201);
  });

  it('may begin with a byte order mark', async () => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '\uFEFF{"answers":{}}',
      headers: { 'content-type': 'application/json' },
    });

    expect(reply.status).toBe(201);
  });

  it.each([
    ['text/plain'],
    ['application/xml'],
    ['application/json; charset=utf-16'],
    ['application/jsonp'],
    [';;;'],
    ['text/html'],
  ])('is refused as %s', async (type) => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '{"answers":{}}',
      headers: { 'content-type': type },
    });

    expect([reply.status, reply.json.error.reason]).toEqual([415, 'media_type']);
    expect(gateway.calls).toEqual([]);
  });

  it('names the charset that it may not be in', async () => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '{"answers":{}}',
      headers: { 'content-type': 'application/json; charset=latin1' },
    });

    expect(reply.json.error.message).toBe('Expected JSON in UTF-8; the charset of Content-Type is latin1');
  });

  it('is refused when it is compressed by anything else than gzip', async () => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      json: { answers: {} },
      headers: { 'content-encoding': 'br' },
    });

    expect([reply.status, reply.json.error.reason]).toEqual([415, 'media_type']);
  });

  it.each([
    ['{'],
    ['{"answers":'],
    ["{'answers':{}}"],
    ['{"answers":NaN}'],
    ['{"a":1}{"b":2}'],
    [' '],
    [Buffer.from([0x22, 0xc3, 0x28, 0x22])],
    [Buffer.from([0xff, 0xfe, 0x7b, 0x00])],
  ])('that is not JSON answers 400: %s', async (body) => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, { body, headers: { 'content-type': 'application/json' } });

    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatchObject({ code: 'validation_failed', reason: 'bad_request', details: [] });
    expect(gateway.calls).toEqual([]);
  });

  it.each([
    ['{"answers": {}}\n}', ': see line 2, column 1'],
    ['{\n  "answers": {"a": 1,}\n}', ': see line 2, column 22'],
    ["{'answers': {}}", ': see line 1, column 2'],
    ['{"answers": ', ': it ends too early'],
    ['secret', ''],
  ])('that is not JSON is refused with the place: %s', async (body, place) => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, { body, headers: { 'content-type': 'application/json' } });

    expect(reply.json.error.message).toBe(`The body is not JSON${place}`);
  });

  it('that is sent as an HTML form is refused with the header that it needs, in JSON', async () => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '{"answers":{"a":1}}',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: '*/*' },
    });

    expect([reply.status, reply.json.error.message]).toEqual([
      415,
      'JSON needs the header Content-Type: application/json',
    ]);
    expect(gateway.calls).toEqual([]);
  });

  it.each([['null'], ['[]'], ['"text"'], ['1'], ['true']])(
    'that is no object answers 422 at its root: %s',
    async (body) => {
      await using gateway = await givenAccepting();

      const reply = await gateway.call('POST', path, {
        body,
        headers: { 'content-type': 'application/json' },
      });

      expect(reply.status).toBe(422);
      expect(reply.json.error.details).toMatchObject([{ path: '', code: 'invalid_type' }]);
    },
  );

  it('that is empty reads as an empty object, whatever its media type', async () => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, {
      body: '',
      headers: { 'content-type': 'application/xml' },
    });

    expect(reply.status).toBe(422);
    expect(reply.json.error.details).toEqual([
      { path: 'answers', code: 'invalid_type', message: 'Required' },
    ]);
  });

  it('may nest 32 deep and no deeper', async () => {
    await using gateway = await givenAccepting();
    const send = (depth: number) => {
      const list = '['.repeat(depth - 2) + ']'.repeat(depth - 2);
      return gateway.call('POST', path, { body: `{"answers":{"a":${list}}}`, headers: json });
    };

    expect((await send(32)).status).toBe(201);
    expect((await send(33)).status).toBe(422);
    expect((await send(9_000)).status).toBe(422);
    expect((await send(100_000)).status).toBe(413);
    expect(gateway.calls.length).toBe(1);
  });

  it('keeps names that are special in JavaScript as they are', async () => {
    await using gateway = await givenAccepting();

    const body = '{"answers":{"__proto__":1,"constructor":{"prototype":2}}}';
    const reply = await gateway.call('POST', path, { body, headers: json });

    expect(reply.status).toBe(201);
    expect(Object.keys(gateway.calls[0]?.answers ?? {})).toEqual(['__proto__', 'constructor']);
    expect(Object.hasOwn(Object.prototype, 'prototype')).toBe(false);
  });

  it('is refused if a name comes twice', async () => {
    await using gateway = await givenAccepting();

    const body = '{"answers":{"a":1,"a":2}}';
    const refused = await gateway.call('POST', path, { body, headers: json });

    expect(refused.status).toBe(400);
    expect(refused.json.error.details).toEqual([
      { path: 'answers.a', code: 'custom', message: 'Given twice' },
    ]);
    expect(gateway.calls).toEqual([]);
  });

  it.each([
    ['a little', 300 * 1024],
    ['much', 8 * 1024 * 1024],
  ])('that is %s too large answers 413 to a client that sends it whole', async (_, size) => {
    await using gateway = await givenAccepting();

    const reply = await gateway.call('POST', path, { json: { answers: { a: 'x'.repeat(size) } } });

    expect([reply.status, reply.json.error.reason]).toEqual([413, 'too_large']);
    expect(gateway.calls).toEqual([]);
  });

  it('that holds more than 10,000 values answers 413, and is not looked into', async () => {
    await using gateway = await givenAccepting();
    const bodyOf = (values: number) => ({ answers: { list: Array(values).fill(0) } });

    const tooMany = await gateway.call('POST', path, { json: bodyOf(10_000) });
    const most = await gateway.call('POST', path, { json: bodyOf(9_997) });

    expect([tooMany.status, tooMany.json.error.reason]).toEqual([413, 'too_large']);
    expect(most.status).toBe(201);
    expect(gateway.calls).toHaveLength(1);
  });

  it('that comes in chunks and never ends within the limit answers 413', async () => {
    await using gateway = await givenAccepting();
    const chunk = `${(64 * 1024).toString(16)}\r\n${' '.repeat(64 * 1024)}\r\n`;

    const reply = await sendUnended(gateway.url, [
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      ...Array.from({ length: 400 }, () => chunk),
    ]);

    expect(reply).toMatch(/^HTTP\/1.1 413 /);
    expect(reply).toMatch(/Connection: close/i);
  });

  it('that announces far too much is refused before it is sent', async () => {
    await using gateway = await givenAccepting();

    const reply = await sendUnended(gateway.url, [
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{`,
    ]);

    expect(reply).toMatch(/^HTTP\/1.1 413 /);
  });

  it('that is cut off calls nothing and leaves the gateway serving', async () => {
    await using gateway = await givenAccepting();

    const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n`;
    await cutOff(gateway.url, `${head}{"answers":`);

    expect((await gateway.call('GET', '/health')).status).toBe(200);
    expect(gateway.calls).toEqual([]);
    expect(gateway.logged).toEqual([]);
  });
});

const json = { 'content-type': 'application/json' };

async function givenAccepting() {
  const calls: { answers?: object | undefined }[] = [];
  const gateway = await startGateway(({ service }) => {
    service(SubmissionsService, {
      createSubmission(request) {
        calls.push(request);
        return { submissionId: 'sub_1' };
      },
      checkAnswers: () => ({}),
    });
  });
  return Object.assign(gateway, { calls });
}

import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { parseS3Url, s3UploadStore } from '../../../src/services/uploads/s3-upload-store.ts';
import { contentOf, temporaryFiles } from '../../support/files.ts';
import { startService } from '../../support/server.ts';
import { until } from '../../support/until.ts';

describe('s3UploadStore', () => {
  it('gives back what was put, byte for byte, and nothing after it is removed', async () => {
    await using server = await startS3Server();
    using files = temporaryFiles();
    const store = s3UploadStore(parseS3Url(server.url), Date.now);
    const id = newId('upl', Date.now());
    const content = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 256));

    await store.put(id, files.of(content));
    const kept = await contentOf(await store.get(id));
    const names = [...server.objects.keys()];
    await store.remove(id);
    await store.remove(id);

    expect(kept.equals(content)).toBe(true);
    expect(names).toEqual([`/bucket/files/${id}`]);
    expect(await store.get(id)).toBeUndefined();
  });

  it.each([
    ['is answered 503', { failures: 2 }],
    ['loses its connection', { resets: 2 }],
    ['loses its connection, and is answered 503 then', { resets: 1, failures: 1 }],
  ])('tries again what %s, with the same content', async (_what, faults) => {
    await using server = await startS3Server(faults);
    using files = temporaryFiles();
    const store = s3UploadStore(parseS3Url(server.url), Date.now);
    const id = newId('upl', Date.now());

    await store.put(id, files.of('content'));

    expect([...server.objects.values()].map(String)).toEqual(['content']);
  });

  it('gives up on what fails for longer', async () => {
    await using server = await startS3Server({ failures: 3 });
    const store = s3UploadStore(parseS3Url(server.url), Date.now);
    const id = newId('upl', Date.now());

    const error = ConnectError.from(await store.get(id).catch((reason: unknown) => reason));

    expect([error.code, String(error.cause)]).toEqual([
      Code.Unavailable,
      expect.stringContaining('SlowDown'),
    ]);
    expect(await store.get(id)).toBeUndefined();
  });

  it('says that the store is out of reach, and why to the log only', async () => {
    await using server = await startS3Server();
    using files = temporaryFiles();
    const location = parseS3Url(server.url);
    const id = newId('upl', Date.now());
    const refused = s3UploadStore({ ...location, secretAccessKey: 'wrong' }, Date.now).put(id, files.of('x'));
    const gone = s3UploadStore({ ...location, address: 'http://127.0.0.1:1/bucket' }, Date.now).get(id);

    for (const [call, why] of [
      [refused, /403: .*SignatureDoesNotMatch/],
      [gone, /UPLOADS_URL: The connection was refused\. Check that it runs, and its host and port\.$/],
    ] as const) {
      const error = ConnectError.from(await call.catch((reason: unknown) => reason));
      expect(error.rawMessage).toBe('The file storage is unreachable; try again soon');
      expect(String(error.cause)).toMatch(why);
    }
    expect(server.objects.size).toBe(0);
  });

  it('refuses names that are not ids', async () => {
    const store = s3UploadStore(parseS3Url('s3://a:b@localhost/bucket'), Date.now);

    await expect(store.get('../other-bucket/secret')).rejects.toThrow('Not the id');
  });
});

describe('UPLOADS_URL', () => {
  it('keeps the files of submissions in that store', async () => {
    await using server = await startS3Server();
    await using service = await startService({ env: { UPLOADS_URL: server.url } });
    const form = await service.givenPublishedForm({ fields: [{ id: 'cv', type: 'file' }] });
    const data = new FormData();
    data.set('cv', new File(['a short life'], 'cv.txt', { type: 'text/plain' }));

    const sent = await service.call('POST', `/api/forms/${form.id}/submissions`, data, {
      headers: { accept: 'application/json' },
    });
    const { submission } = (await service.get(`/v1/submissions/${sent.json.submission_id}`)).json;
    const read = await service.get(new URL(submission.answers.cv.url).pathname);
    await service.delete(`/v1/submissions/${sent.json.submission_id}`);

    expect([sent.status, read.status, read.text]).toEqual([201, 200, 'a short life']);
    await until(() => server.objects.size === 0);
  });
});

describe('parseS3Url', () => {
  it.each([
    [
      's3://AKIA:a%2Fb%2Bc@s3.eu-central-1.amazonaws.com/forms?region=eu-central-1',
      ['https://s3.eu-central-1.amazonaws.com/forms', 'eu-central-1', 'AKIA', 'a/b+c'],
    ],
    [
      's3://k:s@minio:9000/forms/uploads/?tls=false',
      ['http://minio:9000/forms/uploads', 'us-east-1', 'k', 's'],
    ],
  ])('reads %s', (text, expected) => {
    const { address, region, accessKeyId, secretAccessKey } = parseS3Url(text);

    expect([address, region, accessKeyId, secretAccessKey]).toEqual(expected);
  });

  it.each([
    'https://k:s@host/bucket',
    's3://host/bucket',
    's3://k@host/bucket',
    's3://k:s@host',
    's3://k:s@host/UPPER',
    's3://k:s@host/bucket/../other/a b',
    's3://k:s@host/bucket?region=EU',
    's3://k:s@host/bucket?ssl=false',
    's3://k:%ff@host/bucket',
  ])('refuses %s without quoting it', (text) => {
    expect(() => parseS3Url(text)).toThrow(/^expected s3:\/\/KEY:SECRET@host/);
  });
});

/**
 * Starts an S3 store on a free port of 127.0.0.1 that holds `bucket` and knows one key. It checks each
 * request's signature (AWS Signature Version 4) by itself and refuses wrong ones with 403, as S3 does.
 * The first `resets` requests find their connection cut off, the `failures` after them are answered 503.
 */
async function startS3Server({
  key = 'KEY',
  secret = 'S/3+cret',
  region = 'eu-test-1',
  resets = 0,
  failures = 0,
} = {}) {
  const objects = new Map<string, Buffer>();
  let resetsLeft = resets;
  let failuresLeft = failures;
  const server = createServer((request, response) => void serve(request, response));
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const path = request.url ?? '';
    const answer = (status: number, content?: Buffer | string) => response.writeHead(status).end(content);
    if (resetsLeft > 0) {
      resetsLeft -= 1;
      request.socket.resetAndDestroy();
    } else if (failuresLeft > 0) {
      failuresLeft -= 1;
      answer(503, '<Error><Code>SlowDown</Code></Error>');
    } else if (!isSigned(request, body, { key, secret, region })) {
      answer(403, '<Error><Code>SignatureDoesNotMatch</Code></Error>');
    } else if (!path.startsWith('/bucket/')) answer(404, '<Error><Code>NoSuchBucket</Code></Error>');
    else if (request.method === 'PUT') {
      objects.set(path, body);
      answer(200);
    } else if (request.method === 'DELETE') {
      objects.delete(path);
      answer(204);
    } else answer(objects.has(path) ? 200 : 404, objects.get(path));
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `s3://${key}:${encodeURIComponent(secret)}@127.0.0.1:${port}/bucket/files?region=${region}&tls=false`,
    objects,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** As "Authenticating Requests: Using the Authorization Header" in the S3 reference describes it. */
function isSigned(request: IncomingMessage, body: Buffer, { key, secret, region }: Credentials): boolean {
  const header = request.headers.authorization ?? '';
  const [, credential = '', signedHeaders = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(header) ??
    [];
  const time = String(request.headers['x-amz-date']);
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const late = Math.abs(
    Date.now() - Date.parse(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5')),
  );
  if (credential !== `${key}/${scope}` || !(late < 15 * 60_000)) return false;
  if (request.headers['x-amz-content-sha256'] !== sha256(body)) return false;
  const names = signedHeaders.split(';');
  if (!['host', 'x-amz-content-sha256', 'x-amz-date'].every((name) => names.includes(name))) return false;

  const headers = names.map((name) => `${name}:${String(request.headers[name]).trim()}\n`).join('');
  const canonical = [request.method, request.url, '', headers, signedHeaders, sha256(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const signingKey = scope
    .split('/')
    .reduce<string | Buffer>((secretKey, part) => hmac(secretKey, part), `AWS4${secret}`);
  return hmac(signingKey, toSign).toString('hex') === signature;
}

function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

type Credentials = { key: string; secret: string; region: string };

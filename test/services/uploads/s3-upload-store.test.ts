import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { newId } from '../../../src/domain/ids.ts';
import { parseS3Url, s3UploadStore } from '../../../src/services/uploads/s3-upload-store.ts';
import { contentOf, temporaryFiles } from '../../support/files.ts';
import { startS3Server } from '../../support/s3-server.ts';
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
      [gone, /ECONNREFUSED/],
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

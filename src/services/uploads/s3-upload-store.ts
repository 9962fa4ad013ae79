import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, type Dispatcher, request } from 'undici';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { connectionCause } from '../../domain/errors/connection-causes.ts';
import { failed } from '../../domain/errors/failure.ts';
import { isId } from '../../domain/ids.ts';
import { localUploadStore, PIECE_BYTES, type StoredFile, type UploadStore } from './upload-store.ts';

/** The store of uploads that the settings name: an S3-compatible one, or else a folder in the data folder. */
export function openUploadStore({ uploads, dataDir }: UploadSettings, now: () => number): UploadStore {
  return uploads === undefined ? localUploadStore(join(dataDir, 'uploads')) : s3UploadStore(uploads, now);
}

/**
 * Keeps the bytes of uploads in an S3-compatible store, one object for each, named by its id.
 *
 * Calls can be repeated without harm, so a lost connection, 429 and 5xx are retried twice. What still
 * fails is thrown as `UNAVAILABLE`, with the store's own words as its cause. `now` is in milliseconds.
 */
export function s3UploadStore(location: S3Location, now: () => number): UploadStore {
  const dispatcher = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });

  async function send(method: Method, id: string, file: StoredFile | undefined): Promise<Reply> {
    const signed = await new AwsV4Signer({
      ...location,
      method,
      url: `${location.address}/${id}`,
      service: 's3',
      headers: { 'x-amz-content-sha256': file?.sha256 ?? EMPTY_SHA256 },
      datetime: new Date(now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    }).sign();
    const { statusCode, body } = await request(signed.url, {
      dispatcher,
      method,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(file && { 'content-length': String(file.size) }),
      },
      ...(file && { body: createReadStream(file.path) }),
    });
    return { status: statusCode, body };
  }

  /** Each try reads the file anew, which undici's own retries can't. */
  async function sendAgain(method: Method, id: string, file: StoredFile | undefined): Promise<Reply> {
    for (const delayMs of RETRY_DELAYS_MS) {
      const reply = await send(method, id, file).catch(() => undefined);
      if (reply !== undefined && reply.status !== 429 && reply.status < 500) return reply;
      await reply?.body.dump();
      await sleep(delayMs);
    }
    return send(method, id, file);
  }

  async function call(method: Method, id: string, file?: StoredFile): Promise<Reply> {
    if (!isId('upl', id)) throw new TypeError('Not the id of an upload');
    const reply = await sendAgain(method, id, file).catch((cause: unknown) => {
      const { says, advice = '' } = connectionCause(cause);
      throw outOfReach(new Error(`UPLOADS_URL: ${says}. ${advice}`, { cause }));
    });
    const missing = reply.status === 404 && method !== 'PUT';
    if (missing || (reply.status >= 200 && reply.status < 300)) return reply;
    const words = (await reply.body.text()).slice(0, MAX_WORDS);
    throw outOfReach(new Error(`The upload store answered ${method} with ${reply.status}: ${words}`));
  }

  return {
    async put(id, file) {
      await (await call('PUT', id, file)).body.dump();
    },
    async get(id) {
      const { status, body } = await call('GET', id);
      if (status !== 404) return piecesOf(body);
      await body.dump();
      return undefined;
    },
    async remove(id) {
      await (await call('DELETE', id)).body.dump();
    },
  };
}

async function* piecesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of body) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) yield chunk.subarray(at, at + PIECE_BYTES);
    }
  } catch (cause) {
    throw outOfReach(cause);
  }
}

function outOfReach(cause: unknown) {
  const facts = { retryAfter: RETRY_AFTER_SECONDS, cause };
  return failed(Reason.UNAVAILABLE, 'The file storage is unreachable; try again soon', facts);
}

const EMPTY_SHA256 = createHash('sha256').digest('hex');

/** All tries together are shorter than a person waits for a file. */
const RETRY_DELAYS_MS = [200, 1_000];

/** A store that sends no byte for so long is treated as down. */
const TIMEOUT_MS = 10_000;

const RETRY_AFTER_SECONDS = 5;

/** As much of a store's answer as the log needs. */
const MAX_WORDS = 500;

/**
 * Reads the address of an S3-compatible store: `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/FOLDER]`, with
 * `?region=` (default `us-east-1`) and `?tls=false` for one on the same machine. Key and secret are
 * percent-encoded.
 *
 * Throws an `Error` that says what was expected, and never quotes the text: it holds a secret.
 */
export function parseS3Url(text: string): S3Location {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const [bucket = '', ...folders] = url?.pathname.replace(/^\/|\/$/g, '').split('/') ?? [];
  const options = [...(url?.searchParams ?? [])];
  const known = options.every(([name, value]) => optionPatterns.get(name)?.test(value) === true);
  if (
    url?.protocol !== 's3:' ||
    url.hostname === '' ||
    url.username === '' ||
    url.password === '' ||
    !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) ||
    !folders.every((folder) => /^[\w.-]+$/.test(folder) && !/^\.+$/.test(folder)) ||
    !known
  ) {
    throw new Error(`expected ${EXPECTED}`);
  }
  const scheme = url.searchParams.get('tls') === 'false' ? 'http' : 'https';
  return {
    address: `${scheme}://${url.host}/${[bucket, ...folders].join('/')}`,
    region: url.searchParams.get('region') ?? 'us-east-1',
    accessKeyId: decoded(url.username),
    secretAccessKey: decoded(url.password),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`expected ${EXPECTED}`);
  }
}

const EXPECTED =
  's3://KEY:SECRET@host[:port]/bucket[/folder][?region=…&tls=false], key and secret percent-encoded';

const optionPatterns = new Map([
  ['region', /^[a-z0-9-]{1,64}$/],
  ['tls', /^(true|false)$/],
]);

/** Where the objects lie and who asks for them. */
export type S3Location = {
  /** Bucket and folder included, without a slash at the end. */
  address: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
};

type UploadSettings = { uploads?: S3Location | undefined; dataDir: string };

type Method = 'PUT' | 'GET' | 'DELETE';

type Reply = { status: number; body: Dispatcher.ResponseData['body'] };

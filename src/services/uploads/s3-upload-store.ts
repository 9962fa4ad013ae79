import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { request } from 'undici';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { isId } from '../../domain/ids.ts';
import { failed } from '../../rpc/errors.ts';
import type { UploadStore } from './upload-store.ts';

/**
 * Keeps the bytes of uploads in an S3-compatible store, one object for each, named by its id.
 *
 * Every call may be repeated without harm, so that a fault that passes is tried over. What lasts is
 * thrown as `UNAVAILABLE`, with the store's own words as its cause. `now` is in milliseconds.
 */
export function s3UploadStore(location: S3Location, now: () => number): UploadStore {
  async function call(method: Method, id: string, content?: Uint8Array): Promise<Reply> {
    for (const delay of RETRY_DELAYS_MS) {
      const reply = await send(method, id, content).catch(() => undefined);
      if (reply !== undefined && !isPassing(reply.status)) return reply;
      await sleep(delay);
    }
    return send(method, id, content);
  }

  /** A signature holds for minutes, so each try gets its own. */
  async function send(method: Method, id: string, content: Uint8Array = EMPTY): Promise<Reply> {
    const signed = await new AwsV4Signer({
      ...location,
      method,
      url: `${location.address}/${id}`,
      service: 's3',
      headers: { 'x-amz-content-sha256': createHash('sha256').update(content).digest('hex') },
      datetime: new Date(now()).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    }).sign();
    const { statusCode, body } = await request(signed.url, {
      method,
      headers: Object.fromEntries(signed.headers),
      ...(method === 'PUT' && { body: content }),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    return { status: statusCode, content: await body.bytes() };
  }

  async function expectOk(method: Method, id: string, content?: Uint8Array): Promise<Reply> {
    if (!isId('upl', id)) throw new TypeError('Not the id of an upload');
    const reply = await call(method, id, content).catch((cause: unknown) => {
      throw outOfReach(cause);
    });
    const missing = reply.status === 404 && method !== 'PUT';
    if (missing || (reply.status >= 200 && reply.status < 300)) return reply;
    const words = Buffer.from(reply.content).toString('utf8').slice(0, MAX_WORDS);
    throw outOfReach(new Error(`The upload store answered ${method} with ${reply.status}: ${words}`));
  }

  return {
    async put(id, content) {
      await expectOk('PUT', id, content);
    },
    async get(id) {
      const { status, content } = await expectOk('GET', id);
      return status === 404 ? undefined : content;
    },
    async remove(id) {
      await expectOk('DELETE', id);
    },
  };
}

function outOfReach(cause: unknown) {
  const facts = { retryAfter: RETRY_AFTER_SECONDS, cause };
  return failed(Reason.UNAVAILABLE, 'The store of files is out of reach; try again soon', facts);
}

function isPassing(status: number): boolean {
  return status === 429 || status >= 500;
}

const EMPTY = new Uint8Array();

/** Together shorter than a person waits for a file. */
const RETRY_DELAYS_MS = [200, 1000];

/** Without a byte for so long a store is taken for dead. */
const TIMEOUT_MS = 10_000;

const RETRY_AFTER_SECONDS = 5;

/** As much of a store's answer as the log needs. */
const MAX_WORDS = 500;

/**
 * Reads where an S3-compatible store lies: `s3://KEY:SECRET@HOST[:PORT]/BUCKET[/FOLDER]`, with
 * `?region=` (default `us-east-1`) and `?tls=false` for one on the same machine. What is special in a
 * URL is percent-encoded in the key and the secret.
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

type Method = 'PUT' | 'GET' | 'DELETE';

type Reply = { status: number; content: Uint8Array };

import { readFileSync } from 'node:fs';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { envelope, openHttp2 } from '../support/wire.ts';
import {
  type AttackedService,
  HEALTH_MS,
  harmDone,
  MEMORY_MIB,
  sharedService,
  UNLIMITED_RATES,
  watchMemory,
} from './attacked-service.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

it('takes every message bomb in passing, with a heap of 512 MiB', { timeout: 120_000 }, async () => {
  const service = await sharedService('pglite', UNLIMITED_RATES);
  const attacks = await attacksOn(service);

  const faults: string[] = [];
  const costs: Cost[] = [];
  for (const [name, attack] of attacks) {
    const costOfOne = () =>
      costOf(service, name, async () => {
        const said = await attack().catch((error: unknown) => `0 ${String(error)}`);
        if (isFault(said)) faults.push(`${name}: ${said}`);
      });
    let cost = await costOfOne();
    // The garbage of earlier calls may have been collected meanwhile, on a processor that others slow down.
    for (let repeat = 0; isDear(cost) && repeat < REPEATS; repeat += 1) cost = await costOfOne();
    costs.push(cost);
  }
  const refused = async ([, attack]: Attack) => void (await attack().catch(() => 'closed'));
  const some = attacks.filter((_, index) => index % 3 === 0);
  const harm = await harmDone(service, () => inParallel(8, some, refused));

  const slowest = costs.toSorted((left, right) => right.loopMs - left.loopMs)[0];
  const largest = costs.toSorted((left, right) => right.addedMib - left.addedMib)[0];
  console.log('most of the event loop and most memory for one call:', slowest, largest);
  expect(attacks.length).toBeGreaterThan(900);
  expect(faults).toEqual([]);
  expect(costs.filter(isDear)).toEqual([]);
  expect(harm.slowestHealthMs).toBeLessThan(HEALTH_MS);
  expect(harm.addedMib).toBeLessThan(MEMORY_MIB);
});

/** The cost of a call that is dear by itself is so each time. */
const REPEATS = 4;

/** What a call took of the processor in the thread with the service's event loop, and of memory at its peak. */
async function costOf({ process }: AttackedService, name: string, call: () => Promise<void>): Promise<Cost> {
  const { pid } = process.child;
  const loopMs = () => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const memory = watchMemory(pid);
  const before = loopMs();
  await call();
  return { name, loopMs: loopMs() - before, addedMib: memory.addedMib() };
}

/** More than any call without a key may cost. */
function isDear({ loopMs, addedMib }: Cost): boolean {
  return loopMs > 50 || addedMib > 20;
}

async function inParallel<Each>(
  count: number,
  all: readonly Each[],
  work: (each: Each) => Promise<void>,
): Promise<void> {
  const rest = all.values();
  const one = async () => {
    for (const each of rest) await work(each);
  };
  await Promise.all(Array.from({ length: count }, one));
}

/** Every bomb to every kind of method, as every protocol carries it. */
async function attacksOn({ url, grpcUrl, formId }: AttackedService): Promise<Attack[]> {
  const post = (path: string, body: Uint8Array, type: string, encoding?: string) => async () => {
    const headers = { 'content-type': type, ...(encoding && { 'content-encoding': encoding }) };
    const reply = await fetch(url + path, { method: 'POST', headers, body: Buffer.from(body) });
    return `${reply.status} ${await reply.text()}`;
  };
  const grpc = (path: string, body: Uint8Array, type: string, encoding?: string) => async () => {
    const headers = { 'content-type': type, ...(encoding && { 'grpc-encoding': encoding }) };
    using connection = openHttp2(grpcUrl);
    const reply = await connection.call(path, [envelope(body, encoding ? 1 : 0)], headers);
    return `${JSON.stringify(reply.trailers)} ${reply.body.toString('latin1')}`;
  };
  const get = (path: string, body: Uint8Array, codec: string, compression: string) => async () => {
    const message = Buffer.from(body).toString('base64url');
    const query = `encoding=${codec}&base64=1&compression=${compression}&message=${message}`;
    const reply = await fetch(`${url}${path}?${query}`);
    return `${reply.status} ${await reply.text()}`;
  };

  const attacks: Attack[] = [];
  for (const path of methods) {
    const empty = Buffer.alloc(path.endsWith('CreateUpload') ? 2 * MIB : 200 * KIB);
    const byGrpc = async () => {
      using connection = openHttp2(grpcUrl);
      const reply = await connection.call(path, [empty], { 'content-type': 'application/grpc+proto' });
      return `${JSON.stringify(reply.trailers)} ${reply.body.toString('latin1')}`;
    };
    attacks.push([`gRPC, empty messages to ${path}`, byGrpc]);
    attacks.push([`gRPC-Web, empty messages to ${path}`, grpcWeb(url + path, empty, 'proto')]);
  }
  for (const { name, codec, bytes } of bombs(formId)) {
    for (const [encoding, body] of encoded(bytes)) {
      for (const path of methods) {
        const label = `${name} in ${encoding ?? 'plain'} to ${path}`;
        const type = codec === 'json' ? 'json' : 'proto';
        attacks.push([`Connect, ${label}`, post(path, body, `application/${type}`, encoding)]);
        if (body.length < 11_000 && encoding) {
          attacks.push([`GET, ${label}`, get(path, body, type, encoding)]);
        }
        if (encoding !== undefined && encoding !== 'gzip') continue;
        attacks.push([`gRPC, ${label}`, grpc(path, body, `application/grpc+${type}`, encoding)]);
        const web = Buffer.from(envelope(body, encoding ? 1 : 0));
        attacks.push([`gRPC-Web, ${label}`, grpcWeb(url + path, web, type, encoding)]);
      }
      if (codec !== 'json') continue;
      for (const path of [`/api/forms/${formId}/submissions`, '/api/forms/create', '/v1/webhooks', '/mcp']) {
        attacks.push([`REST, ${name} to ${path}`, post(path, body, 'application/json', encoding)]);
      }
    }
    // It takes long to compress them: connections that the service has closed meanwhile are to be noticed.
    await yieldToEventLoop();
  }
  return attacks;
}

function grpcWeb(url: string, body: Buffer, type: string, encoding?: string) {
  return async () => {
    const headers = {
      'content-type': `application/grpc-web+${type}`,
      ...(encoding && { 'grpc-encoding': encoding }),
    };
    const reply = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
    return `${reply.status} ${await reply.text()}`;
  };
}

/** Public methods whose messages hold any JSON, a definition, a file; one that needs a key. */
const methods = [
  '/headlessforms.v1.SubmissionsService/CreateSubmission',
  '/headlessforms.v1.FormsService/CreateForm',
  '/headlessforms.v1.UploadsService/CreateUpload',
  '/headlessforms.v1.SessionsService/CreateSession',
];

/** As far as it may arrive, and as a bomb of 14 MiB that some kilobytes hold. */
function encoded(bytes: (size: number) => Buffer): [string | undefined, Buffer][] {
  const [fits, large] = [bytes(255 * KIB), bytes(14 * MIB)];
  return [
    [undefined, fits],
    ['gzip', gzipSync(fits)],
    ['gzip', gzipSync(large, { level: 1 })],
    ['br', brotliCompressSync(large, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['deflate', deflateSync(large, { level: 1 })],
  ];
}

function bombs(formId: string): Bomb[] {
  const within = (head: string, filler: string | Buffer, tail: string) => (size: number) =>
    Buffer.concat([
      Buffer.from(head),
      Buffer.alloc(size - head.length - tail.length, filler),
      Buffer.from(tail),
    ]);
  const answers = `{"formId":"${formId}","answers":{"email":`;
  const names = Array.from({ length: 20_000 }, (_, index) => `"n${index}":0,`).join('');
  const entries = Buffer.concat(Array.from({ length: 12_000 }, (_, index) => entry(index)));
  return [
    { name: 'a wide list', codec: 'json', bytes: within(`${answers}[`, '[],', '0]}}') },
    { name: 'a wide object', codec: 'json', bytes: within(`${answers}{`, names, '"n":0}}}') },
    { name: 'a deep list', codec: 'json', bytes: within(answers, '[', '') },
    { name: 'a deep object', codec: 'json', bytes: within(answers, '{"a":', '') },
    { name: 'whitespace', codec: 'json', bytes: within('', ' ', '{}') },
    { name: 'one long text', codec: 'json', bytes: within(`${answers}"`, '\\\\', '"}}') },
    { name: 'many quotes', codec: 'json', bytes: within(`${answers}"`, '\\"', '"}}') },
    { name: 'empty fields', codec: 'json', bytes: within('{"definition":{"fields":[', '{},', '{}]}}') },
    { name: 'unknown names', codec: 'json', bytes: within('{', names, '"n":0}') },
    { name: 'unknown numbers', codec: 'proto', bytes: within('', Buffer.from([0xf8, 1, 0]), '') },
    { name: 'groups in groups', codec: 'proto', bytes: within('', Buffer.from([0x8b, 6]), '') },
    { name: 'packed numbers', codec: 'proto', bytes: (size) => field(100, Buffer.alloc(size, 1)) },
    { name: 'a wide Struct', codec: 'proto', bytes: (size) => field(2, Buffer.alloc(size, entries)) },
    { name: 'a deep Struct', codec: 'proto', bytes: deepStruct },
    {
      name: 'empty definition fields',
      codec: 'proto',
      bytes: (size) => field(1, Buffer.alloc(size, emptyField)),
    },
    { name: 'a file', codec: 'proto', bytes: (size) => field(5, Buffer.alloc(size)) },
  ];
}

/** A field of bytes: its tag and length before its content. */
function field(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; bytes.length === 0 || rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push((rest % 128) + (rest >= 128 ? 128 : 0));
  }
  return Buffer.from(bytes);
}

/** An entry of a Struct, `key: 0`. */
function entry(index: number): Buffer {
  const value = field(2, Buffer.from([0x11, 0, 0, 0, 0, 0, 0, 0, 0]));
  return field(1, Buffer.concat([field(1, Buffer.from(`k${index}`)), value]));
}

/** A field of a definition that has nothing. */
const emptyField = Buffer.from([0x22, 0]);

/** Lists in lists, thousands deep: each level is a Value that holds a ListValue. The rest is one long text. */
function deepStruct(size: number): Buffer {
  let list: Buffer = Buffer.alloc(0);
  for (let depth = 0; depth < 5_000; depth += 1) list = field(1, field(6, list));
  const deep = field(1, Buffer.concat([field(1, Buffer.from('a')), field(2, field(6, list))]));
  return Buffer.concat([field(2, deep), field(3, Buffer.alloc(size - deep.length, 'a'))]);
}

/** A reply that blames the service, or none at all. What is not implemented is a compression. */
function isFault(said: string): boolean {
  return /^(500|503|0) |"code":"(internal|unknown)"|grpc-status"?: ?"?(2|13)\b|^\{\} $/.test(said);
}

type Cost = { name: string; loopMs: number; addedMib: number };
type Attack = [name: string, attack: () => Promise<string>];
type Bomb = { name: string; codec: 'json' | 'proto'; bytes: (size: number) => Buffer };

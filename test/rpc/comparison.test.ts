import { once } from 'node:events';
import { Agent, createServer as createHttp1Server, request as requestHttp1, type Server } from 'node:http';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Code, ConnectError, createServiceImplSpec, type HandlerContext } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { compressionGzip, connectNodeAdapter } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js';
import { FailureSchema, Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { FormsService } from '../../gen/headlessforms/v1/forms_pb.js';
import { UploadsService } from '../../gen/headlessforms/v1/uploads_pb.js';
import { failed } from '../../src/domain/errors/failure.ts';
import { limitsOf } from '../../src/domain/methods.ts';
import { createMethodCalls } from '../../src/rpc/method-calls.ts';
import { startRpcServer } from '../support/rpc-server.ts';
import { envelope, type Http2Answer, type Http2Connection, openHttp2 } from '../support/wire.ts';

// The same calls, one of each protocol, codec and kind of fault, to this server and to Connect's own adapter: over
// HTTP/2, and those that browsers and HTTP libraries make over HTTP/1.1 as well.

const paths = {
  unary: '/headlessforms.v1.FormsService/GetForm',
  'server stream': '/grpc.health.v1.Health/Watch',
  'client stream': '/headlessforms.v1.UploadsService/UploadFile',
};

const key = { authorization: 'Bearer any' };

/** What of our answers differs on purpose, and why. Each part does in every call that the difference is about. */
const intended: Difference[] = [
  {
    why: 'Every answer has an id, is kept by no cache and taken for no page, and a browser runs nothing in it',
    isOf: () => true,
    parts: [
      'header x-request-id',
      'header cache-control',
      'header x-content-type-options',
      'header referrer-policy',
      'header content-security-policy',
    ],
  },
  {
    why: 'An unknown method is a failure in the protocol of the call, which libraries tell from an unknown address',
    isOf: ({ fault }) => fault === 'an unknown method',
    parts: ['status', 'header content-type', 'code', 'words', 'details'],
  },
  {
    why: 'Some libraries show grpc-message as it comes, so that only what a trailer cannot hold is encoded',
    isOf: (_, stock) => /%(?:2[0-46-9A-F]|[3-6][0-9A-F]|7[0-9A-E])/.test(stock['grpc-message'] ?? ''),
    parts: ['grpc-message'],
  },
  {
    why: 'A message that cannot be read is a mistake of its caller, and none of the service',
    isOf: ({ fault }, { code }) => code === 'internal' && fault !== 'a failure that is not meant for callers',
    parts: ['code', 'words', 'details'],
  },
  {
    why: 'Every failure of a unary call has a detail; interceptors add those of streams',
    isOf: ({ kind }, { details }) => kind === 'unary' && details === '',
    parts: ['details'],
  },
  {
    why: 'Sizes and compression are checked before Connect sees the message',
    isOf: ({ kind, fault }) =>
      [
        'a message that is not compressed as it says',
        'a message that is too large once decompressed',
      ].includes(fault) ||
      (fault === 'a message that is too large' && kind !== 'client stream') ||
      fault === 'a GET of what is no gzip',
    parts: ['words', 'details'],
  },
  {
    why: 'JSON is read as that of REST: what is wrong with it is said with a place, and quotes nothing of it',
    isOf: ({ kind }, { words = '' }) =>
      kind !== 'client stream' && /cannot decode message \S+ from JSON/.test(words),
    parts: ['words', 'details'],
  },
  {
    why: 'The encodings that are known are told, as the protocol of gRPC demands',
    isOf: ({ kind, protocol, fault }) =>
      kind === 'unary' && protocol !== 'connect' && fault === 'an unknown compression',
    parts: ['header grpc-accept-encoding'],
  },
  {
    why: 'Whoever had no time hears when to try again',
    isOf: ({ kind, fault }) => kind === 'unary' && fault === 'a time-out of nothing',
    parts: ['metadata retry-after'],
  },
  {
    why: 'The trailers of gRPC have little room',
    isOf: ({ kind, protocol, fault }) =>
      kind === 'unary' && protocol === 'grpc' && fault === 'a long failure in gzip',
    parts: ['words', 'details'],
  },
  ...['header connect-content-encoding', 'header grpc-encoding'].map((part) => ({
    why: 'Nothing about health is worth compressing, and older health checks of gRPC end their program on an encoding',
    isOf: ({ kind }: Call, stock: Record<string, string | undefined>) =>
      kind === 'server stream' && stock[part] !== undefined,
    parts: [part],
  })),
  {
    why: 'A GET has no body, of which it could tell the type',
    isOf: ({ fault }) => fault === 'a GET with a type of content',
    parts: ['status', 'header content-type', 'message'],
  },
];

describe('a call is answered as by Connect, but for what is intended', () => {
  const occurred = new Set<Difference>();

  it.each(callsOf().map((call) => [call.name, call] as const))('%s', async (_, call) => {
    const { ours, stock: connect } = servers[call.over];
    const [answer, stock] = await Promise.all([send(ours, call), send(connect, call)]);

    const about = intended.filter(({ isOf }) => isOf(call, stock));
    for (const difference of about) occurred.add(difference);
    const expected = new Set(about.flatMap(({ parts }) => parts));
    if (expected.has('words') && call.protocol !== 'connect') expected.add('grpc-message');
    if (expected.has('code') && call.protocol === 'connect' && call.kind === 'unary') expected.add('status');
    const differing = Object.keys({ ...answer, ...stock }).filter((part) => answer[part] !== stock[part]);
    expect(differing.toSorted(), JSON.stringify({ answer, stock })).toEqual([...expected].toSorted());
  });

  it('in nothing that is intended no more', () => {
    expect(intended.filter((difference) => !occurred.has(difference))).toEqual([]);
  });
});

let ours: Awaited<ReturnType<typeof startRpcServer>>;
let stock: { http1: Server; http2: Http2Server };
let servers: Record<Call['over'], { ours: Connection; stock: Connection }>;

beforeAll(async () => {
  ours = await startRpcServer({}, { methods, calls: createMethodCalls(specs, []), gate });
  stock = { http1: createHttp1Server(stockAdapter()), http2: createServer(stockAdapter()) };
  const urls = Object.values(stock).map(async (server: Server | Http2Server) => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  const [http1 = '', http2 = ''] = await Promise.all(urls);
  servers = {
    'HTTP/1.1': { ours: openHttp1(ours.url), stock: openHttp1(http1) },
    'HTTP/2': { ours: openHttp2(ours.grpcUrl), stock: openHttp2(http2) },
  };
});
afterAll(async () => {
  for (const connection of Object.values(servers).flatMap(Object.values)) connection[Symbol.dispose]();
  for (const server of Object.values(stock)) server.close();
  await ours[Symbol.asyncDispose]();
});

const specs = [
  createServiceImplSpec<typeof FormsService>(FormsService, {
    getForm({ formId }, context) {
      answerAs(formId, context);
      return formId === 'large' ? { form: { id: 'x'.repeat(2000) } } : {};
    },
  }),
  createServiceImplSpec<typeof Health>(Health, {
    async *watch({ service }, context) {
      answerAs(service, context);
      yield { status: Status.SERVING };
      if (service === 'second') throw new ConnectError('answers.email: Ünknown', Code.NotFound);
    },
  }),
  createServiceImplSpec<typeof UploadsService>(UploadsService, {
    async uploadFile(messages, context) {
      for await (const { filename } of messages) answerAs(filename, context);
      return {};
    },
  }),
];
const methods = specs
  .flatMap((spec) => Object.values(spec.methods))
  .filter(({ method }) => Object.values(paths).includes(`/${method.parent.typeName}/${method.name}`));

/** Throws or sets what a message asks for. */
function answerAs(asked: string, { responseHeader, responseTrailer, signal }: HandlerContext): void {
  const details = [{ desc: FailureSchema, value: { reason: Reason.NOT_FOUND } }];
  const metadata = { 'x-after': 'failure' };
  if (asked === 'refused')
    throw new ConnectError('answers.email: 100 % Ünknown', Code.NotFound, metadata, details);
  if (asked === 'long') throw new ConnectError('long '.repeat(500), Code.NotFound, metadata, details);
  if (asked === 'broken') throw new Error('the password is swordfish');
  if (asked === 'headers' || asked === 'late') {
    responseHeader.set('x-before', 'a');
    responseTrailer.set('x-after', 'b');
  }
  if (asked === 'late') throw new ConnectError('Late', Code.NotFound, undefined, details);
  if (signal.aborted) throw signal.reason;
}

async function gate(_method: unknown, header: Headers): Promise<void> {
  if (!header.has('authorization')) throw failed(Reason.MISSING_KEY, 'This call needs an API key');
}

function stockAdapter() {
  return connectNodeAdapter({
    routes(router) {
      for (const { method, impl } of methods) {
        router.rpc(method, impl, {
          readMaxBytes: limitsOf(method).readMaxBytes,
          acceptCompression: [compressionGzip],
          requestGate: ({ requestHeader }) => gate(method, requestHeader),
        });
      }
    },
  });
}

function callsOf(): Call[] {
  const calls: Call[] = [];
  for (const kind of ['unary', 'server stream', 'client stream'] as const) {
    for (const protocol of ['connect', 'grpc', 'grpc-web'] as const) {
      for (const codec of ['proto', 'json'] as const) {
        const wire = { kind, protocol, codec };
        for (const [fault, made] of Object.entries(faultsOf(wire))) {
          for (const over of protocol === 'grpc' ? overHttp2 : overBoth) {
            const name = `${fault}: ${kind} by ${protocol} in ${codec} over ${over}`;
            calls.push({ ...wire, over, fault, name, method: 'POST', path: paths[kind], body: [], ...made });
          }
        }
      }
    }
  }
  return calls;
}

/** HTTP/1.1 has no trailers that gRPC could rely on. */
const overHttp2 = ['HTTP/2'] as const;
const overBoth = ['HTTP/2', 'HTTP/1.1'] as const;

/** The calls with a fault, and some without. */
function faultsOf({ kind, protocol, codec }: Wire): Record<string, Partial<Call> & Pick<Call, 'headers'>> {
  const isEnveloped = protocol !== 'connect' || kind !== 'unary';
  const type = `application/${protocol !== 'connect' ? `${protocol}+` : isEnveloped ? 'connect+' : ''}${codec}`;
  const names =
    protocol !== 'connect'
      ? { encoding: 'grpc-encoding', accept: 'grpc-accept-encoding', timeout: 'grpc-timeout' }
      : isEnveloped
        ? {
            encoding: 'connect-content-encoding',
            accept: 'connect-accept-encoding',
            timeout: 'connect-timeout-ms',
          }
        : { encoding: 'content-encoding', accept: 'accept-encoding', timeout: 'connect-timeout-ms' };
  const milliseconds = (ms: number) => ({ [names.timeout]: protocol === 'connect' ? `${ms}` : `${ms}m` });
  const headers = { ...key, 'content-type': type };
  const framed = (message: Uint8Array, flags = 0) =>
    isEnveloped ? envelope(message, flags) : Buffer.from(message);
  const asking = (text: string) => framed(messageOf(text));
  const fieldName = { unary: 'formId', 'server stream': 'service', 'client stream': 'filename' }[kind];
  const fieldNumber = { unary: 1, 'server stream': 1, 'client stream': 4 }[kind];
  const messageOf = (text: string) =>
    codec === 'json'
      ? Buffer.from(JSON.stringify({ [fieldName]: text }))
      : Buffer.concat([Buffer.from([fieldNumber * 8 + 2, ...lengthOf(text)]), Buffer.from(text)]);
  const large = messageOf('x'.repeat(300 * 1024));
  const gzipped = { ...headers, [names.encoding]: 'gzip' };
  return {
    'nothing wrong': { headers, body: [asking('')] },
    'a caller who reads gzip': { headers: { ...headers, [names.accept]: 'br, gzip' }, body: [asking('')] },
    'a long answer in gzip': { headers: { ...headers, [names.accept]: 'gzip' }, body: [asking('large')] },
    'a long failure in gzip': { headers: { ...headers, [names.accept]: 'gzip' }, body: [asking('long')] },
    'a compressed message': { headers: gzipped, body: [framed(gzipSync(messageOf('')), 1)] },
    'a message that is not compressed as it says': {
      headers: gzipped,
      body: [framed(Buffer.from([1, 2]), 1)],
    },
    'half of a compressed message': {
      headers: gzipped,
      body: [framed(gzipSync(messageOf('')).subarray(0, 12), 1)],
    },
    'a message that is too large once decompressed': { headers: gzipped, body: [framed(gzipSync(large), 1)] },
    'a compressed message that does not say so': { headers, body: [framed(gzipSync(messageOf('')), 1)] },
    'an unknown compression': { headers: { ...headers, [names.encoding]: 'zstd' }, body: [asking('')] },
    'another type of content': {
      headers: { ...headers, 'content-type': type.replace(codec, 'xml') },
      body: [asking('')],
    },
    'no type of content': { headers: key, body: [asking('')] },
    'a charset': { headers: { ...headers, 'content-type': `${type}; charset=utf-8` }, body: [asking('')] },
    'a type of content in capitals': {
      headers: { ...headers, 'content-type': type.toUpperCase() },
      body: [asking('')],
    },
    'no message': { headers, body: [] },
    'a cut message': { headers, body: [asking('whole').subarray(0, -1)] },
    'two messages': { headers, body: [asking(''), asking('')] },
    // Connect leaves the rest of a larger body unread, so that its caller never ends.
    'a message that is too large': {
      headers,
      body: [isEnveloped ? Buffer.from([0, 0, 0x7f, 0, 0, 1]) : large],
    },
    'an unknown field': {
      headers,
      body: [framed(codec === 'json' ? Buffer.from('{"other":1}') : Buffer.from([0xf8, 0x7f, 1]))],
    },
    'what is no message': {
      headers,
      body: [framed(codec === 'json' ? Buffer.from('{') : Buffer.from([0xff, 0xff]))],
    },
    'a field of another type': {
      headers,
      body: [
        framed(
          codec === 'json' ? Buffer.from(`{"${fieldName}":[1]}`) : Buffer.from([fieldNumber * 8 + 1, 1]),
        ),
      ],
    },
    'an unknown method': { headers, path: `${paths[kind]}s`, body: [asking('')] },
    'a PUT': { headers, method: 'PUT', body: [asking('')] },
    'a time-out that is none': { headers: { ...headers, [names.timeout]: '5 s' }, body: [asking('')] },
    'a time-out': { headers: { ...headers, ...milliseconds(5000) }, body: [asking('')] },
    'a time-out of nothing': { headers: { ...headers, ...milliseconds(0) }, body: [asking('')] },
    'a time-out of days': { headers: { ...headers, ...milliseconds(99_999_999) }, body: [asking('')] },
    'no key': { headers: { 'content-type': type }, body: [asking('')] },
    'no key and an unknown compression': {
      headers: { 'content-type': type, [names.encoding]: 'zstd' },
      body: [asking('')],
    },
    'a failure': { headers, body: [asking('refused')] },
    'a failure that is not meant for callers': { headers, body: [asking('broken')] },
    'headers and trailers': { headers, body: [asking('headers')] },
    'headers and trailers before a failure': { headers, body: [asking('late')] },
    ...(kind === 'server stream' && { 'a failure after a message': { headers, body: [asking('second')] } }),
    ...(kind === 'unary' &&
      protocol === 'grpc-web' && {
        'trailers of the caller': { headers, body: [asking(''), envelope(Buffer.from('x-a: b\r\n'), 0x80)] },
      }),
    ...(kind === 'unary' && protocol === 'connect' && getsOf(messageOf, codec)),
    ...(kind !== 'unary' && {
      'a GET': { headers: key, method: 'GET', path: `${paths[kind]}?encoding=json&message=%7B%7D` },
    }),
  };
}

/** The same by GET, whose message is in the query. */
function getsOf(messageOf: (text: string) => Buffer, codec: Wire['codec']): ReturnType<typeof faultsOf> {
  const get = (query: string, headers: Record<string, string> = {}) => ({
    method: 'GET',
    path: `${paths.unary}?${query}`,
    headers: { ...key, ...headers },
  });
  const inUrl = (message: Buffer) => message.toString('base64url');
  const inText = `encoding=${codec}&message=${encodeURIComponent(messageOf('large').toString('latin1'))}`;
  const inBase64 = `encoding=${codec}&base64=1&message=`;
  return {
    'a GET': get(inText),
    'a GET in base64': get(inBase64 + inUrl(messageOf('headers'))),
    'a GET in gzip': get(`${inBase64}${inUrl(gzipSync(messageOf('large')))}&compression=gzip`),
    'a GET with a type of content': get(inText, { 'content-type': 'text/plain' }),
    'a GET of what is no base64': get(`${inBase64}!!!`),
    'a GET of what is no message': get(inBase64 + inUrl(Buffer.from(codec === 'json' ? '{' : [0xff]))),
    'a GET of what is no gzip': get(`${inBase64}${inUrl(Buffer.from('no gzip'))}&compression=gzip`),
    'a GET in an unknown compression': get(`${inText}&compression=zstd`),
    'a GET without a codec': get('message=%7B%7D'),
    'a GET in an unknown codec': get('encoding=xml&message=%7B%7D'),
    'a GET without a message': get(`encoding=${codec}`),
    'a GET with a time-out that is none': get(inText, { 'connect-timeout-ms': 'soon' }),
    'a GET with a failure': get(inBase64 + inUrl(messageOf('refused'))),
    'a GET without a key': { ...get(inText), headers: {} },
    'a HEAD': { ...get(inText), method: 'HEAD' },
  };
}

/** A length of protobuf. */
function lengthOf(text: string): number[] {
  const bytes: number[] = [];
  for (let rest = text.length; ; rest >>= 7) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest & 0x7f) | 0x80);
  }
}

async function send(connection: Connection, { path, body, headers, method }: Call): Promise<Parts> {
  const answer = await connection.call(path, body, { 'x-request-id': 'same', ...headers }, { method });
  return partsOf(answer);
}

/** As `openHttp2`, over kept connections of HTTP/1.1, whose bodies say their length. */
function openHttp1(url: string): Connection {
  const agent = new Agent({ keepAlive: true });
  return {
    async call(path, frames, headers, { method } = {}) {
      const sent = requestHttp1(url + path, { agent, method, headers });
      sent.end(Buffer.concat(frames));
      const [answer] = await once(sent, 'response');
      const body = await buffer(answer);
      return { status: answer.statusCode, headers: answer.headers, trailers: answer.trailers, body };
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** An answer taken apart, so that two can be compared by name; failures by the same names in all protocols. */
function partsOf({ status, headers, trailers, body }: Http2Answer): Parts {
  const parts: Parts = { status: String(status) };
  const { 'content-type': type = '', 'content-encoding': encoding, ...others } = headers;
  const metadata: Record<string, string> = { ...trailers };
  if (/grpc|connect\+/.test(type)) {
    for (const [index, { flags, data }] of envelopesIn(body).entries()) {
      if ((flags & 0x80) !== 0) Object.assign(metadata, trailersIn(data.toString()));
      else if ((flags & 2) !== 0) Object.assign(parts, failureParts(JSON.parse(data.toString()).error));
      else parts[`message ${index}`] = `${flags} ${data.toString('hex')}`;
    }
  } else if (status >= 400 && body.length > 0) {
    Object.assign(parts, failureParts(JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body))));
  } else if (body.length > 0) parts.message = body.toString('hex');
  const trailing = { ...metadata, ...others };
  const { 'grpc-status': code, 'grpc-message': message } = trailing;
  const error = findTrailerError(new Headers(trailing));
  if (message !== undefined) parts['grpc-message'] = message;
  if (error === undefined && code !== undefined) parts.code = code;
  if (error !== undefined) {
    const details = error.details.map((detail) => ('type' in detail ? { type: detail.type } : { type: '' }));
    Object.assign(
      parts,
      failureParts({ code: codes[error.code] ?? String(error.code), message: error.rawMessage, details }),
    );
  }
  for (const [name, value] of Object.entries({
    'content-type': type,
    'content-encoding': encoding,
    ...others,
  }))
    parts[name === 'retry-after' ? 'metadata retry-after' : `header ${name}`] = value ?? '';
  for (const [name, value] of Object.entries(metadata))
    parts[name === 'retry-after' ? 'metadata retry-after' : `trailer ${name}`] = value;
  const framing = ['content-length', 'transfer-encoding'];
  for (const name of ['date', ...framing, 'grpc-status', 'grpc-message', 'grpc-status-details-bin']) {
    delete parts[`header ${name}`];
    delete parts[`trailer ${name}`];
  }
  return parts;
}

const codes: Partial<Record<Code, string>> = {
  [Code.Internal]: 'internal',
  [Code.InvalidArgument]: 'invalid_argument',
};

function failureParts(error: { code?: string; message?: string; details?: { type: string }[] } = {}): Parts {
  const { code = '', message = '', details = [] } = error;
  return { code, words: message, details: String(details.map(({ type }) => type)) };
}

/** The trailers of gRPC-Web. */
function trailersIn(text: string): Record<string, string> {
  const lines = text.split('\r\n').filter((line) => line !== '');
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  );
}

function envelopesIn(body: Buffer): { flags: number; data: Buffer }[] {
  const envelopes = [];
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    const [flags, data] = [body.readUInt8(at), body.subarray(at + 5, end)];
    const isEnd = (flags & 0x82) !== 0;
    envelopes.push({ flags, data: isEnd && (flags & 1) !== 0 ? gunzipSync(data) : data });
    at = end;
  }
  return envelopes;
}

type Wire = {
  kind: keyof typeof paths;
  protocol: 'connect' | 'grpc' | 'grpc-web';
  codec: 'proto' | 'json';
};

type Connection = Pick<Http2Connection, 'call' | typeof Symbol.dispose>;

type Call = Wire & {
  over: 'HTTP/1.1' | 'HTTP/2';
  fault: string;
  name: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Uint8Array[];
};

type Parts = Record<string, string>;

/** `isOf` says by a call, and by how Connect answers it, whether the difference is about it. */
type Difference = { why: string; isOf: (call: Call, stock: Parts) => boolean; parts: string[] };

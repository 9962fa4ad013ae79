import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** Starts a collector of OTLP over HTTP on a free port of 127.0.0.1, which keeps the spans that arrive. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const raw: Buffer[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const isTraces =
      request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
    if (isTraces) {
      raw.push(body);
      spans.push(...spansIn(body));
    }
    response.writeHead(isTraces ? 200 : 415).end();
  };
  const server = createServer((request, response) => void receive(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    /** All that arrived, as text, to look for what must not be in it. */
    text: () => Buffer.concat(raw).toString('latin1'),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Of opentelemetry/proto/trace/v1/trace.proto, what tests look at. Numbers are those of its fields. */
function spansIn(request: Uint8Array): CollectedSpan[] {
  const scopes = all(request, 1).flatMap((resource) => all(resource, 2));
  return scopes.flatMap((scope) => all(scope, 2)).map(spanOf);
}

function spanOf(span: Uint8Array): CollectedSpan {
  const [status] = all(span, 15);
  return {
    traceId: hex(first(span, 1)),
    spanId: hex(first(span, 2)),
    parentId: hex(first(span, 4)),
    name: text(first(span, 5)),
    attributes: Object.fromEntries(
      all(span, 9).map((pair) => [text(first(pair, 1)), text(first(first(pair, 2) ?? NOTHING, 1))]),
    ),
    links: all(span, 13).map((link) => ({ traceId: hex(first(link, 1)), spanId: hex(first(link, 2)) })),
    failure: status && text(first(status, 2)),
  };
}

/** The fields with a number that have a length. */
function all(message: Uint8Array, number: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === number && type === WireType.LengthDelimited) found.push(reader.bytes());
    else reader.skip(type, field);
  }
  return found;
}

function first(message: Uint8Array, number: number): Uint8Array | undefined {
  return all(message, number)[0];
}

const hex = (bytes: Uint8Array = NOTHING) => Buffer.from(bytes).toString('hex');
const text = (bytes: Uint8Array = NOTHING) => Buffer.from(bytes).toString();
const NOTHING = new Uint8Array();

export type CollectedSpan = {
  traceId: string;
  spanId: string;
  /** Empty: it begins a trace. */
  parentId: string;
  name: string;
  /** Those that are texts; others are empty. */
  attributes: Record<string, string>;
  links: { traceId: string; spanId: string }[];
  /** Why it failed; undefined, or empty, if it did not. */
  failure: string | undefined;
};

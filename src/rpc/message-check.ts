import type { DescMethod } from '@bufbuild/protobuf';
import type { Compression } from '@connectrpc/connect/protocol';
import { compressionGzip } from '@connectrpc/connect-node';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { hasMoreNodes } from '../domain/json-nodes.ts';
import { limitsOf } from '../domain/message-limits.ts';
import { failed } from './errors.ts';
import { hasMoreMessages } from './message-nodes.ts';

/**
 * Throws TOO_LARGE if a request message, binary or JSON, holds more than the method allows: small messages
 * can hold so many values that making objects of them would block the process.
 */
function checkMessage(method: DescMethod, message: Uint8Array): void {
  const { maxNodes } = limitsOf(method);
  const tooMany =
    hasMoreMessages(message, method.input, maxNodes) ||
    (mayBeJson(message) && hasMoreNodes(message, maxNodes));
  if (tooMany) throw failed(Reason.TOO_LARGE, `The message holds more than ${maxNodes} values`);
}

/** Does the same for the whole body of a request, as far as it is not compressed: see `checkedGzip`. */
export function checkBody(method: DescMethod, header: Headers, body: Uint8Array): void {
  if (enveloped.test(header.get('content-type') ?? '')) {
    for (const message of plainMessages(body)) checkMessage(method, message);
  } else if ((header.get('content-encoding') ?? 'identity') === 'identity') {
    checkMessage(method, body);
  }
}

const enveloped = /^application\/(grpc|connect\+)/i;

/** The messages in a body of envelopes (a byte of flags, four of length, the message) that are not compressed. */
function* plainMessages(body: Uint8Array): Iterable<Uint8Array> {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  for (let at = 0; at + ENVELOPE_HEAD <= body.length; ) {
    const end = at + ENVELOPE_HEAD + view.getUint32(at + 1);
    const isCompressed = (view.getUint8(at) & COMPRESSED_FLAG) !== 0;
    if (!isCompressed) yield body.subarray(at + ENVELOPE_HEAD, end);
    at = end;
  }
}

const ENVELOPE_HEAD = 5;
const COMPRESSED_FLAG = 1;

/** Gzip for requests to a method: a message is checked as soon as it is decompressed. */
export function checkedGzip(method: DescMethod): Compression {
  return {
    ...compressionGzip,
    async decompress(bytes, readMaxBytes) {
      const message = await compressionGzip.decompress(bytes, readMaxBytes);
      checkMessage(method, message);
      return message;
    },
  };
}

/** Whether the text begins as an object does. Some binary messages do, too: they are counted in both ways. */
function mayBeJson(message: Uint8Array): boolean {
  const start = message.findIndex((byte) => !whitespace.has(byte));
  return message[start] === 0x7b;
}

const whitespace = new Set([0x20, 0x09, 0x0a, 0x0d]);

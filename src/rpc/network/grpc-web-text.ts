import type { IncomingHttpHeaders } from 'node:http';
import { createContextKey } from '@connectrpc/connect';
import type { UniversalServerResponse } from '@connectrpc/connect/protocol';
import { unreadable } from '../errors.ts';

/**
 * Makes a call by gRPC-Web in text, which old browsers need, one in binary, which Connect's handlers speak. Returns
 * whether it was one: its body is in base64 then, and its answer is to be.
 */
export function takeText(headers: IncomingHttpHeaders): boolean {
  const { 'content-type': type = '' } = headers;
  if (!textType.test(type)) return false;
  headers['content-type'] = type.replace(textType, 'application/grpc-web');
  return true;
}

/** The bytes of a body in base64. Throws BAD_REQUEST if it is not. */
export function fromText(body: Uint8Array): Uint8Array {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1');
  if (text.length % 4 !== 0 || !base64.test(text)) throw unreadable();
  return Buffer.from(text, 'base64');
}

/** The answer in base64, each part of its body by itself, so that a stream can be read as it comes. */
export function toText(answer: UniversalServerResponse): UniversalServerResponse {
  const { body } = answer;
  const header = new Headers(answer.header);
  const type = header.get('content-type');
  if (type !== null)
    header.set('content-type', type.replace('application/grpc-web', 'application/grpc-web-text'));
  header.delete('content-length');
  return { ...answer, header, ...(body !== undefined && { body: encoded(body) }) };
}

async function* encoded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const { buffer, byteOffset, byteLength } of body) {
    yield Buffer.from(Buffer.from(buffer, byteOffset, byteLength).toString('base64'), 'latin1');
  }
}

/** How much larger base64 is. */
export const TEXT_OVERHEAD = 4 / 3;

/** Whether the body of the call is in base64. */
export const textKey = createContextKey(false, { description: 'gRPC-Web in text' });

const textType = /^application\/grpc-web-text\b/i;
const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

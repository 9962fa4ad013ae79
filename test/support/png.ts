import { crc32, deflateSync, inflateSync } from 'node:zlib';

/** The same picture packed tightly: the browser packs in a hurry. */
export function smallerPng(png: Buffer): Buffer {
  const parts: Buffer[] = [];
  const data: Buffer[] = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + length);
    if (type === 'IDAT') data.push(content);
    else if (type === 'IEND')
      parts.push(chunk('IDAT', deflateSync(inflateSync(Buffer.concat(data)), { level: 9 })));
    if (type !== 'IDAT') parts.push(chunk(type, content));
    at += length + CHUNK_FRAME_BYTES;
  }
  return Buffer.concat([png.subarray(0, SIGNATURE_BYTES), ...parts]);
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const frame = Buffer.alloc(CHUNK_FRAME_BYTES - 4);
  frame.writeUInt32BE(content.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

const SIGNATURE_BYTES = 8;
/** Length, type and checksum. */
const CHUNK_FRAME_BYTES = 12;

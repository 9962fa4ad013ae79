import type { Readable } from 'node:stream';

/**
 * The first 2 KiB of an answer's body as text, or what of it comes within a second. The rest is never
 * read: the connection is given up instead.
 */
export async function readStart(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  body.on('error', () => undefined);
  const timer = setTimeout(() => body.destroy(), READ_MS);
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > KEPT_BYTES) break;
    }
  } catch {
    // A body that is cut off is read as far as it came.
  } finally {
    clearTimeout(timer);
    body.destroy();
  }
  const text = Buffer.concat(chunks).subarray(0, KEPT_BYTES).toString('utf8');
  return text.replaceAll('\0', '\uFFFD');
}

const KEPT_BYTES = 2048;

/** The status is known by then; the words are only for the log. */
const READ_MS = 1000;

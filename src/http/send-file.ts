import type { Response } from 'express';
import type { Upload } from '../../gen/forms/v1/uploads_pb.js';
import { sendMessages } from './reply.ts';
import { present } from './values.ts';

/**
 * Sends a file that an RPC answers with in pieces, of which the first says what it is. Browsers save it under its name
 * and never show it: it is a stranger's.
 */
export async function sendFile(response: Response, pieces: AsyncGenerator<FilePiece>): Promise<void> {
  const first = await pieces.next();
  const { filename, contentType, size } = present(first.value?.upload);
  response.attachment(filename);
  response.setHeader('content-type', contentType);
  response.setHeader('content-length', size);
  response.setHeader('cache-control', 'no-store');
  response.setHeader('referrer-policy', 'no-referrer');
  response.setHeader('x-content-type-options', 'nosniff');
  response.setHeader('content-security-policy', "default-src 'none'; sandbox");
  await sendMessages(response, first, pieces, ({ content }) => content);
}

type FilePiece = { upload?: Upload | undefined; content: Uint8Array };

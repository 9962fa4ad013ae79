import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { Reason } from '../../gen/forms/v1/errors_pb.js';
import { Refused } from './failure.ts';

/**
 * Reads the post of a page, urlencoded or multipart.
 *
 * `onFile` gets each file that a person has chosen, one after the other: while it works the next
 * one waits, so that memory holds one or two files. `content` is undefined for a file above
 * `MAX_FILE_BYTES`. Throws `Refused` for what is too large, of another kind, or cut off.
 */
export async function readPost(request: IncomingMessage, onFile: OnFile): Promise<Inputs> {
  const type = (request.headers['content-type'] ?? '').split(';', 1).join().trim().toLowerCase();
  if (type === 'multipart/form-data') return readMultipart(request, onFile);
  if (type !== '' && type !== 'application/x-www-form-urlencoded') {
    throw new Refused(Reason.MEDIA_TYPE, 'Expected a form post');
  }
  const inputs: Inputs = new Map();
  const text = (await readBytes(request, MAX_TEXT_BYTES)).toString('utf8');
  for (const [name, value] of new URLSearchParams(text)) add(inputs, name, value);
  return inputs;
}

/** Reads a body of at most `limit` bytes. Throws `Refused` if it is larger. */
export async function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limit) throw new Refused(Reason.TOO_LARGE, `The body is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, size);
}

function readMultipart(request: IncomingMessage, onFile: OnFile): Promise<Inputs> {
  const { promise, resolve, reject } = Promise.withResolvers<Inputs>();
  const inputs: Inputs = new Map();
  let size = 0;
  let work: Promise<unknown> = Promise.resolve();
  const fail = (error: unknown) => {
    request.unpipe();
    request.resume();
    reject(error);
  };
  const tooLarge = new Refused(Reason.TOO_LARGE, 'The form is too large');
  let reader: BusboyInstance;
  try {
    reader = new Busboy({
      headers: { ...request.headers, 'content-type': request.headers['content-type'] ?? '' },
      limits: { fieldSize: MAX_TEXT_BYTES, fields: MAX_INPUTS, files: MAX_FILES, fileSize: MAX_FILE_BYTES },
    });
  } catch {
    return Promise.reject(new Refused(Reason.BAD_REQUEST, 'The form post can not be read'));
  }
  reader.on('field', (name, value) => {
    size += name.length + value.length;
    if (size > MAX_TEXT_BYTES) fail(tooLarge);
    else add(inputs, name, value);
  });
  reader.on('file', (name, stream, filename) => {
    // A file input without a choice arrives as a file without a name.
    if (!filename) {
      stream.resume();
      return;
    }
    stream.on('error', fail);
    work = work
      .then(() => stream.toArray())
      .then((chunks) =>
        onFile({ name, filename, content: stream.truncated ? undefined : Buffer.concat(chunks) }),
      );
    work.catch(fail);
  });
  for (const limit of ['fieldsLimit', 'filesLimit', 'partsLimit'] as const)
    reader.on(limit, () => fail(tooLarge));
  reader.on('error', () => fail(new Refused(Reason.BAD_REQUEST, 'The form post can not be read')));
  reader.on('finish', () => {
    work.then(() => resolve(inputs), fail);
  });
  request.on('close', () => {
    if (!request.complete) fail(new Refused(Reason.BAD_REQUEST, 'The form post was cut off'));
  });
  request.pipe(reader);
  return promise;
}

function add(inputs: Inputs, name: string, value: string): void {
  const values = inputs.get(name);
  if (values === undefined) inputs.set(name, [value]);
  else values.push(value);
}

/** The largest file that an answer may be. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** As much text as the JSON doors take. */
const MAX_TEXT_BYTES = 256 * 1024;

/** A hundred fields with all their choices ticked stay well below it. */
const MAX_INPUTS = 10_000;

/** As many as several file fields take. */
const MAX_FILES = 100;

/** The inputs of a post by name, with their values in order. */
export type Inputs = Map<string, string[]>;

export type PostedFile = { name: string; filename: string; content: Buffer | undefined };

type OnFile = (file: PostedFile) => Promise<void>;

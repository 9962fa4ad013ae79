import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { UploadFileRequestSchema } from '../../gen/headlessforms/v1/uploads_pb.js';
import { bodyTooLarge, CutOff } from '../admission/read-body.ts';
import { failed } from '../domain/errors/failure.ts';
import { MAX_FILE_BYTES } from '../domain/fields/file.ts';
import { formPostLimits, MAX_MESSAGE_BYTES } from '../domain/limits/limits.ts';
import { isGzip, mediaTypeOf, readBytes, readParts } from './body.ts';

/** The media types of an HTML form's post. */
export const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'] as const;

/** Whether a request is what an HTML form sends. */
export function isFormPost(request: IncomingMessage): boolean {
  const type = mediaTypeOf(request.headers['content-type']);
  return formTypes.some((known) => known === type);
}

/**
 * Reads the inputs of an HTML form, each with its values in the order they came. A body without a media type
 * reads as urlencoded.
 *
 * `takeFile` gets each file as it arrives, one after the other; what it returns becomes a value of the input,
 * and what it leaves of the file is dropped. An empty file input is ignored. Throws a failure if the body
 * can't be read or is too large, and a `CutOff` if it ends early.
 */
export async function readForm(request: IncomingMessage, takeFile: TakeFile): Promise<FormInputs> {
  const inputs: FormInputs = new Map();
  const add = (name: string, value: string) => {
    const values = inputs.get(name);
    if (values === undefined) inputs.set(name, [value]);
    else values.push(value);
  };
  const type = mediaTypeOf(request.headers['content-type']);
  if (type === 'multipart/form-data') {
    await readMultipart(request, add, (file) => takeFile(file, inputs));
  } else if (type === '' || type === 'application/x-www-form-urlencoded') {
    const text = (await readBytes(request, MAX_MESSAGE_BYTES)).toString('utf8');
    // An HTML form's post would have the brace encoded.
    if (text.trimStart().startsWith('{')) {
      throw failed(Reason.MEDIA_TYPE, 'JSON needs the header Content-Type: application/json');
    }
    for (const [name, value] of new URLSearchParams(text)) add(name, value);
  } else {
    throw failed(Reason.MEDIA_TYPE, 'Expected the post of an HTML form');
  }
  return inputs;
}

/** What `UploadFile` gets: what the file is, and then its content as it arrives. */
export async function* fileParts(first: FilePart, content: AsyncIterable<Buffer>): AsyncGenerator<FilePart> {
  yield first;
  for await (const part of content) yield { content: part };
}

/** Ignores the files of a form's post. */
export const noFiles: TakeFile = async () => undefined;

async function readMultipart(
  request: IncomingMessage,
  add: (name: string, value: string) => void,
  takeFile: (file: ReceivedFile) => ReturnType<TakeFile>,
): Promise<void> {
  // Parts have bounds of their own, but what is beyond them is inflated, too, before it is dropped.
  const limit = isGzip(request) ? MAX_FILE_BYTES + MAX_MESSAGE_BYTES : Number.POSITIVE_INFINITY;
  const parser = parserOf(request);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const open = new Set<BusboyFileStream>();
  let files = Promise.resolve();
  let textBytes = 0;

  // The parser passes on parts without a name, which nobody may send (RFC 7578, 4.2).
  parser.on('field', (name: string | undefined, value, nameCut, valueCut) => {
    if (name === undefined) return reject(notMultipart());
    textBytes += name.length + value.length;
    if (nameCut || valueCut || textBytes > MAX_MESSAGE_BYTES) reject(bodyTooLarge(MAX_MESSAGE_BYTES));
    else add(name, value);
  });
  parser.on('file', (name: string | undefined, stream, filename) => {
    open.add(stream);
    // The reader of the stream gets the error, too; without a listener it would end the process.
    stream.on('error', reject);
    if (name === undefined) return reject(notMultipart());
    files = files.then(async () => {
      const parts: AsyncIterator<Buffer> = stream.iterator({ destroyOnReturn: false });
      const first = await parts.next();
      // Browsers send a file input without a file as an empty file without a name.
      if (!filename && first.done === true) return;
      const value = await takeFile({ name, filename: filename ?? '', content: partsFrom(first, parts) });
      if (value !== undefined) add(name, value);
      stream.resume();
    });
    files.catch(reject);
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => reject(failed(Reason.TOO_LARGE, 'The form has too many inputs')));
  }
  parser.once('error', () => reject(notMultipart()));
  parser.once('finish', () => void files.then(resolve, reject));
  const body = Readable.from(readParts(request, limit), { objectMode: false });
  body.once('error', reject).pipe(parser);
  try {
    await promise;
  } finally {
    body.unpipe(parser).destroy();
    // A reader of a file would wait forever.
    for (const stream of open) if (!stream.readableEnded) stream.destroy(new CutOff());
  }
}

function parserOf(request: IncomingMessage): BusboyInstance {
  const contentType = request.headers['content-type'] ?? '';
  try {
    return new Busboy({ headers: { ...request.headers, 'content-type': contentType }, limits });
  } catch {
    throw notMultipart();
  }
}

function notMultipart(): ConnectError {
  return failed(Reason.BAD_REQUEST, 'The body is not multipart/form-data');
}

async function* partsFrom(
  first: IteratorResult<Buffer, unknown>,
  rest: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  if (first.done === true) return;
  yield first.value;
  yield* { [Symbol.asyncIterator]: () => rest };
}

// One byte more than a file may have, by which its reader sees that it is too large.
const limits = { ...formPostLimits, fileSize: MAX_FILE_BYTES + 1 };

/** The values of each input by its name. A map, since strangers choose the names. */
export type FormInputs = Map<string, string[]>;

/** The last value of an input; empty if there is none. */
export function lastOf(inputs: FormInputs, name: string): string {
  return inputs.get(name)?.at(-1) ?? '';
}

/** A file of a form's post, whose content is read once. It ends a byte after `MAX_FILE_BYTES`. */
export type ReceivedFile = { name: string; filename: string; content: AsyncGenerator<Buffer> };

/** `before` has the inputs that came before the file, and perhaps some that came after it. */
type TakeFile = (file: ReceivedFile, before: FormInputs) => Promise<string | undefined>;

export type FilePart = MessageInitShape<typeof UploadFileRequestSchema>;

import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { CutOff, MAX_JSON_BYTES, mediaTypeOf, readBytes, refuseEncoded, tooLarge } from './body.ts';
import { Refusal } from './errors.ts';

/** The media types of an HTML form's post. */
export const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'] as const;

/** Whether a request is what an HTML form sends. */
export function isFormPost(request: IncomingMessage): boolean {
  const type = mediaTypeOf(request.headers['content-type']);
  return formTypes.some((known) => known === type);
}

/**
 * Reads the inputs of an HTML form, each with its values in the order they came.
 *
 * `takeFile` gets each file, one after the other, so that only one is in memory at a time; what it
 * returns becomes the input's value, and undefined none. An empty file input is passed over. Throws
 * a `Refusal` if the body can't be read or is too large.
 */
export async function readForm(
  request: IncomingMessage,
  takeFile: (file: ReceivedFile) => Promise<string | undefined>,
): Promise<FormInputs> {
  const inputs: FormInputs = new Map();
  const add = (name: string, value: string) => {
    const values = inputs.get(name);
    if (values === undefined) inputs.set(name, [value]);
    else values.push(value);
  };
  if (mediaTypeOf(request.headers['content-type']) === 'multipart/form-data') {
    await readMultipart(request, add, takeFile);
  } else {
    const text = (await readBytes(request, MAX_JSON_BYTES)).toString('utf8');
    for (const [name, value] of new URLSearchParams(text)) add(name, value);
  }
  return inputs;
}

async function readMultipart(
  request: IncomingMessage,
  add: (name: string, value: string) => void,
  takeFile: (file: ReceivedFile) => Promise<string | undefined>,
): Promise<void> {
  refuseEncoded(request);
  const parser = parserOf(request);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let files = Promise.resolve();
  let textBytes = 0;

  parser.on('field', (name, value, nameCut, valueCut) => {
    textBytes += name.length + value.length;
    if (nameCut || valueCut || textBytes > MAX_JSON_BYTES) reject(tooLarge(MAX_JSON_BYTES));
    else add(name, value);
  });
  parser.on('file', (name, stream, filename) => {
    files = files.then(async () => {
      const content = await collect(stream);
      if (stream.truncated) throw tooLarge(MAX_FILE_BYTES);
      // Browsers send an input without a file as one without a name.
      if (!filename && content.length === 0) return;
      const value = await takeFile({ name, filename: filename ?? '', content });
      if (value !== undefined) add(name, value);
    });
    files.catch(reject);
  });
  for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    parser.on(limit, () => reject(new Refusal('too_large', 'The form has too many inputs')));
  }
  parser.once('error', () => reject(notMultipart()));
  parser.once('finish', () => void files.then(resolve, reject));
  request.once('close', () => {
    if (!request.complete) reject(new CutOff());
  });
  request.pipe(parser);
  try {
    await promise;
  } finally {
    request.unpipe(parser);
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

function notMultipart(): Refusal {
  return new Refusal('bad_request', 'The body is not multipart/form-data');
}

async function collect(stream: BusboyFileStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** The largest file. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** A form has at most 100 fields; repeated names, and names that are no field's, come beside them. */
const limits = {
  fieldNameSize: 200,
  fieldSize: MAX_JSON_BYTES,
  fields: 2000,
  files: 20,
  fileSize: MAX_FILE_BYTES,
  parts: 2020,
  headerPairs: 20,
  headerSize: 8192,
};

/** Names come from strangers, so they are keys of a map, never of an object. */
export type FormInputs = Map<string, string[]>;

export type ReceivedFile = { name: string; filename: string; content: Buffer };

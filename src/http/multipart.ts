import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { Dicer } from '@fastify/busboy';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import type { UploadFileRequestSchema } from '../../gen/headlessforms/v1/uploads_pb.js';
import { bodyTooLarge, CutOff } from '../admission/read-body.ts';
import { failed } from '../domain/errors/failure.ts';
import { pathOf } from '../domain/errors/violations.ts';
import { MAX_FILE_BYTES } from '../domain/fields/file.ts';
import { formPostLimits, MAX_MESSAGE_BYTES } from '../domain/limits/limits.ts';
import { isGzip, mediaTypeOfHeader, parameterOf, readBytes, readDecodedParts } from './body.ts';
import {
  inputDecoder,
  percentDecoded,
  type RawInput,
  readUrlEncoded,
  undecodable,
  valuesByName,
} from './charset.ts';

/** The media types of an HTML form's post. */
export const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data'] as const;

/** Whether a request is what an HTML form sends. */
export function isFormPost(request: IncomingMessage): boolean {
  const type = mediaTypeOfHeader(request.headers['content-type']);
  return formTypes.some((known) => known === type);
}

/**
 * Reads the inputs of an HTML form, each with its values in the order they came, as texts of the charset that the form
 * is in. A body without a media type reads as urlencoded.
 *
 * `takeFile` gets each file as it arrives, one after the other; what it returns becomes a value of the input,
 * and what it leaves of the file is dropped. An empty file input is ignored. Throws a failure if the body
 * can't be read or is too large, and a `CutOff` if it ends early.
 */
export async function readFormInputs(request: IncomingMessage, takeFile: TakeFile): Promise<FormInputs> {
  const { 'content-type': contentType } = request.headers;
  const charset = parameterOf(contentType, 'charset');
  const type = mediaTypeOfHeader(contentType);
  const inputs: ReceivedInput[] = [];
  if (type === 'multipart/form-data') {
    await readMultipart(request, inputs, (input, content) => {
      const [name, filename] = inputDecoder([...inputs, input], charset)(input);
      inputs.push({ ...input, filename });
      return takeFile({ name, filename, content }, () => textsOf(inputs, charset));
    });
  } else if (type === '' || type === 'application/x-www-form-urlencoded') {
    const text = (await readBytes(request, MAX_ENCODED * MAX_MESSAGE_BYTES)).toString('latin1');
    // An HTML form's post would have the brace encoded.
    if (text.trimStart().startsWith('{')) {
      throw failed(Reason.MEDIA_TYPE, 'JSON needs the header Content-Type: application/json');
    }
    if (text.split('&', formPostLimits.inputs + 1).length > formPostLimits.inputs) throw tooManyInputs();
    inputs.push(...readUrlEncoded(text));
  } else {
    throw failed(Reason.MEDIA_TYPE, 'Expected the post of an HTML form');
  }
  return textsOf(inputs, charset);
}

/** A byte is percent-encoded as three characters. */
const MAX_ENCODED = 3;

/** Throws if all together are larger than a body of JSON may be. */
function textsOf(inputs: readonly ReceivedInput[], charset: string | undefined): FormInputs {
  const decode = inputDecoder(inputs, charset);
  let bytes = 0;
  const texts = inputs.flatMap((input): [name: string, value: string][] => {
    const [name, value] = decode(input);
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (bytes > MAX_MESSAGE_BYTES) throw bodyTooLarge(MAX_MESSAGE_BYTES);
    if (input.filename === undefined) return [[name, value]];
    if (input.filename === value) return [];
    throw undecodable(pathOf(name), 'The input _charset_ must come before the files, which it names');
  });
  return valuesByName(texts);
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
  inputs: RawInput[],
  takeFile: (input: RawInput, content: AsyncGenerator<Buffer>) => ReturnType<TakeFile>,
): Promise<void> {
  // Parts have bounds of their own, but what is beyond them is inflated, too, before it is dropped.
  const limit = isGzip(request) ? MAX_FILE_BYTES + MAX_MESSAGE_BYTES : Number.POSITIVE_INFINITY;
  const boundary = parameterOf(request.headers['content-type'], 'boundary');
  if (!boundary) throw notMultipart();
  const parser = new Dicer({ boundary, ...formPostLimits.header });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const files: Readable[] = [];
  let partCount = 0;
  let hasHeader = true;
  let isRefused = false;
  let textBytes = 0;
  let taken = Promise.resolve();

  const countText = (bytes: number) => {
    textBytes += bytes;
    if (textBytes > MAX_MESSAGE_BYTES) throw bodyTooLarge(MAX_MESSAGE_BYTES);
  };
  /** Texts are read as they come, files when all before them are read. */
  const take = async (part: Readable, header: PartHeader, before: Promise<void>) => {
    const { isFile, ...input } = inputOf(header);
    countText(input.name.length);
    if (isFile) files.push(part);
    if (files.length > formPostLimits.files) throw tooManyInputs();
    if (isFile) return before.then(() => readFile(part, input));
    for await (const bytes of part) {
      countText(bytes.length);
      input.value += bytes.toString('latin1');
    }
    await before;
    inputs.push(input);
  };
  const readFile = async (part: Readable, input: RawInput) => {
    const parts: AsyncIterator<Buffer> = part.iterator({ destroyOnReturn: false });
    const first = await parts.next();
    // Browsers send a file input without a file as an empty file without a name.
    if (input.value === '' && first.done === true) return;
    const value = await takeFile(input, contentFrom(first, parts));
    if (value !== undefined) inputs.push({ name: input.name, value });
    part.resume();
  };
  parser.on('part', (part) => {
    partCount += 1;
    // The reader of a part gets the error, too; without a listener it would end the process.
    part.on('error', reject);
    if (isRefused) return;
    const isTooMany = partCount > formPostLimits.inputs;
    isRefused = isTooMany || !hasHeader;
    if (isRefused) return reject(isTooMany ? tooManyInputs() : notMultipart());
    hasHeader = false;
    part.on('header', (header: PartHeader) => {
      hasHeader = true;
      if (!/^form-data\b/i.test(header['content-disposition']?.[0] ?? '')) return part.resume();
      taken = take(part, header, taken);
      taken.catch(reject);
    });
  });
  parser.once('error', () => reject(notMultipart()));
  parser.once('finish', () => void taken.then(resolve, reject));
  const body = Readable.from(inPieces(readDecodedParts(request, limit)), { objectMode: false });
  body.once('error', reject).pipe(parser);
  try {
    await promise;
  } finally {
    body.unpipe(parser).destroy();
    // A reader of a file would wait forever.
    for (const file of files) if (!file.readableEnded) file.destroy(new CutOff());
  }
}

/** So that no more is parsed of what is refused: 64 KiB of boundaries alone take 100 ms. */
async function* inPieces(parts: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  for await (const part of parts)
    for (let at = 0; at < part.length; at += PIECE_BYTES) yield part.subarray(at, at + PIECE_BYTES);
}

const PIECE_BYTES = 8 * 1024;

/** What a part of a form says of itself: `value` is the name of a file, and `charset` then that of this name. */
function inputOf(header: PartHeader): RawInput & { isFile: boolean } {
  const disposition = header['content-disposition']?.[0];
  const type = header['content-type']?.[0];
  const name = parameterOf(disposition, 'name');
  // Nobody may send a part without a name (RFC 7578, 4.2).
  if (name === undefined) throw notMultipart();
  const [, charset, encoded] =
    /^([\w.:-]{1,40})'[^']*'(.*)$/.exec(parameterOf(disposition, 'filename*') ?? '') ?? [];
  const filename = encoded === undefined ? parameterOf(disposition, 'filename') : percentDecoded(encoded);
  const isFile = filename !== undefined || mediaTypeOfHeader(type) === 'application/octet-stream';
  return { name, value: filename ?? '', charset: isFile ? charset : parameterOf(type, 'charset'), isFile };
}

function tooManyInputs(): ConnectError {
  return failed(Reason.TOO_LARGE, 'The form has too many inputs');
}

function notMultipart(): ConnectError {
  return failed(Reason.BAD_REQUEST, 'The body is not multipart/form-data');
}

/** Ends with the part by which the reader sees that the file is too large. */
async function* contentFrom(
  first: IteratorResult<Buffer, unknown>,
  rest: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  let size = 0;
  for (let part = first; part.done !== true && size <= MAX_FILE_BYTES; part = await rest.next()) {
    size += part.value.length;
    yield part.value;
  }
}

/** The values of each input by its name. A map, since strangers choose the names. */
export type FormInputs = Map<string, string[]>;

/** The last value of an input; empty if there is none. */
export function lastOf(inputs: FormInputs, name: string): string {
  return inputs.get(name)?.at(-1) ?? '';
}

/** A file of a form's post, whose content is read once. One of more than `MAX_FILE_BYTES` ends early. */
export type ReceivedFile = { name: string; filename: string; content: AsyncGenerator<Buffer> };

/** `before` returns the inputs that came before the file. */
type TakeFile = (file: ReceivedFile, before: () => FormInputs) => Promise<string | undefined>;

/** `filename`: what `value` was read as, where it is the name of a file. */
type ReceivedInput = RawInput & { filename?: string };

type PartHeader = { [name: string]: string[] | undefined };

export type FilePart = MessageInitShape<typeof UploadFileRequestSchema>;

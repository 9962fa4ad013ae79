import { isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import type { Request } from 'express';
import { Reason } from '../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../domain/errors/failure.ts';
import { custom, pathOf } from '../domain/errors/violations.ts';
import { contentError } from './errors.ts';

/**
 * Returns what decodes the inputs of an HTML form: each by the charset that it names itself, else by `announced`, else
 * by what the browser has put into the input `_charset_`. Without any of them they are UTF-8, or else windows-1252 as
 * far as all their bytes are characters of it.
 *
 * Throws a failure for what can't be decoded, so that no text gets a U+FFFD that its sender did not send.
 */
export function inputDecoder(inputs: readonly RawInput[], announced?: string): DecodeInput {
  const own = inputs.findLast(({ name }) => name === CHARSET_INPUT)?.value.trim();
  const usual = decoderOf(announced || own || guessCharset(inputs));
  return ({ name, value, charset }) => {
    const decoder = charset ? decoderOf(charset) : usual;
    const decode = (bytes: string) => decoder.decode(Buffer.from(bytes, 'latin1'));
    try {
      return [decode(name), decode(value)];
    } catch {
      const message = `These bytes are not ${decoder.encoding}. Send the form in UTF-8, or name its charset`;
      throw undecodable(pathOf(name), message);
    }
  };
}

/** The input whose value browsers replace by the charset in which they send a form. */
export const CHARSET_INPUT = '_charset_';

/** The inputs of a text in application/x-www-form-urlencoded, each of whose characters stands for a byte. */
export function readUrlEncoded(text: string): RawInput[] {
  return text.split('&').flatMap((pair) => {
    if (pair === '') return [];
    const [name = '', ...values] = pair.replaceAll('+', ' ').split('=');
    return [{ name: percentDecoded(name), value: percentDecoded(values.join('=')) }];
  });
}

/** The parameters of a query, in the charset that it says. Throws a failure if they can't be decoded. */
export function parseQuery(query: string | null): Record<string, string | string[]> {
  if (!query) return {};
  const inputs = readUrlEncoded(query);
  try {
    const parameters = valuesByName(inputs.map(inputDecoder(inputs)));
    parameters.delete(CHARSET_INPUT);
    return Object.fromEntries(
      [...parameters].map(([name, all]) => [name, all.length > 1 ? all : all.join()]),
    );
  } catch {
    throw failed(Reason.BAD_REQUEST, 'The query is not correctly encoded');
  }
}

/** Lets a request have no query if it has one that can't be decoded: who follows the link of a page can't mend it. */
export function dropUndecodableQuery(request: Request): void {
  try {
    void request.query;
  } catch {
    request.url = request.path;
  }
}

/** The values of each name, in the order in which they came. */
export function valuesByName(inputs: readonly [name: string, value: string][]): Map<string, string[]> {
  const named = Map.groupBy(inputs, ([name]) => name);
  return new Map([...named].map(([name, some]) => [name, some.map(([, value]) => value)]));
}

/** The bytes of a percent-encoded text. */
export function percentDecoded(text: string): string {
  // The only function for bytes of any charset. It would read %u20ac, too.
  return unescape(text.replaceAll('%u', '%25u'));
}

function guessCharset(inputs: readonly RawInput[]): string {
  const texts = inputs.flatMap(({ name, value, charset }) => (charset ? [] : [name, value]));
  const bytes = texts.join('\n');
  if (isUtf8(Buffer.from(bytes, 'latin1'))) return 'utf-8';
  if (!notWindows1252.test(bytes)) return 'windows-1252';
  throw undecodable('', 'The form names no charset and is not UTF-8. Send it in UTF-8, or name its charset');
}

/** Control characters, and the bytes that are no character of windows-1252. */
const notWindows1252 = /[^\t\n\r\x20-\x7e\x80\x82-\x8c\x8e\x91-\x9c\x9e-\xff]/;

function decoderOf(label: string): TextDecoder {
  try {
    const decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true });
    // Browsers send the forms of pages in UTF-16 in UTF-8.
    if (!decoder.encoding.startsWith('utf-16')) return decoder;
  } catch {
    // No encoding has this label.
  }
  const shown = JSON.stringify(label.slice(0, 40));
  throw undecodable('', `The charset ${shown} is not taken. Send the form in UTF-8`);
}

/** The error of a text that can't be decoded. */
export function undecodable(path: string, message: string): Error {
  return contentError([custom(path, message)], undefined);
}

// Decoders of Node.js 20 and 22 take these bytes for control characters.
if (decoderOf('windows-1252').decode(Uint8Array.of(0x80, 0x9f)) !== '€Ÿ')
  throw new Error('This Node.js decodes windows-1252 wrongly. Start with the one of package.json');

/** The bytes of a name and a value, each as the character with its number. */
export type RawInput = { name: string; value: string; charset?: string | undefined };

type DecodeInput = (input: RawInput) => [name: string, value: string];

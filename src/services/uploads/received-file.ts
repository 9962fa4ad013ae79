import { commonName, textEndings, typesWithEndings } from '../../domain/fields/media-types.ts';

/**
 * The media type of a file, judged by its bytes; what its sender says is not asked. `application/octet-stream`
 * if nothing fits.
 *
 * No bytes mark a text, so those that are one are told apart by the ending of `filename`; so are the formats
 * inside of containers (zip, OLE) that don't say which they are. What a browser would run as a page (HTML, SVG,
 * XML) is never named as such.
 */
export async function mediaTypeOfFile(bytes: Uint8Array, filename: string): Promise<string> {
  const ending = endingOf(filename);
  if (isText(bytes, ending))
    return textSignatureOf(bytes) ?? byEnding.get('text/plain')?.[ending] ?? 'text/plain';
  // Loaded with the first file: it takes some 45 ms, by which the service would start later.
  const { fileTypeFromBuffer } = await import('file-type');
  const found = await fileTypeFromBuffer(bytes.subarray(0, SAMPLE));
  const [type = ''] = found?.mime.split(';', 1) ?? [];
  if (type === '' || /\b(x|ht)ml$/.test(type)) return 'application/octet-stream';
  const named = commonName(type);
  return byEnding.get(named)?.[ending] ?? withoutPicture(named, bytes.subarray(0, SAMPLE));
}

/** Browsers record sound in the containers of films, which name the kinds of their tracks. */
function withoutPicture(type: string, start: Uint8Array): string {
  const tracks = Buffer.from(start).toString('latin1');
  const isSound = /A_(?:OPUS|VORBIS|PCM)|soun/.test(tracks) && !/V_(?:VP|AV1|MPEG)|vide/.test(tracks);
  return isSound ? type.replace(/^video(?=\/(?:webm|mp4)$)/, 'audio') : type;
}

/**
 * A file's name made safe to save under, to show, and to put in a header.
 *
 * Only the last part of a path stays; control, direction-changing and reserved characters become
 * `_`; no name is hidden, reserved by Windows, or longer than 150 characters (its ending stays).
 * A name with nothing left is `file`.
 */
export function safeFilename(name: string): string {
  const base = name.toWellFormed().normalize('NFC').split(/[/\\]/).at(-1) ?? '';
  const clean = base
    .replace(unsafe, '_')
    .replace(/\s+/g, ' ')
    .replace(/^[\s.]+|(?<![\s.])[\s.]+$/g, '');
  if (clean === '') return 'file';
  return shortened(windowsDevice.test(clean) ? `_${clean}` : clean);
}

/** The ending of a file's name with its dot, in lower case; empty if it has none. */
function endingOf(filename: string): string {
  const dot = filename.lastIndexOf('.');
  return dot > 0 ? filename.slice(dot).toLowerCase() : '';
}

/**
 * Whether the bytes are well-formed UTF-8 without control characters but tab, line feed, form feed and carriage
 * return. Every binary format has others near its beginning, whereas texts begin with anything: a table whose
 * first column is `BMI` would be a bitmap by its first two bytes. So are UTF-16 with its mark, and windows-1252, where
 * the ending is that of a text.
 */
function isText(bytes: Uint8Array, ending: string): boolean {
  const sample = bytes.subarray(0, TEXT_SAMPLE);
  const [first = 0, second = 0] = sample;
  const marked = { 65534: 'utf-16le', 65279: 'utf-16be' }[first * 256 + second];
  const ofWindows = textEndings.has(ending.slice(1)) ? [marked ?? 'windows-1252'] : [];
  return ['utf-8', ...ofWindows].some((charset) => {
    try {
      // A character cut off at the sample's end is no fault: `stream` waits for the rest of it.
      const decoder = new TextDecoder(charset, { fatal: true });
      const text = decoder.decode(sample, { stream: sample.length < bytes.length });
      return !(charset === 'windows-1252' ? unassigned : controls).test(text);
    } catch {
      return false;
    }
  });
}

const controls = /(?![\t\n\f\r\x7f-\x9f])\p{Cc}/u;

/** The bytes that windows-1252 has no characters for are read as controls. */
const unassigned = /(?![\t\n\f\r\x7f])\p{Cc}/u;

/** The two formats that may consist of text alone. */
function textSignatureOf(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 5)).toString('latin1');
  if (start === '%PDF-') return 'application/pdf';
  return start === '{\\rtf' ? 'application/rtf' : undefined;
}

function shortened(name: string): string {
  const characters = [...name];
  if (characters.length <= MAX_CHARACTERS) return name;
  const [ending = ''] = /\.[A-Za-z0-9]{1,10}$/.exec(name) ?? [];
  return characters.slice(0, MAX_CHARACTERS - ending.length).join('') + ending;
}

/** Enough to tell text from data; the whole file would cost 10 MiB of reading. */
const TEXT_SAMPLE = 4096;

/** Holds the first entries of a zip file, which name what is in it, and bounds what a hostile file costs. */
const SAMPLE = 64 * 1024;

/** At four bytes a character, still below the 255 bytes (less a folder's own marks) that disks take. */
const MAX_CHARACTERS = 150;

/**
 * Controls, invisible and direction-changing characters, the replacement character, and what disks or shells reserve.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\uFFFD<>:"|?*]/gu;

const windowsDevice = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** What a text or a container may hold that its first bytes do not name, by the endings of files. */
const byEnding = new Map([
  ['text/plain', typesWithEndings('csv json md ics vcf')],
  ['application/zip', typesWithEndings('docx xlsx pptx odt ods odp epub')],
  ['application/x-ole-storage', typesWithEndings('doc xls ppt')],
]);

/**
 * The media type of a file, judged by its bytes; what its sender says is not asked. `application/octet-stream`
 * if nothing fits.
 *
 * No bytes mark a text, so those that are one are told apart by the ending of `filename`; so are the formats
 * inside of containers (zip, OLE) that don't say which they are. What a browser would run as a page (HTML, SVG,
 * XML) is never named as such.
 */
export async function mediaTypeOf(bytes: Uint8Array, filename: string): Promise<string> {
  const ending = endingOf(filename);
  if (isText(bytes)) return textSignatureOf(bytes) ?? textTypes.get(ending) ?? 'text/plain';
  // Loaded with the first file: it takes some 45 ms, by which the service would start later.
  const { fileTypeFromBuffer } = await import('file-type');
  const found = await fileTypeFromBuffer(bytes.subarray(0, SAMPLE));
  const [type = ''] = found?.mime.split(';', 1) ?? [];
  if (type === '' || /\b(x|ht)ml$/.test(type)) return 'application/octet-stream';
  const named = commonNames.get(type) ?? type;
  return byEnding.get(named)?.[ending] ?? named;
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
 * first column is `BMI` would be a bitmap by its first two bytes.
 */
function isText(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, TEXT_SAMPLE);
  if (sample.some((byte) => byte < 0x20 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13))
    return false;
  try {
    // A character cut off at the sample's end is no fault: `stream` waits for the rest of it.
    new TextDecoder('utf-8', { fatal: true }).decode(sample, { stream: sample.length < bytes.length });
    return true;
  } catch {
    return false;
  }
}

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

const textTypes = new Map([
  ['.csv', 'text/csv'],
  ['.json', 'application/json'],
  ['.md', 'text/markdown'],
  ['.ics', 'text/calendar'],
  ['.vcf', 'text/vcard'],
]);

/** The names that forms ask for, where the library has another. */
const commonNames = new Map([
  ['image/apng', 'image/png'],
  ['audio/x-m4a', 'audio/mp4'],
  ['video/x-m4v', 'video/mp4'],
  ['video/vnd.avi', 'video/x-msvideo'],
  ['application/x-rar-compressed', 'application/vnd.rar'],
  ['application/x-cfb', 'application/x-ole-storage'],
]);

const openXml = 'application/vnd.openxmlformats-officedocument';
const openDocument = 'application/vnd.oasis.opendocument';

/** What a container may hold that does not name it in its first entries. */
const byEnding = new Map<string, { [ending: string]: string }>([
  [
    'application/zip',
    {
      '.docx': `${openXml}.wordprocessingml.document`,
      '.xlsx': `${openXml}.spreadsheetml.sheet`,
      '.pptx': `${openXml}.presentationml.presentation`,
      '.odt': `${openDocument}.text`,
      '.ods': `${openDocument}.spreadsheet`,
      '.odp': `${openDocument}.presentation`,
      '.epub': 'application/epub+zip',
    },
  ],
  [
    'application/x-ole-storage',
    {
      '.doc': 'application/msword',
      '.xls': 'application/vnd.ms-excel',
      '.ppt': 'application/vnd.ms-powerpoint',
    },
  ],
]);

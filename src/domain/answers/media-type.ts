/**
 * The media type of a file, judged by its first bytes; what its sender says is not asked.
 *
 * Formats that are containers of others (zip, OLE) are told apart by the ending of `filename`, and
 * texts by their content, since no bytes mark them. Types that a browser would run as a page
 * (HTML, SVG, XML) are told as plain text. `application/octet-stream` if nothing fits.
 */
export function sniffMediaType(bytes: Uint8Array, filename: string): string {
  const known = signatures.find(({ at = 0, magic }) => magic.every((byte, n) => bytes[at + n] === byte));
  const ending = endingOf(filename);
  if (known !== undefined) return byEnding[known.type]?.[ending] ?? refined(known.type, bytes);
  if (!isText(bytes)) return 'application/octet-stream';
  return textTypes[ending] ?? 'text/plain';
}

/**
 * Whether a field's `accept` takes a file. An entry is a media type (`application/pdf`), a group
 * (`image/*`) or an ending (`.pdf`); none at all takes everything.
 */
export function acceptsFile(
  accept: readonly string[] | undefined,
  contentType: string,
  filename: string,
): boolean {
  if (accept === undefined || accept.length === 0) return true;
  const name = filename.toLowerCase();
  return accept.some((entry) => {
    const wanted = entry.trim().toLowerCase();
    if (wanted.startsWith('.')) return name.endsWith(wanted);
    if (wanted === '*/*') return true;
    if (wanted.endsWith('/*')) return contentType.startsWith(wanted.slice(0, -1));
    return contentType === wanted;
  });
}

/** The ending of a file's name with its dot, in lower case; empty if it has none. */
function endingOf(filename: string): string {
  const dot = filename.lastIndexOf('.');
  return dot > 0 ? filename.slice(dot).toLowerCase() : '';
}

/** RIFF and ISO media files say what they hold in the bytes after their mark. */
function refined(type: string, bytes: Uint8Array): string {
  const brand = String.fromCharCode(...bytes.subarray(8, 12));
  if (type === 'riff') return riffTypes[brand] ?? 'application/octet-stream';
  if (type === 'iso-media') return isoTypes[brand] ?? 'video/mp4';
  return type;
}

/** Well-formed UTF-8 without control characters but tab, line feed, form feed and carriage return. */
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

/** Enough to tell text from data; the whole file would cost 10 MiB of reading. */
const TEXT_SAMPLE = 4096;

const ascii = (text: string) => [...text].map((character) => character.charCodeAt(0));

const signatures: { type: string; magic: number[]; at?: number }[] = [
  { type: 'application/pdf', magic: ascii('%PDF-') },
  { type: 'image/png', magic: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
  { type: 'image/jpeg', magic: [0xff, 0xd8, 0xff] },
  { type: 'image/gif', magic: ascii('GIF8') },
  { type: 'riff', magic: ascii('RIFF') },
  { type: 'iso-media', magic: ascii('ftyp'), at: 4 },
  { type: 'image/tiff', magic: [0x49, 0x49, 0x2a, 0x00] },
  { type: 'image/tiff', magic: [0x4d, 0x4d, 0x00, 0x2a] },
  { type: 'image/bmp', magic: ascii('BM') },
  { type: 'application/zip', magic: [0x50, 0x4b, 0x03, 0x04] },
  { type: 'application/gzip', magic: [0x1f, 0x8b] },
  { type: 'application/x-7z-compressed', magic: [0x37, 0x7a, 0xbc, 0xaf, 0x27, 0x1c] },
  { type: 'application/vnd.rar', magic: ascii('Rar!') },
  { type: 'application/x-ole-storage', magic: [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1] },
  { type: 'application/rtf', magic: ascii('{\\rtf') },
  { type: 'audio/mpeg', magic: ascii('ID3') },
  { type: 'audio/mpeg', magic: [0xff, 0xfb] },
  { type: 'audio/flac', magic: ascii('fLaC') },
  { type: 'audio/ogg', magic: ascii('OggS') },
  { type: 'video/webm', magic: [0x1a, 0x45, 0xdf, 0xa3] },
];

const riffTypes: { [brand: string]: string } = {
  WEBP: 'image/webp',
  WAVE: 'audio/wav',
  'AVI ': 'video/x-msvideo',
};

const isoTypes: { [brand: string]: string } = {
  heic: 'image/heic',
  heix: 'image/heic',
  mif1: 'image/heif',
  avif: 'image/avif',
  'M4A ': 'audio/mp4',
  'qt  ': 'video/quicktime',
};

const openXml = 'application/vnd.openxmlformats-officedocument';
const openDocument = 'application/vnd.oasis.opendocument';

const byEnding: { [container: string]: { [ending: string]: string } } = {
  'application/zip': {
    '.docx': `${openXml}.wordprocessingml.document`,
    '.xlsx': `${openXml}.spreadsheetml.sheet`,
    '.pptx': `${openXml}.presentationml.presentation`,
    '.odt': `${openDocument}.text`,
    '.ods': `${openDocument}.spreadsheet`,
    '.odp': `${openDocument}.presentation`,
    '.epub': 'application/epub+zip',
  },
  'application/x-ole-storage': {
    '.doc': 'application/msword',
    '.xls': 'application/vnd.ms-excel',
    '.ppt': 'application/vnd.ms-powerpoint',
  },
};

const textTypes: { [ending: string]: string } = {
  '.csv': 'text/csv',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.ics': 'text/calendar',
  '.vcf': 'text/vcard',
};

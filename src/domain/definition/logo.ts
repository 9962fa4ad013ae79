/**
 * Whether a text is a `data:` URL of a PNG, JPEG or WebP of at most 32 KiB.
 *
 * Judged by the bytes, not by the name: the page shows it to people, and a script dressed up as a
 * picture must not get there.
 */
export function isLogo(text: string): boolean {
  const [, type, data] = /^data:image\/(png|jpeg|webp);base64,([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (type === undefined || data === undefined || data.length % 4 !== 0) return false;
  const bytes = Buffer.from(data, 'base64');
  return bytes.length <= MAX_LOGO_BYTES && kindOfPicture(bytes) === type;
}

function kindOfPicture(bytes: Buffer): string | undefined {
  if (bytes.subarray(0, 8).equals(PNG)) return 'png';
  if (bytes.subarray(0, 3).equals(JPEG)) return 'jpeg';
  const riff = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
  return riff ? 'webp' : undefined;
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const JPEG = Buffer.from([0xff, 0xd8, 0xff]);
const MAX_LOGO_BYTES = 32 * 1024;

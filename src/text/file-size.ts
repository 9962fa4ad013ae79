/**
 * The size of a file as people read it: `12 kB`, `1.9 MB`, with the decimal sign of a language; `tag` is a BCP 47 tag.
 * The server and the hosted page use it, so this file imports nothing.
 */
export function fileSizeInWords(bytes: number, tag: string): string {
  const [size, unit] = bytes < MEGABYTE ? [Math.ceil(bytes / KILOBYTE), 'kB'] : [bytes / MEGABYTE, 'MB'];
  return `${size.toLocaleString(tag, { maximumFractionDigits: 1, numberingSystem: 'latn' })} ${unit}`;
}

const KILOBYTE = 1024;
const MEGABYTE = 1024 * 1024;

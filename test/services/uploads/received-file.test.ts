import { supportedMimeTypes } from 'file-type';
import { describe, expect, it } from 'vitest';
import known from '../../../src/domain/fields/media-types.json' with { type: 'json' };
import { commonName } from '../../../src/domain/fields/media-types.ts';
import { mediaTypeOfFile, safeFilename } from '../../../src/services/uploads/received-file.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('mediaTypeOf', () => {
  it.each([
    ['%PDF-1.7', 'a.txt', 'application/pdf'],
    ['%PDF-1.7\n%\xe2\xe3\xcf\xd3', 'a.txt', 'application/pdf'],
    ['{\\rtf1', 'a.txt', 'application/rtf'],
    [`\x89PNG\r\n\x1a\n\0\0\0\rIHDR${'\0'.repeat(17)}\0\0\0\0IDAT`, 'a', 'image/png'],
    ['\xff\xd8\xff\xe0', 'a.png', 'image/jpeg'],
    ['GIF89a\x01\0\x01\0', 'a', 'image/gif'],
    ['BM\x46\0\0\0\0\0\0\0\x36', 'a', 'image/bmp'],
    ['RIFF\0\0\0\0WEBPVP8 ', 'a', 'image/webp'],
    ['RIFF\0\0\0\0WAVEfmt ', 'a', 'audio/wav'],
    ['RIFF\0\0\0\0AVI ', 'a', 'video/x-msvideo'],
    ['RIFF\0\0\0\0ELSE', 'a', 'application/octet-stream'],
    ['\0\0\0\x20ftypheic', 'a', 'image/heic'],
    ['\0\0\0\x20ftypavif', 'a', 'image/avif'],
    ['\0\0\0\x20ftypM4A ', 'a', 'audio/mp4'],
    ['\0\0\0\x20ftypmp42', 'a', 'video/mp4'],
    ['\0\0\0\x14ftypqt  ', 'a', 'video/quicktime'],
    ['ID3\x04\0\0\0\0\0\0\xff\xfb', 'a', 'audio/mpeg'],
    ['fLaC\0\0\0\x22', 'a', 'audio/flac'],
    ['OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead', 'a', 'audio/ogg'],
    ['\x1aE\xdf\xa3\x87B\x82\x84webm', 'a', 'video/webm'],
    ['Rar!\x1a\x07\0', 'a', 'application/vnd.rar'],
    ['7z\xbc\xaf\x27\x1c', 'a', 'application/x-7z-compressed'],
    ['\x1f\x8b\x08', 'a', 'application/gzip'],
    ['PK\x03\x04', 'a.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['PK\x03\x04', 'a.html', 'application/zip'],
    ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'a.doc', 'application/msword'],
    ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'a', 'application/x-ole-storage'],
    ['a,b\r\n', 'a.csv', 'text/csv'],
    ['\0\x01\x02', 'a.csv', 'application/octet-stream'],
    ['', 'empty', 'text/plain'],
  ])('judges %j named %s by its content', async (content, name, expected) => {
    expect(await mediaTypeOfFile(bytes(content), name)).toBe(expected);
  });

  it.each([
    'BMI,age\r\n22.5,30\r\n',
    'ID3 tags,count\r\n',
    'MZ,b\n',
    'GIF8,b\n',
    'MAC address,b\n',
    'FWS,b\n',
  ])('takes a table for a table, though it begins as another format does: %j', async (content) => {
    expect(await mediaTypeOfFile(Buffer.from(content), 'a.csv')).toBe('text/csv');
  });

  it('finds out what a zip file holds, whatever its name', async () => {
    const part = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml';
    const types = `<Types><Override PartName="/xl/workbook.xml" ContentType="${part}"/></Types>`;

    expect(await mediaTypeOfFile(zipOf('[Content_Types].xml', types), 'a.pdf')).toBe(
      'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
    );
  });

  it.each(['<html><script>', '<svg xmlns="…">', '<?xml version="1.0"?>'])(
    'never says that %s is what a browser would run',
    async (content) => {
      expect(await mediaTypeOfFile(Buffer.from(content), 'page.html')).toBe('text/plain');
      expect(await mediaTypeOfFile(Buffer.from(`\ufeff${content}`, 'utf16le'), 'page.html')).toBe(
        'text/plain',
      );
    },
  );

  const table = 'Größe;Preis in €\r\nBMI;5\r\n';
  const inWindows1252 = Buffer.from(table.replace('€', '\x80'), 'latin1');
  const inUtf16 = Buffer.from(`\ufeff${table}`, 'utf16le');

  it.each([
    ['windows-1252', inWindows1252],
    ['windows-1252, long', Buffer.concat(Array.from({ length: 500 }, () => inWindows1252))],
    ['windows-1252 that begins as a bitmap', Buffer.concat([Buffer.from('BM;'), inWindows1252])],
    ['UTF-16', inUtf16],
    ['UTF-16, its bytes the other way round', Buffer.from(inUtf16).swap16()],
    ['UTF-16, long', Buffer.concat([inUtf16, ...Array.from({ length: 500 }, () => inUtf16.subarray(2))])],
  ])('takes a text for what its ending says in %s', async (_, content) => {
    const types = ['a.csv', 'a.txt', 'a.md', 'a.pdf', 'a.png', 'a'].map((name) =>
      mediaTypeOfFile(content, name),
    );

    const [csv, txt, md, ...others] = await Promise.all(types);
    expect([csv, txt, md]).toEqual(['text/csv', 'text/plain', 'text/markdown']);
    expect(others.filter((type) => type.startsWith('text/'))).toEqual([]);
  });

  it.each([
    ['a character that windows-1252 has not', 'a\x81b'],
    ['a control character', 'Gr\xf6\xdfe\0'],
    ['a mark of UTF-16 and half a character', '\xff\xfea\0b'],
    ['a mark of UTF-16 and controls', '\xff\xfe\x01\0'],
  ])('takes no text for one with %s', async (_, content) => {
    expect(await mediaTypeOfFile(bytes(content), 'a.csv')).not.toBe('text/csv');
  });

  it.each([
    ['webm', '\x1aE\xdf\xa3\x87B\x82\x84webm\x01\0\0\0\0\0\x86\x86A_OPUS', 'audio/webm'],
    ['webm with a film', '\x1aE\xdf\xa3\x87B\x82\x84webm\x01\0\0A_OPUS\x86V_VP8', 'video/webm'],
    ['mp4', '\0\0\0\x20ftypiso5\0\0\0\0hdlr\0\0\0\0soun', 'audio/mp4'],
    ['mp4 with a film', '\0\0\0\x20ftypiso5\0\0\0\0hdlr\0\0\0\0soun\0\0hdlrvide', 'video/mp4'],
  ])('hears whether a recording in %s is of sound alone', async (_, content, type) => {
    expect(await mediaTypeOfFile(bytes(content), 'recording')).toBe(type);
  });

  it('knows by name every type that its library recognizes', () => {
    const unnamed = [...supportedMimeTypes]
      .map((type) => commonName(type.split(';', 1).join().toLowerCase()))
      .filter((type) => !/\b(?:x|ht)ml$/.test(type) && !known.recognized.includes(type));

    expect(unnamed).toEqual([]);
  });

  it('takes a text whose sample ends within a character for a text', async () => {
    expect(await mediaTypeOfFile(Buffer.from(`a${'é'.repeat(5000)}`), 'a')).toBe('text/plain');
  });
});

describe('safeFilename', () => {
  it.each([
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\me\\cv.pdf', 'cv.pdf'],
    ['.htaccess', 'htaccess'],
    ['a\r\nSet-Cookie: x', 'a__Set-Cookie_ x'],
    ['cv\u202Efdp.exe', 'cv_fdp.exe'],
    ['nul.txt', '_nul.txt'],
    ['..', 'file'],
    ['', 'file'],
    ['\ud800.txt', '_.txt'],
    ['résumé 中文.pdf', 'résumé 中文.pdf'],
  ])('makes %j %j', (name, expected) => {
    expect(safeFilename(name)).toBe(expected);
  });

  it('keeps the ending of a long name', () => {
    const name = safeFilename(`${'🎉'.repeat(300)}.pdf`);

    expect([...name].length).toBe(150);
    expect(name.endsWith('.pdf')).toBe(true);
  });
});

/** The beginning of a zip file: one entry, stored as it is. */
function zipOf(name: string, content: string): Buffer {
  const header = Buffer.alloc(30);
  header.write('PK\x03\x04', 'latin1');
  header.writeUInt16LE(20, 4);
  header.writeUInt32LE(content.length, 18);
  header.writeUInt32LE(content.length, 22);
  header.writeUInt16LE(name.length, 26);
  return Buffer.concat([header, Buffer.from(name), Buffer.from(content)]);
}

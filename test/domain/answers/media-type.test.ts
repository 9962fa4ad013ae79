import { describe, expect, it } from 'vitest';
import { safeFilename } from '../../../src/domain/answers/filename.ts';
import { acceptsFile, sniffMediaType } from '../../../src/domain/answers/media-type.ts';

const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('sniffMediaType', () => {
  it.each([
    ['%PDF-1.7', 'a.txt', 'application/pdf'],
    ['\x89PNG\r\n\x1a\n', 'a', 'image/png'],
    ['\xff\xd8\xff\xe0', 'a.png', 'image/jpeg'],
    ['RIFF\0\0\0\0WEBPVP8 ', 'a', 'image/webp'],
    ['RIFF\0\0\0\0ELSE', 'a', 'application/octet-stream'],
    ['\0\0\0\x20ftypheic', 'a', 'image/heic'],
    ['PK\x03\x04', 'a.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
    ['PK\x03\x04', 'a.html', 'application/zip'],
    ['a,b\r\n', 'a.csv', 'text/csv'],
    ['\0\x01\x02', 'a.csv', 'application/octet-stream'],
    ['', 'empty', 'text/plain'],
  ])('judges %j named %s by its content', (content, name, expected) => {
    expect(sniffMediaType(bytes(content), name)).toBe(expected);
  });

  it.each(['<html><script>', '<svg xmlns="…">', '<?xml version="1.0"?>'])(
    'never says that %s is what a browser would run',
    (content) => {
      expect(sniffMediaType(Buffer.from(content), 'page.html')).toBe('text/plain');
    },
  );

  it('takes a text whose sample ends within a character for a text', () => {
    expect(sniffMediaType(Buffer.from(`a${'é'.repeat(5000)}`), 'a')).toBe('text/plain');
  });
});

describe('acceptsFile', () => {
  it.each<[string[] | undefined, string, string, boolean]>([
    [undefined, 'application/octet-stream', 'a', true],
    [['image/*'], 'image/png', 'a.png', true],
    [['image/*'], 'text/plain', 'a.png', false],
    [['.PDF'], 'text/plain', 'a.pdf', true],
    [['application/pdf'], 'application/pdf', 'a', true],
    [['application/pdf', '.txt'], 'image/png', 'a.png', false],
  ])('with %j, a %s named %s: %s', (accept, type, name, expected) => {
    expect(acceptsFile(accept, type, name)).toBe(expected);
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

import database from 'mime-db/db.json' with { type: 'json' };
import { describe, expect, it } from 'vitest';
import { checkDefinition } from '../../../src/domain/definition/definition.ts';
import known from '../../../src/domain/fields/media-types.json' with { type: 'json' };
import { acceptsFile } from '../../../src/domain/fields/media-types.ts';

describe('acceptsFile', () => {
  it.each<[string[] | undefined, string, string, boolean]>([
    [undefined, 'application/octet-stream', 'a', true],
    [['image/*'], 'image/png', 'a.png', true],
    [['image/*'], 'text/plain', 'a.png', false],
    [['.PDF'], 'text/plain', 'a.pdf', true],
    [['application/pdf'], 'application/pdf', 'a', true],
    [['application/pdf', '.txt'], 'image/png', 'a.png', false],
    [['image/jpg'], 'image/jpeg', 'a', true],
    [['image/pjpeg'], 'image/jpeg', 'a', true],
    [['.jpg'], 'image/jpeg', 'photo.jpeg', true],
    [['.jpeg'], 'image/jpeg', 'photo', true],
    [['.jpg'], 'image/png', 'photo.png', false],
    [['audio/mp3'], 'audio/mpeg', 'a.mp3', true],
    [['audio/x-wav'], 'audio/wav', 'a.wav', true],
    [['audio/*'], 'audio/webm', 'recording.webm', true],
    [['audio/webm'], 'audio/webm', 'recording.webm', true],
    [['video/webm'], 'audio/webm', 'recording.webm', true],
    [['audio/*'], 'video/webm', 'film.webm', false],
    [['text/xml'], 'text/plain', 'a.xml', true],
    [['application/xml'], 'text/plain', 'a.xml', true],
    [['.xml'], 'text/plain', 'a.xml', true],
    [['image/svg+xml'], 'text/plain', 'a.svg', true],
    [['image/svg+xml'], 'text/plain', 'a.txt', false],
    [['image/svg+xml'], 'image/png', 'a.svg', false],
    [['image/*'], 'text/plain', 'a.svg', true],
    [['model/*'], 'text/plain', 'a.x3d', true],
    [['model/*'], 'text/plain', 'a.txt', false],
    [['message/*'], 'text/plain', 'a.eml', true],
    [['application/x-zip-compressed'], 'application/zip', 'a.zip', true],
    [['application/x-zip'], 'application/zip', 'a', true],
    [['application/zip'], 'application/vnd.oasis.opendocument.text', 'a.odt', false],
    [['application/pdf'], 'text/plain', 'a.pdf', false],
    [['text/plain'], 'text/plain', 'a.py', true],
    [['text/plain'], 'text/csv', 'a.csv', false],
    [['.txt'], 'text/plain', 'a.log', false],
    [['.yml'], 'text/plain', 'a.yaml', true],
    [['application/csv'], 'text/csv', 'a.csv', true],
    [['application/octet-stream'], 'application/x-msdownload', 'a.exe', false],
    [['.exe'], 'application/octet-stream', 'a.bin', false],
    [['application/octet-stream'], 'application/octet-stream', 'a', true],
    [['video/x-m4v'], 'video/mp4', 'a.m4v', true],
  ])('with %j, a %s named %s: %s', (accept, type, name, expected) => {
    expect(acceptsFile(accept, type, name)).toBe(expected);
  });

  it('takes a file by every name and ending that its type has, and by none of another', () => {
    const wrong = known.recognized.flatMap((type) => {
      const own = new Set(types.find(([name]) => name === type)?.[1].extensions ?? []);
      const byName = types.filter(([name, { extensions = [] }]) => {
        if (name === 'application/octet-stream') return false;
        const isOwn = name === type || extensions.some((ending) => own.has(ending));
        return own.size > 0 && acceptsFile([name], type, 'file') !== isOwn && !sameByAnotherName(name, type);
      });
      const byEnding = [...own].filter((ending) => !acceptsFile([`.${ending}`], type, 'file'));
      return [
        ...byName.map(([name]) => `${type} as ${name}`),
        ...byEnding.map((each) => `${type} as .${each}`),
      ];
    });

    expect(wrong).toEqual([]);
  });
});

describe('accept of a field', () => {
  it.each(
    [
      ['image/*', 'text/*', 'audio/*', 'application/*', '.dwg', '.py', 'IMAGE/JPG'],
      [
        'image/jpg',
        'image/x-png',
        'audio/mp3',
        'audio/m4a',
        'text/xml',
        'image/svg+xml',
        'application/x-zip',
      ],
      [
        'text/csv',
        'application/csv',
        'text/html',
        'application/json',
        'text/plain',
        'application/octet-stream',
      ],
      ['application/msword', 'application/vnd.ms-excel', 'message/rfc822', 'audio/webm', 'application/x-rar'],
    ].flat(),
  )('may be %s', (entry) => {
    expect(problemsOf(entry)).toEqual([]);
  });

  it('may be every type that the service recognizes', () => {
    expect(known.recognized.filter((type) => problemsOf(type).length > 0)).toEqual([]);
  });

  it('is refused for a group of types exactly where no file fits', () => {
    const groups = new Set(types.map(([name]) => name.replace(/\/.*/, '/*')));
    const files = [
      ...known.recognized.map((type) => [type, 'file'] as const),
      ...types
        .flatMap(([name, { extensions = [name.replace(/^.*\/(?:x-)?/, '')] }]) => extensions)
        .map((each) => ['text/plain', `a.${each}`] as const),
    ];
    const fits = (entry: string) => files.some(([type, name]) => acceptsFile([entry], type, name));

    expect([...groups].filter((entry) => fits(entry) !== (problemsOf(entry).length === 0))).toEqual([]);
  });

  it.each([
    ['application/vnd.ms-project', 'No file is found to be application/vnd.ms-project'],
    ['chemical/*', 'Known are: none of chemical/*'],
    ['image/nothing', 'Known are: image/avif, '],
  ])('may not be %s, which no file is found to be, and says which are', (entry, told) => {
    const problems = problemsOf(entry);

    expect(problems.map(({ path }) => path)).toEqual(['fields.0.accept.0']);
    expect(problems[0]?.message).toContain(told);
  });
});

type MediaType = { source?: string; compressible?: boolean; extensions?: readonly string[] };
const types = Object.entries<MediaType>(database);

const otherNames = {
  'application/x-gzip': 'gz',
  'application/tar': 'tar',
  'audio/opus': 'ogg',
  'audio/vnd.wave': 'wav',
  'image/apng': 'png',
  'image/pjpeg': 'jpg',
  'audio/x-m4a': 'm4a',
  'video/x-m4v': 'mp4',
  'application/x-rar-compressed': 'rar',
};

/** Types with endings of their own that mime-db does not know for one. */
function sameByAnotherName(name: string, type: string): boolean {
  return Object.hasOwn(otherNames, name)
    ? acceptsFile([name], type, 'file')
    : /^(?:audio|video)\/(?:webm|mp4)$/.test(type) &&
        /^(?:audio|video|application)\/(?:webm|mp4|x-m4[av])$/.test(name);
}

function problemsOf(entry: string) {
  const fields = [{ id: 'cv', type: 'file', accept: [entry] }];
  const input = { name: 'n', slug: 's', fields, delivery: { type: 'email' } };
  const checked = checkDefinition(input, { keyless: false, allowPrivateUrls: false });
  return checked.ok ? [] : checked.violations;
}

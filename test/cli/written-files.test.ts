import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { writeFiles } from '../../src/cli/forms/files.ts';
import { RefusedError } from '../../src/cli/terminal.ts';
import { temporaryFolder } from '../support/spawn.ts';

const parts = ['', '.', '..', '...', 'a.', 'a ', 'a\\b', 'C:', 'a:b', 'a|b', 'a?', 'a*', '<a', 'a>', '"a"']
  .concat(['a\0b', 'a\nb', 'a\u001b[2J', 'a\u009b', 'a\u202eb', 'a\u2028b', 'a\u{e0041}', '\ud800'])
  .concat(['con', 'CON.ts', 'nul', 'Aux.form.json', 'com1', 'LPT9.txt', 'com¹', 'conin$', 'é'.repeat(128)]);

const paths = parts
  .flatMap((part) => [part, `${part}/a.ts`, `a/${part}`, `a/${part}/b`])
  .concat('/etc/a', '../../a', 'a//b');

it.each(paths.map((path) => [JSON.stringify(path), path]))(
  'writes nothing if the service names a file %s',
  async (_, path) => {
    using folder = temporaryFolder();
    const out = join(folder.path, 'in', 'out');

    const refused = write(out, ['good.ts', path], 'wx', 'win32');

    await expect(refused).rejects.toThrow(RefusedError);
    await expect(refused).rejects.toThrow(`form-1: The service names a file ${JSON.stringify(path)}`);
    expect(readdirSync(folder.path)).toEqual([]);
  },
);

it('writes other names below the folder, whatever letters they have', async () => {
  using folder = temporaryFolder();
  const names = [
    'a.form.json',
    'console.ts',
    '.hidden',
    'größe.ts',
    'a b.ts',
    'deep/er/still.proto',
    '日本.ts',
    "it's (1).ts",
  ];

  const printed = await write(folder.path, names);

  expect(printed).toEqual(names.map((name) => join(folder.path, name)));
  expect(names.map((name) => readFileSync(join(folder.path, name), 'utf8'))).toEqual(names);
  await expect(write(folder.path, names, 'w')).resolves.toEqual(printed);
});

it.each([
  ['by case', 'a/B.ts', 'A/b.ts'],
  ['by how a letter is composed', 'gr\u00f6.ts', 'gro\u0308.ts'],
  ['by nothing', 'a.ts', 'a.ts'],
])('refuses two files that differ %s alone', async (_, one, other) => {
  using folder = temporaryFolder();

  await expect(write(folder.path, [one, other])).rejects.toThrow(`form-0 and form-1 are both ${other}`);
  expect(readdirSync(folder.path)).toEqual([]);
});

it('goes through no link that stands in the folder, and over nothing but files', async () => {
  using folder = temporaryFolder();
  const [out, elsewhere] = [join(folder.path, 'out'), join(folder.path, 'elsewhere')];
  for (const made of [out, elsewhere, join(out, 'folder.ts')]) mkdirSync(made);
  writeFileSync(join(elsewhere, 'kept.ts'), 'kept');
  writeFileSync(join(out, 'file'), '');
  symlinkSync(elsewhere, join(out, 'linked'));
  symlinkSync(join(elsewhere, 'kept.ts'), join(out, 'kept.ts'));
  symlinkSync(join(elsewhere, 'new.ts'), join(out, 'dangling.ts'));

  for (const path of ['linked/new.ts', 'kept.ts', 'dangling.ts', 'folder.ts', 'file/new.ts']) {
    await expect(write(out, ['first.ts', path], 'w')).rejects.toThrow('Expected a plain file or folder');
  }

  expect(readFileSync(join(elsewhere, 'kept.ts'), 'utf8')).toBe('kept');
  expect(readdirSync(elsewhere)).toEqual(['kept.ts']);
  expect(existsSync(join(out, 'first.ts'))).toBe(false);
});

/** Writes files that hold their own names, and returns what was printed. */
async function write(
  folder: string,
  names: string[],
  flag: 'w' | 'wx' = 'wx',
  platform?: NodeJS.Platform,
): Promise<string[]> {
  const printed: string[] = [];
  const print = (line: string) => printed.push(line);
  const files = names.map((path, index) => ({ path, content: path, of: `form-${index}` }));
  await writeFiles(folder, files, { flag, print, ...(platform && { platform }) });
  return printed;
}

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from './support/spawn.ts';

it('check:lines fails above the lines that package.json allows, without blank ones and comments', () => {
  using folder = temporaryFolder();
  mkdirSync(join(folder.path, 'src'));
  writeFileSync(
    join(folder.path, 'src/a.ts'),
    '/** Two lines. */\nexport const a = 1;\n\n// b\nexport const b = 2;\n',
  );
  const count = (linesOfSrc: number) => {
    writeFileSync(join(folder.path, 'package.json'), JSON.stringify({ config: { linesOfSrc } }));
    const { status, stderr } = spawnSync(process.execPath, ['scripts/count-lines.ts', folder.path], {
      cwd: join(import.meta.dirname, '..'),
      encoding: 'utf8',
    });
    return { status, stderr };
  };

  expect(count(2)).toEqual({ status: 0, stderr: '' });
  expect(count(1)).toEqual({
    status: 1,
    stderr: 'src has 2 lines; linesOfSrc in package.json allows 1.\n',
  });
});

/**
 * Prints how much code there is under `src`: files and lines of TypeScript by folder, without blank lines and
 * comments, as formatted. Words that people read are data and stand apart: `src/text/words/*.json`. Fails where `src` has
 * more lines than `config.linesOfSrc` of `package.json` allows.
 *
 *     node scripts/count-lines.ts [checkout]
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedSource, parseSources } from './parse-sources.ts';

const root = process.argv[2] ?? join(import.meta.dirname, '..');
const folders = new Map<string, { files: number; lines: number }>();
for (const parsed of parseSources(root)) {
  const folder = parsed.path.split('/').slice(1, -1)[0] ?? '(top)';
  const { files, lines } = folders.get(folder) ?? { files: 0, lines: 0 };
  folders.set(folder, { files: files + 1, lines: lines + linesOf(withoutComments(parsed)) });
}
const words = globSync('src/text/words/*.json', { cwd: root })
  .map((path) => linesOf(readFileSync(join(root, path), 'utf8')))
  .reduce((sum, lines) => sum + lines, 0);

const counted = [...folders].toSorted(([left], [right]) => left.localeCompare(right));
for (const [folder, { files, lines }] of counted) print(folder, files, lines);
const total = counted.reduce((sum, [, { lines }]) => sum + lines, 0);
print(
  'src',
  counted.reduce((sum, [, { files }]) => sum + files, 0),
  total,
);
console.log(`${words} lines of words`);
const { config } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
if (total > config.linesOfSrc) {
  console.error(`src has ${total} lines; linesOfSrc in package.json allows ${config.linesOfSrc}.`);
  process.exitCode = 1;
}

function withoutComments({ source, comments }: ParsedSource): string {
  return comments.reduceRight((text, { start, end }) => text.slice(0, start) + text.slice(end), source);
}

function linesOf(text: string): number {
  return text.split('\n').filter((line) => line.trim() !== '').length;
}

function print(name: string, files: number, lines: number): void {
  console.log(`${name.padEnd(12)} ${String(files).padStart(4)} files ${String(lines).padStart(6)} lines`);
}

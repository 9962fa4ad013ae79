import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** The Markdown files that people read, by their path from the root; the README comes first. */
export function documents(): string[] {
  const inFolder = (folder: string) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md') && name !== 'README.md')
      .map((name) => join(folder, name));
  return ['README.md', ...inFolder('.'), ...inFolder('docs'), 'examples/README.md'];
}

export function readDocument(document: string): string {
  return readFileSync(join(root, document), 'utf8');
}

/** The fenced blocks of a text in Markdown, in their order, each with the comment in the line before it. */
export function fencedBlocks(markdown: string): FencedBlock[] {
  const fence =
    /(?:^ *<!-- (?<marker>.*?) -->\n)?^(?<indent> *)```(?<language>\S*)\n(?<text>[\s\S]*?)^ *```$/gm;
  return [...markdown.matchAll(fence)].map(({ groups = {}, index }) => ({
    line: markdown.slice(0, index).split('\n').length,
    language: groups.language ?? '',
    marker: groups.marker ?? '',
    text: (groups.text ?? '').replaceAll(new RegExp(`^${groups.indent ?? ''}`, 'gm'), ''),
  }));
}

export type FencedBlock = {
  /** The line that it begins at, or its comment. */
  line: number;
  language: string;
  /** The words of the comment before it, or ''. */
  marker: string;
  text: string;
};

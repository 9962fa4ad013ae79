import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'rolldown/utils';

/** The TypeScript under `src` of a checkout, parsed. */
export function parseSources(root: string): ParsedSource[] {
  return globSync('src/**/*.ts', { cwd: root }).map((path) =>
    parseSource(path, readFileSync(join(root, path), 'utf8')),
  );
}

/** Throws for what is not TypeScript. */
export function parseSource(path: string, source: string): ParsedSource {
  const { program, comments, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  return { path, source, program, comments };
}

/** `path` is from the root. */
export type ParsedSource = Pick<ReturnType<typeof parseSync>, 'program' | 'comments'> & {
  path: string;
  source: string;
};

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const files = ['proto/headlessforms/v1/', 'internal/proto/headlessforms/internal/v1/'].flatMap((path) => {
  const folder = new URL(`../${path}`, import.meta.url);
  return readdirSync(folder).map((name) => ({ name, text: readFileSync(new URL(name, folder), 'utf8') }));
});

it.each(files)('$name marks as required what its comments call so, and nothing else', ({ text }) => {
  const fields = [...text.matchAll(field)].map(({ groups }) => ({
    name: groups?.name,
    required: groups?.comment?.trimStart().startsWith('// Required. '),
    marked: groups?.options?.includes('REQUIRED') ?? false,
  }));

  expect(fields.filter(({ required, marked }) => required !== marked)).toEqual([]);
});

/** A field of a message, with the lines of comment before it. */
const field =
  /^(?<comment>(?: *\/\/.*\n)+) +(?:repeated |optional )?[\w.]+ (?<name>\w+) = \d+(?<options> \[[^\]]*\])?;/gm;

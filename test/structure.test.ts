import { join } from 'node:path';
import { Visitor } from 'rolldown/utils';
import { describe, expect, it } from 'vitest';
import { type ParsedSource, parseSource, parseSources } from '../scripts/parse-sources.ts';

const sources = parseSources(join(import.meta.dirname, '..'));

/** Names that stand in several files for one thing in several layers. The list only gets shorter. */
const namesInSeveralFiles = [
  'address',
  'form',
  'formId',
  'idempotencyKey',
  'matrix',
  'nextCursor',
  'ranking',
  'signature',
  'text',
  'time',
];

/** Tables of calls and metrics, and a statement of SQL. The list only gets shorter. */
const longFunctions = [
  'src/services/forms/forms.ts: formsService',
  'src/services/owners/owners.ts: ownersService',
  'src/store/submissions/submission-insert.ts: insertStatement',
  'src/telemetry/metrics.ts: createMetrics',
];

const MAX_LINES = 90;

describe('the sources', () => {
  it('export a name from one file, but for those that are listed', () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(exportedTwice(sources)).toEqual(namesInSeveralFiles);
  });

  it('have no function of more than 90 lines, but for those that are listed', () => {
    expect(sources.flatMap(longFunctionsOf).toSorted()).toEqual(longFunctions);
  });

  it('are looked through for both', () => {
    const lines = (count: number) => '  a();\n'.repeat(count);
    const first = parseSource('src/a.ts', `export function b() {\n${lines(89)}}\nexport type C = 1;\n`);
    const second = parseSource('src/b.ts', `export const b = () => {\n${lines(88)}};\nexport class D {}\n`);

    expect(exportedTwice([first, second])).toEqual(['b']);
    expect([first, second].flatMap(longFunctionsOf)).toEqual(['src/a.ts: b']);
  });
});

/** Sorted. */
function exportedTwice(parsed: ParsedSource[]): string[] {
  const names = parsed.flatMap((source) => [...new Set(exportedBy(source))]);
  return [...new Set(names.filter((name, index) => names.indexOf(name) < index))].toSorted();
}

function exportedBy({ program }: ParsedSource): string[] {
  return program.body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return [];
    const { declaration } = statement;
    const declared = 'declarations' in declaration ? declaration.declarations : [declaration];
    return declared.flatMap(({ id }) => (id?.type === 'Identifier' ? id.name : []));
  });
}

/** By the line that each begins in, without what follows its name. */
function longFunctionsOf({ path, source, program }: ParsedSource): string[] {
  const found: string[] = [];
  const note = ({ start, end }: { start: number; end: number }) => {
    if (source.slice(start, end).split('\n').length <= MAX_LINES) return;
    const line = source.slice(source.lastIndexOf('\n', start) + 1).split('\n', 1)[0] ?? '';
    const declared = line.replace(/^ *(?:(?:export|async|function\*?|const) )*/, '');
    found.push(`${path}: ${/^\w*/.exec(declared)?.[0]}`);
  };
  new Visitor({
    FunctionDeclaration: note,
    FunctionExpression: note,
    ArrowFunctionExpression: note,
  }).visit(program);
  return found;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ParsedSource, parseSources } from '../../scripts/parse-sources.ts';

const root = join(import.meta.dirname, '../..');

/** Every regular expression of `src`. */
export function expressionsInSources(): FoundExpressions {
  const found = parseSources(root).map(expressionsIn);
  return {
    known: found.flatMap(({ known }) => known),
    assembled: found.flatMap(({ assembled }) => assembled),
  };
}

/**
 * The regular expressions of a file: literals, and what `RegExp` is called with, as far as that is text that the file
 * itself says. `assembled` are all other uses of `RegExp`, each with its path and code.
 */
export function expressionsIn({ path, source, program }: ParsedSource): FoundExpressions {
  const found: FoundExpressions = { known: [], assembled: [] };
  const constants = constantsIn(program.body as Node[]);
  const add = (pattern: string, flags: string) => found.known.push({ path, pattern, flags });

  const visit = (node: Node, parent: Node): void => {
    const { type, regex, callee, arguments: given = [] } = node;
    if (regex !== undefined) add(regex.pattern, regex.flags);
    const isRegExp = (type === 'CallExpression' || type === 'NewExpression') && callee?.name === 'RegExp';
    // These make a regular expression of a text.
    const isMatch = type === 'CallExpression' && matching.has(callee?.property?.name ?? '');
    if (isRegExp || isMatch) {
      const [pattern, flags] = [textOf(given[0], constants), given[1] ? textOf(given[1], constants) : ''];
      if (pattern !== undefined && flags !== undefined) add(pattern, flags);
      else if (isRegExp) found.assembled.push(`${path}: ${codeOf(node, source)}`);
    }
    const isCallee = parent.callee === node;
    const isCheck = parent.type === 'TSTypeReference' || parent.operator === 'instanceof';
    if (type === 'Identifier' && node.name === 'RegExp' && !isCallee && !isCheck)
      found.assembled.push(`${path}: ${codeOf(parent, source)}`);
    for (const child of childrenOf(node)) visit(child, node);
  };
  for (const statement of program.body as Node[]) visit(statement, statement);
  return found;
}

const matching = new Set(['match', 'matchAll', 'search']);

/** What a file names at its top and does not change. */
function constantsIn(body: readonly Node[]): Map<string, Node> {
  const declared = body
    .map(({ declaration, ...statement }) => declaration ?? statement)
    .filter(({ type, kind }) => type === 'VariableDeclaration' && kind === 'const')
    .flatMap(({ declarations = [] }) => declarations);
  return new Map(declared.flatMap(({ id, init }) => (id?.name && init ? [[id.name, init]] : [])));
}

/** The text that an expression stands for, if the file says it. */
function textOf(node: Node | undefined, constants: ReadonlyMap<string, Node>): string | undefined {
  const of = (part: Node | undefined) => textOf(part, constants);
  const joined = (parts: (string | undefined)[]) =>
    parts.some((part) => part === undefined) ? undefined : parts.join('');
  if (node === undefined) return undefined;
  switch (node.type) {
    case 'Literal':
      return ['string', 'number'].includes(typeof node.value) ? String(node.value) : undefined;
    case 'Identifier':
      return of(constants.get(node.name ?? ''));
    case 'BinaryExpression':
      return node.operator === '+' ? joined([of(node.left), of(node.right)]) : undefined;
    case 'TemplateLiteral':
      return template(node, 'cooked');
    case 'TaggedTemplateExpression':
      return node.tag?.property?.name === 'raw' ? template(node.quasi, 'raw') : undefined;
    case 'MemberExpression': {
      const owner = constants.get(node.object?.name ?? '');
      if (owner?.regex !== undefined && node.property?.name === 'source') return owner.regex.pattern;
      const member = owner?.properties?.find(({ key }) => key?.name === node.property?.name);
      return of(member?.value as Node | undefined);
    }
    default:
      return undefined;
  }

  function template(literal: Node | undefined, as: 'cooked' | 'raw') {
    const { quasis = [], expressions = [] } = literal ?? {};
    return joined(
      quasis.flatMap(({ value }, index) => {
        const text = (value as { cooked: string; raw: string })[as];
        return index < expressions.length ? [text, of(expressions[index])] : [text];
      }),
    );
  }
}

function codeOf({ start, end }: Node, source: string): string {
  return source.slice(start, end).replaceAll(/\s+/g, ' ');
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof value === 'object' && value !== null && 'type' in value);
}

/**
 * Judges an expression with recheck: `safe`, how the time may grow (`polynomial`, `exponential`), or why recheck can't
 * say, such as `unknown: timeout`.
 */
export async function judge({ pattern, flags }: Pick<Expression, 'pattern' | 'flags'>): Promise<string> {
  const { checkSync } = await import('recheck');
  // The other ways need a program or a thread beside this process.
  process.env.RECHECK_SYNC_BACKEND = 'pure';
  const verdict = checkSync(pattern, flags, { timeout: 60_000 });
  if (verdict.status === 'vulnerable') return verdict.complexity.type;
  return verdict.status === 'unknown' ? `unknown: ${verdict.error.kind}` : verdict.status;
}

/** As in code. */
export function nameOf({ pattern, flags }: Pick<Expression, 'pattern' | 'flags'>): string {
  return `/${pattern}/${flags}`;
}

/** The verdicts that are kept, so that each expression is judged once. */
export function keptVerdicts(): KeptVerdicts {
  return JSON.parse(readFileSync(join(root, 'test/regular-expressions.json'), 'utf8'));
}

/**
 * `bounded` are those that are not safe, each with recheck's verdict and the bound that its text has before.
 * `assembled` are those whose pattern the code puts together, with what of.
 */
export type KeptVerdicts = {
  safe: string[];
  bounded: Record<string, { verdict: string; bound: string }>;
  assembled: Record<string, string>;
};

export type Expression = { path: string; pattern: string; flags: string };

export type FoundExpressions = { known: Expression[]; assembled: string[] };

/** What is read here of a node of the syntax tree. */
type Node = {
  type: string;
  start: number;
  end: number;
  name?: string;
  kind?: string;
  operator?: string;
  value?: unknown;
  regex?: { pattern: string; flags: string };
  callee?: Node;
  arguments?: Node[];
  property?: Node;
  object?: Node;
  properties?: Node[];
  key?: Node;
  left?: Node;
  right?: Node;
  tag?: Node;
  quasi?: Node;
  quasis?: Node[];
  expressions?: Node[];
  declaration?: Node | null;
  declarations?: Node[];
  id?: Node;
  init?: Node | null;
};

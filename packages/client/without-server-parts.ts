import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'rolldown';
import { parseSync } from 'rolldown/utils';

const root = join(import.meta.dirname, '../..');

/** Leaves out of the service's sources what a form does not need of them. */
export const withoutServerParts: Plugin = {
  name: 'without-server-parts',
  load(id) {
    if (id.startsWith(join(root, 'src/domain/patterns/'))) {
      return "export const readPattern = (text) => text; export const startMatching = () => () => 'matches';";
    }
    // The ids of uploads are made by the service, which knows them.
    if (id === join(root, 'src/domain/ids.ts'))
      return "export const isId = (prefix, text) => text.startsWith(prefix + '_');";
    if (dirname(id).endsWith('src/text/words')) {
      const { page } = JSON.parse(readFileSync(id, 'utf8'));
      const kept = Object.entries(page).filter(([name]) => wordsOfProblems.has(name));
      return {
        code: `export default ${JSON.stringify({ page: Object.fromEntries(kept) })}`,
        moduleType: 'js',
      };
    }
    return null;
  },
  transform(code, id) {
    if (!id.startsWith(join(root, 'src/')) || !id.endsWith('.ts')) return null;
    const { program } = parseSync(id, code);
    const cuts = [
      ...wordsIn(program.body as Node[]),
      ...schemasIn(program.body as Node[], code),
      ...unusedIn(program.body as Node[], code, false),
      ...quickIn(program.body as Node[]),
    ];
    return { code: cut(code, cuts) };
  },
};

/** The words of all languages: the form loads those that it needs. */
function wordsIn(body: Node[]): Cut[] {
  const imports = body.filter(
    ({ type, source }) =>
      type === 'ImportDeclaration' && String((source as { value?: string })?.value).endsWith('.json'),
  );
  if (imports.length === 0) return [];
  const all = body.filter(
    (node) =>
      node.type === 'ExportNamedDeclaration' && (node.declaration as Node)?.type === 'VariableDeclaration',
  );
  return [...imports, ...all].map(({ start, end }) => ({ start, end, by: '' }));
}

/**
 * What bounds the time that a stranger's text takes: in a form everybody waits for their own alone. And what helps authors of
 * programs, who have the service's reply.
 */
function quickIn(body: Node[]): Cut[] {
  return body.flatMap((node) => {
    const { type, id, start, end } = (node.declaration as Node | null | undefined) ?? node;
    const by = type === 'FunctionDeclaration' ? plain[(id as { name: string }).name] : undefined;
    return by === undefined ? [] : [{ start, end, by }];
  });
}

const plain: Record<string, string> = {
  holdsText: 'function holdsText(text, part) { return text.includes(part); }',
  unknownProperties: 'function unknownProperties(names) { return names.map((name) => "Unknown " + name); }',
};

/** Schemas of Zod at the top of a module, what is made of them, and what configures Zod. */
function schemasIn(body: Node[], code: string): Cut[] {
  const names = new Set(['z', 'textUpTo', 'standard']);
  return body.flatMap((statement) => {
    const declared =
      statement.type === 'ExportNamedDeclaration' ? (statement.declaration as Node | null) : statement;
    if (declared?.type === 'ExpressionStatement')
      return mentions(declared, names) ? [{ ...declared, by: '' }] : [];
    if (declared?.type !== 'VariableDeclaration') return [];
    return (declared.declarations as Declarator[]).flatMap(({ id, init }) => {
      const isCode = init === null || /Function/.test(init.type) || isTable(id.typeAnnotation, code);
      if (isCode || !mentions(init, names)) return [];
      names.add(id.name);
      return [{ ...init, by: 'undefined' }];
    });
  });
}

function mentions(node: Node, names: ReadonlySet<string>): boolean {
  if (node.type === 'Identifier') return names.has(String(node.name));
  return childrenOf(node).some((child) => mentions(child, names));
}

function isTable(type: Cut | null | undefined, code: string): boolean {
  return type !== undefined && type !== null && tables.test(code.slice(type.start, type.end));
}

/** Unused properties of tables: objects declared as one, or returned by a function that makes one. */
function unusedIn(nodes: Node[], code: string, inTable: boolean): Cut[] {
  return nodes.flatMap((node) => {
    const type =
      node.type === 'VariableDeclarator'
        ? (node as Declarator).id.typeAnnotation
        : (node.returnType ?? node.typeAnnotation);
    const begins = isTable(type as Cut | null | undefined, code);
    const key = node.type === 'Property' ? (node.key as { name?: string }).name : undefined;
    if (inTable && key !== undefined && unused.has(key)) {
      const comma = /^\s*,/.exec(code.slice(node.end))?.[0].length ?? 0;
      return [{ start: node.start, end: node.end + comma, by: '' }];
    }
    return unusedIn(childrenOf(node), code, inTable || begins);
  });
}

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((child): child is Node => typeof child === 'object' && child !== null && 'type' in child);
}

/** The code without its cuts; of nested ones the outer counts. */
function cut(code: string, cuts: Cut[]): string {
  let text = '';
  let at = 0;
  for (const { start, end, by = '' } of cuts.toSorted(
    (one, other) => one.start - other.start || other.end - one.end,
  )) {
    if (start < at) continue;
    text += code.slice(at, start) + by;
    at = end;
  }
  return text + code.slice(at);
}

/** The words that are named where problems are put into words, but for those of hints and inputs. */
const wordsOfProblems = new Set(
  ['src/pages/form/field-words.ts', 'src/pages/form/controls/address.ts'].flatMap((path) =>
    readFileSync(join(root, path), 'utf8').match(
      /(?<=words\.|')(?!\w*(?:[aA]t(?:Least|Most)|[bB]etween|Hint)|from|until|fileTypes|dropFile|zone|step|required|choose|optional)\w+/g,
    ),
  ),
);

/** What of a table of fields, and of a compiled form, the form does not use. */
const unused = new Set([
  'attributes',
  'defaults',
  'problems',
  'answerType',
  'jsonSchema',
  'agentSchema',
  'sample',
  'inWords',
  'toldBySchema',
  'choosesOptions',
  'control',
  'input',
  'kind',
  'toInputs',
  'hint',
  'checkPosted',
  'format',
]);

const tables = /FieldTypeRules|FieldWords|CompiledForm|TimeKind/;

type Cut = { start: number; end: number; by?: string };

type Declarator = Node & { id: { name: string; typeAnnotation?: Cut | null }; init: Node | null };

type Node = Cut & { type: string; [property: string]: unknown };

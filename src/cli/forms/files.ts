import { lstatSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { type FormFileContent, readFormFile } from '../../domain/definition/form-file.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { formKeyPattern } from '../../domain/limits/limits.ts';
import { RefusedError, reasonInWords } from '../terminal.ts';

/** The names of files that hold a form; what stands before is its key, unless the file has one. */
const fileName = /^(.+)\.form\.(json|yaml|yml)$/;

/**
 * The forms of a folder, in the order of their files' names. `managedBy` keeps those that do not say who does.
 *
 * Throws a `RefusedError` that names each problem of each file by its line.
 */
export async function readFormFiles(folder: string, managedBy: string): Promise<FormFile[]> {
  const names = await formFilesIn(folder);
  if (names.length === 0) throw new RefusedError(`${folder}: No files named *.form.json or *.form.yaml`);
  const forms: FormFile[] = [];
  const problems: string[] = [];
  for (const name of names) {
    try {
      forms.push(await loadForm(join(folder, name), managedBy));
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      problems.push(...error.lines);
    }
  }
  const shared = forms.flatMap(({ key, problemAt }, index) => {
    const first = forms.findIndex((form) => form.key === key);
    return first === index
      ? []
      : [problemAt({ path: 'key', message: `${forms[first]?.path} also has the key ${key}` })];
  });
  refuseAll([...problems, ...shared]);
  return forms;
}

/**
 * The names of the files of a folder that hold a form, or what else `pattern` names, sorted. Throws a `RefusedError` if
 * it can't be read.
 */
export async function formFilesIn(folder: string, pattern = fileName): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => pattern.test(name)).sort();
  } catch (error) {
    throw new RefusedError(`${folder}: ${reasonInWords(error)}`);
  }
}

/**
 * Writes files below a folder, and prints where each is. `flag` is that of `open`: `wx` for files that must be new.
 *
 * The paths come from the service, so all are judged before anything is written. Throws a `RefusedError` for one that is
 * no name, that another differs from by case alone, or that leads through a link.
 */
export async function writeFiles(
  folder: string,
  files: readonly NewFile[],
  {
    flag,
    print,
    platform = process.platform,
  }: { flag: 'w' | 'wx'; print: (line: string) => void; platform?: NodeJS.Platform },
): Promise<void> {
  const taken = new Map<string, NewFile>();
  for (const file of files) {
    const { path, of } = file;
    const names = path.split('/');
    const isRefused = (name: string) =>
      noName.test(name) ||
      (platform === 'win32' && device.test(name)) ||
      Buffer.byteLength(name) > MAX_NAME_BYTES;
    if (names.some(isRefused)) {
      throw new RefusedError(`${of}: The service names a file ${JSON.stringify(path)}, which can't be one`);
    }
    const other = taken.get(path.normalize().toLowerCase());
    if (other !== undefined) {
      throw new RefusedError(`${other.of} and ${of} are both ${path}: write each into a folder of its own`);
    }
    taken.set(path.normalize().toLowerCase(), file);
    for (const [index] of names.entries()) {
      const place = join(folder, ...names.slice(0, index + 1));
      const found = lstatSync(place, { throwIfNoEntry: false });
      if (found === undefined) break;
      const fits = index < names.length - 1 ? found.isDirectory() : found.isFile();
      if (!fits) throw new RefusedError(`${place}: Expected a plain file or folder, not a link`);
    }
  }
  for (const { path, content } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { flag });
    print(join(folder, path));
  }
}

/** What is no name of a file: none, `.` and `..`, and what terminals, shells or Windows take for something else. */
const noName = /^$|[\p{C}\p{Zl}\p{Zp}\\<>:"|?*]|[. ]$/u;

/** Devices there; elsewhere a form may have such a key. */
const device = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d\xb9\xb2\xb3])(?:\.|$)/i;

const MAX_NAME_BYTES = 255;

/** Throws a `RefusedError` with all lines, if there are any. */
export function refuseAll(problems: readonly string[]): void {
  if (problems.length > 0) throw new RefusedError([...problems, 'Nothing was applied.']);
}

/**
 * What a file of JSON or YAML has, and what says where in it a problem is. Throws a `RefusedError` with all that makes it
 * neither, and if it can't be read.
 */
export async function parseFile(path: string): Promise<Pick<FormFile, 'problemAt'> & { input: unknown }> {
  const lines = new LineCounter();
  const at = (offset: number, message: string) => {
    const { line, col } = lines.linePos(offset);
    return `${path}:${line}:${col}: ${message}`;
  };
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new RefusedError(`${path}: ${reasonInWords(error)}`);
  });
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0)
    throw new RefusedError(document.errors.map(({ pos, message }) => at(pos[0], message)));
  const problemAt: FormFile['problemAt'] = ({ path: place, message }) =>
    at(offsetOf(document, place), place === '' ? message : `${place}: ${message}`);
  try {
    return { input: document.toJS(), problemAt };
  } catch (error) {
    throw new RefusedError(at(0, reasonInWords(error)));
  }
}

/** The form of one file. Throws a `RefusedError` that names each problem by its line. */
export async function loadForm(path: string, managedBy = ''): Promise<FormFile> {
  const { input, problemAt } = await parseFile(path);
  const form = readFormFile(input);
  if (!form.ok) throw new RefusedError(form.violations.map(problemAt));
  const [, named = ''] = fileName.exec(path.slice(path.lastIndexOf('/') + 1)) ?? [];
  const key = form.key ?? named;
  const outdated = form.outdated.map((problem) => `could not be published today: ${problemAt(problem)}`);
  const warnings = [...outdated, ...form.warnings];
  if (formKeyPattern.test(key))
    return { ...form, key, path, problemAt, warnings, managedBy: form.managedBy ?? managedBy };
  const message = `The key ${key} needs 1 to 64 of a-z, 0-9, ".", "_" and "-": rename the file, or give "key"`;
  throw new RefusedError(problemAt({ path: '', message }));
}

/** Where a dotted path leads in a document, or as far as it does: to the key of a property, or to an item. */
function offsetOf(document: Document.Parsed, path: string): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? 0;
  for (const part of path === '' ? [] : path.split('.')) {
    const inside = isAlias(node) ? node.resolve(document) : node;
    const pair = isMap(inside)
      ? inside.items.find(({ key }) => isScalar(key) && String(key.value) === part)
      : undefined;
    const target = isSeq(inside) ? inside.items[Number(part)] : pair?.key;
    if (!isNode(target)) break;
    offset = target.range?.[0] ?? offset;
    node = pair === undefined ? target : pair.value;
  }
  return offset;
}

/** A form as a file has it. */
export type FormFile = Omit<FormFileContent, 'key' | 'managedBy'> & {
  path: string;
  key: string;
  /** Empty: as it is. */
  managedBy: string;
  /** A problem at a path of the file's JSON, as a line for people. */
  problemAt: (problem: Pick<Violation, 'path' | 'message'>) => string;
};

/** `of` is the form that it is of, for messages. `path` is below the folder, with `/`. */
export type NewFile = { path: string; content: string | Uint8Array; of: string };

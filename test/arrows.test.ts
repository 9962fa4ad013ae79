import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Each room and the rooms it may import, besides itself and npm packages. */
const arrows: Record<string, string[]> = {
  gen: [],
  domain: ['gen'],
  store: ['gen', 'domain'],
  services: ['gen', 'domain', 'store'],
  delivery: ['domain', 'store'],
  gateway: ['gen', 'domain'],
  hosted: ['gen', 'domain'],
  top: ['gen', 'domain', 'store', 'services', 'delivery', 'gateway', 'hosted'],
};

const root = join(import.meta.dirname, '..');

describe('the rooms', () => {
  const imports = readImports(['src', 'gen']);

  it('import only along the arrows', () => {
    const broken = imports.filter(({ from, to }) => {
      const [room, other] = [roomOf(from), roomOf(to)];
      return room !== other && !arrows[room]?.includes(other);
    });

    expect(imports.length).toBeGreaterThan(100);
    expect(broken.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('have no circle of imports', () => {
    const graph = Map.groupBy(imports, ({ from }) => from);

    expect(findCircle(graph)).toEqual([]);
  });

  it('refuse an import against the arrows, and find a circle, if there is one', () => {
    const circle = [
      { from: 'src/domain/a.ts', to: 'src/store/b.ts' },
      { from: 'src/store/b.ts', to: 'src/domain/a.ts' },
    ];

    expect(importsOf('src/domain/a.ts', "import { b } from '../store/b.ts';")).toEqual([circle[0]]);
    expect(importsOf('src/domain/a.ts', "export type { B } from '../store/b.ts';")).toEqual([circle[0]]);
    expect(findCircle(Map.groupBy(circle, ({ from }) => from))).toHaveLength(3);
  });
});

function readImports(folders: string[]): Import[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
        join(folder, file),
      ),
    )
    .filter((file) => /\.[jt]s$/.test(file))
    .flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
}

function importsOf(file: string, source: string): Import[] {
  const specifiers = source.matchAll(
    /^(?:import|export)\b[^'"]*?from\s*['"](\.[^'"]+)['"]|import\(\s*['"](\.[^'"]+)['"]/gm,
  );
  return [...specifiers].map(([, fixed, dynamic]) => ({
    from: file,
    to: normalize(join(dirname(file), fixed ?? dynamic ?? '')),
  }));
}

/** The folder of a file under src, `gen`, or `top` for the files beside the folders. */
function roomOf(file: string): string {
  const [top, room, ...rest] = relative('.', file).split('/');
  if (top === 'gen') return 'gen';
  return rest.length > 0 && room !== undefined ? room : 'top';
}

/** The files of one circle of imports, the first of them again at the end; none: empty. */
function findCircle(graph: Map<string, Import[]>): string[] {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const { to } of graph.get(file) ?? []) {
      const circle = visit(to, [...path, file]);
      if (circle.length > 0) return circle;
    }
    done.add(file);
    return [];
  };
  for (const file of graph.keys()) {
    const circle = visit(file, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

type Import = { from: string; to: string };

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * What each layer may import besides itself, npm packages and `telemetry`: a layer, or single files of one. A
 * layer is a folder of src (the deepest that is named here), `gen`, or `process`, the files beside the folders.
 */
const mayImport: Record<string, string[]> = {
  gen: [],
  telemetry: [],
  domain: ['gen'],
  store: ['gen', 'domain'],
  admission: ['gen', 'src/domain/errors/failure.ts'],
  rpc: ['gen', 'domain', 'admission'],
  services: ['gen', 'domain', 'store', 'src/admission/time-slice.ts', 'src/rpc/context.ts'],
  text: ['domain'],
  delivery: ['domain', 'store', 'text'],
  http: ['gen', 'domain', 'admission', 'src/rpc/context.ts'],
  gateway: ['gen', 'domain', 'http', 'text', 'src/admission/read-body.ts'],
  pages: ['gen', 'domain', 'http', 'text'],
  mcp: ['gen', 'domain', 'http', 'text'],
  listeners: [
    'gen',
    'admission',
    'http',
    'src/domain/errors/failure.ts',
    'src/domain/errors/system-errors.ts',
  ],
  cli: ['gen', 'domain', 'cli/admin'],
  'cli/admin': [
    'gen',
    'domain',
    'store',
    'services',
    'src/config.ts',
    'src/secret-key.ts',
    'src/listeners/certificate.ts',
    'src/listeners/ports.ts',
    'src/cli/terminal.ts',
    'package.json',
  ],
  process: [
    'gen',
    'domain',
    'store',
    'services',
    'rpc',
    'delivery',
    'text',
    'http',
    'gateway',
    'pages',
    'mcp',
    'admission',
    'listeners',
  ],
};

const root = join(import.meta.dirname, '..');

describe('the layers', () => {
  const imports = readImports(['src', 'gen']);

  it('import only what the table of layers allows', () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(imports.filter(isForbidden).map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
  });

  it('are all in the table', () => {
    const layers = new Set(imports.flatMap(({ from, to }) => [layerOf(from), layerOf(to)]));

    expect([...layers].filter((layer) => !Object.hasOwn(mayImport, layer))).toEqual([]);
  });

  it('have no import cycle between files', () => {
    expect(findCycle(Map.groupBy(imports, ({ from }) => from))).toEqual([]);
  });

  it('have the files that CONTRIBUTING follows a call through', () => {
    const named = /`([a-z-]+(?:\/[a-z-]+)+\.ts)`/g;
    const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').split('## The way of a call')[1] ?? '';
    const files = [...text.matchAll(named)].map(([, path = '']) => path);

    expect(files.length).toBeGreaterThan(50);
    expect(files.filter((path) => !existsSync(join(root, 'src', path)))).toEqual([]);
  });

  it('would be found importing what they may not, or in a cycle', () => {
    const cycle = [
      { from: 'src/domain/a.ts', to: 'src/store/b.ts' },
      { from: 'src/store/b.ts', to: 'src/domain/a.ts' },
    ];
    const server = { from: 'src/services/forms/a.ts', to: 'src/rpc/network/server.ts' };
    const context = { from: 'src/services/forms/a.ts', to: 'src/rpc/context.ts' };

    expect(importsOf('src/domain/a.ts', "import { b } from '../store/b.ts';")).toEqual([cycle[0]]);
    expect(importsOf('src/domain/a.ts', "export type { B } from '../store/b.ts';")).toEqual([cycle[0]]);
    expect([...cycle, server, context].filter(isForbidden)).toEqual([cycle[0], server]);
    expect(findCycle(Map.groupBy(cycle, ({ from }) => from))).toHaveLength(3);
  });
});

function isForbidden({ from, to }: Import): boolean {
  const [layer, other] = [layerOf(from), layerOf(to)];
  if (layer === other || other === 'telemetry') return false;
  const allowed = mayImport[layer] ?? [];
  return !allowed.includes(other) && !allowed.includes(to);
}

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

function layerOf(file: string): string {
  const [top, folder = '', ...rest] = file.split('/');
  if (top === 'gen') return 'gen';
  if (rest.length === 0) return 'process';
  const inside = `${folder}/${rest[0]}`;
  return Object.hasOwn(mayImport, inside) ? inside : folder;
}

/** The files of one cycle of imports, the first of them again at the end; none: empty. */
function findCycle(graph: Map<string, Import[]>): string[] {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const { to } of graph.get(file) ?? []) {
      const cycle = visit(to, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    done.add(file);
    return [];
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

type Import = { from: string; to: string };

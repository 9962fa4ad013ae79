import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/*
 * What is tried of the clients: each language by each protocol that it could speak, and what it does by that. A cell names
 * the test that tries it, or why nothing does. Types want every cell. Prints the whole table, with the holes' reasons.
 */

/** What a client does by calls. */
const calls = {
  'whole life of a form': 'activated, submitted, listed, session, exported',
  'typed errors': 'violations with their codes',
  gzip: 'of a request or a reply',
  deadline: '',
  'many MiB in lists and exports': '',
  'uploads and downloads': '',
  retries: 'after a lost reply, done once',
  filters: 'a list by an answer, with its total',
  'stream token': 'made, and submissions watched by it without a key',
  'typed answers': 'the message generated for a form',
  createForm: 'a published form without markup',
} as const;

/** What a receiver does with what comes by HTTP. */
const receipts = { 'webhook v1': 'HMAC', 'webhook v1a': 'Ed25519' } as const;

const protocols = ['gRPC', 'gRPC-Web', 'Connect'] as const;

type Call = keyof typeof calls;
type Receipt = keyof typeof receipts;
/** A file below `test` and words in it: of the test, or of the client that it runs. */
type Proof = readonly [file: string, words: string];
type Hole = { none: string };
type Cell = Proof | Hole;
type Cells = Record<Call, Cell>;
type Row = Record<(typeof protocols)[number], Cells> & { receiver: Record<Receipt, Cell> };

/** The same in every cell that calls have. */
function everyCall(cell: Cell): Cells {
  const names = Object.keys(calls) as Call[];
  return Object.fromEntries(names.map((name) => [name, cell])) as Cells;
}

const byHttp = { none: 'it reads forms by keyless HTTP, by no protocol for calls: see Connect' };
const createForm: Proof = ['packages/comparison.test.ts', 'createForm'];
const createFormIn = (file: string): Cell => [`packages/${file}`, 'createForm'];
const onlyTypeScript = { none: 'the package is TypeScript; others render forms by GET /api/forms/:id' };
const sameMessage = { none: 'the message does not depend on the protocol: see gRPC' };

/** A client in TypeScript does all of `everyOperation`. */
function typescript(words: string, form: Cell, typed: Cell): Cells {
  return { ...everyCall(['clients/typescript.test.ts', words]), 'typed answers': typed, createForm: form };
}

/** The other languages print a line for each of what `expectedOutput` in given.ts has. */
function printed(name: string, protocol: 'grpc' | 'connect', typed: Cell): Cells {
  const line = (words: string): Proof => ['clients/given.ts', words];
  const life: Proof = ['clients/examples.test.ts', `name: '${name}'`];
  return {
    'whole life of a form': life,
    'typed errors': life,
    gzip: line(`'${protocol} gzip 20000'`),
    deadline: line(`'${protocol} deadline`),
    'many MiB in lists and exports': line(`\`${protocol} exported`),
    'uploads and downloads': line(`\`${protocol} downloaded`),
    retries: line(`'${protocol} retried'`),
    filters: line(`'${protocol} filtered 1'`),
    'stream token': line(`'${protocol} watched by token'`),
    'typed answers': typed,
    createForm: onlyTypeScript,
  };
}

const v1: Proof = ['clients/examples.test.ts', "'webhook signature valid'"];
const v1a = (name: string): Proof => ['clients/webhook-signatures.test.ts', `name: '${name}'`];

/** A language with a client by gRPC, and one by Connect on its own HTTP library. */
function language(name: string, typedClient: string, ed25519: Cell): Row {
  return {
    gRPC: printed(name, 'grpc', ['clients/examples.test.ts', typedClient]),
    'gRPC-Web': everyCall({ none: 'no client library for it outside browsers and Node' }),
    Connect: printed(name, 'connect', sameMessage),
    receiver: { 'webhook v1': v1, 'webhook v1a': ed25519 },
  };
}

const notShown = { none: 'docs/webhooks.md shows the check in JavaScript, Python and Go alone' };
const noReceiver = { none: 'browsers receive no webhooks' };
const javaLife: Proof = ['clients/examples.test.ts', "name: 'java'"];

const matrix: Record<string, Row> = {
  'TypeScript, Node': {
    gRPC: typescript("'grpc'", byHttp, ['clients/examples.test.ts', 'clients/node/typed.mjs']),
    'gRPC-Web': typescript("'grpc-web'", byHttp, sameMessage),
    Connect: typescript("'connect', 'connect over HTTP/2'", createForm, sameMessage),
    receiver: { 'webhook v1': v1, 'webhook v1a': v1a('node') },
  },
  'TypeScript, browser': {
    gRPC: everyCall({ none: 'browsers do not speak gRPC' }),
    'gRPC-Web': typescript("'grpc-web'", byHttp, sameMessage),
    Connect: typescript("'connect-get'", createFormIn('examples.browser.test.ts'), sameMessage),
    receiver: { 'webhook v1': noReceiver, 'webhook v1a': noReceiver },
  },
  Python: language('python', 'clients/python/typed.py', v1a('python')),
  Ruby: language('ruby', 'clients/ruby/typed.rb', notShown),
  Go: language('go', 'clients/go/typed/typed.go', v1a('go')),
  'C++': language('cpp', 'clients/cpp/typed.cc', notShown),
  Java: {
    gRPC: {
      ...everyCall({ none: 'the example in Java shows the life of a form; its library is that of no other' }),
      'whole life of a form': javaLife,
      'typed errors': javaLife,
      'typed answers': ['clients/examples.test.ts', "'Typed'"],
      createForm: onlyTypeScript,
    },
    'gRPC-Web': everyCall({ none: 'no client library for it outside browsers and Node' }),
    Connect: everyCall({ none: 'plain HTTP and JSON, as in the other languages: the JDK has no JSON' }),
    receiver: { 'webhook v1': v1, 'webhook v1a': notShown },
  },
};

it('tries every language by every protocol, or says why not', () => {
  const cells = Object.entries(matrix).flatMap(([name, { receiver, ...byProtocol }]) => [
    ...protocols.map((protocol) => ({ client: `${name}, ${protocol}`, cells: byProtocol[protocol] })),
    { client: `${name}, receiver`, cells: receiver },
  ]);
  const nothing = cells.flatMap(({ client, cells }) =>
    Object.entries(cells)
      .filter(([, cell]) => 'none' in cell && cell.none.trim() === '')
      .map(([task]) => `${client} × ${task}`),
  );
  const holes = cells.flatMap(({ client, cells }) =>
    Object.entries(cells).flatMap(([task, cell]) =>
      'none' in cell ? [{ reason: cell.none, where: `${client} × ${task}` }] : [],
    ),
  );

  const shown = cells.map(({ client, cells }) => [
    client,
    Object.fromEntries(Object.entries(cells).map(([task, cell]) => [task, 'none' in cell ? '–' : 'yes'])),
  ]);
  console.table(Object.fromEntries(shown));
  for (const [reason, [first, ...others] = []] of Map.groupBy(holes, ({ reason }) => reason))
    console.log(`– ${reason}: ${first?.where}${others.length > 0 ? ` and ${others.length} more` : ''}`);

  expect(cells).toHaveLength(Object.keys(matrix).length * (protocols.length + 1));
  for (const { client, cells: row } of cells) {
    const wanted = client.endsWith('receiver') ? receipts : calls;
    expect(Object.keys(row).toSorted(), client).toEqual(Object.keys(wanted).toSorted());
  }
  expect(nothing).toEqual([]);
});

it('names tests that there are', () => {
  const cells = Object.values(matrix).flatMap((row) =>
    Object.values(row).flatMap((each) => Object.values(each)),
  );

  for (const cell of cells as Cell[]) {
    if ('none' in cell) continue;
    const [file, words] = cell;
    expect(readFileSync(join(import.meta.dirname, '..', file), 'utf8'), file).toContain(words);
  }
});

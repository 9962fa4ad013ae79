import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/*
 * What is tried of the clients: each language by each protocol that it could speak, and what it does by that. Prints the
 * whole table, and names each hole with its reason.
 */

const protocols = ['gRPC', 'gRPC-Web', 'Connect', 'none'] as const;

/** What a client does. The last three need no call of the service, or any. */
const tasks = {
  'whole life of a form': 'activated, submitted, listed, session, exported',
  'typed errors': 'violations with their codes',
  gzip: 'of a request or a reply',
  deadline: '',
  'many MiB in lists and exports': '',
  'uploads and downloads': '',
  'typed answers': 'the message generated for a form',
  'webhook v1': 'HMAC',
  'webhook v1a': 'Ed25519',
} as const;

type Protocol = (typeof protocols)[number];
type Task = keyof typeof tasks;
/** A file of this folder and words in it: of the test, or of the client that it runs. */
type Proof = readonly [file: string, words: string];
type Cells = Partial<Record<Task, Proof>>;
type Row = Partial<Record<Protocol, Cells>>;

const life = (name: string): Cells => {
  const proof = ['examples.test.ts', `name: '${name}'`] as const;
  return { 'whole life of a form': proof, 'typed errors': proof };
};
/** What `expectedOutput` in given.ts wants of every language by a protocol. */
const operations = (protocol: 'grpc' | 'connect'): Cells => ({
  gzip: ['given.ts', `'${protocol} gzip 20000'`],
  deadline: ['given.ts', `'${protocol} deadline`],
  'many MiB in lists and exports': ['given.ts', `\`${protocol} exported`],
  'uploads and downloads': ['given.ts', `\`${protocol} downloaded`],
});
const everyOperation = (words: string): Cells => {
  const proof = ['typescript.test.ts', words] as const;
  return {
    'whole life of a form': proof,
    'typed errors': proof,
    gzip: proof,
    deadline: proof,
    'many MiB in lists and exports': proof,
    'uploads and downloads': proof,
  };
};
const typed = (path: string) => ({ 'typed answers': ['examples.test.ts', path] as const });
const v1: Proof = ['examples.test.ts', "'webhook signature valid'"];
const v1a = (name: string): Proof => ['webhook-signatures.test.ts', `name: '${name}'`];

const byLanguage: Record<string, Row> = {
  'TypeScript, Node': {
    gRPC: { ...life('node'), ...everyOperation("'grpc'"), ...typed('clients/node/typed.mjs') },
    'gRPC-Web': everyOperation("'grpc-web'"),
    Connect: everyOperation("'connect', 'connect over HTTP/2'"),
    none: { 'webhook v1': v1, 'webhook v1a': v1a('node') },
  },
  'TypeScript, browser': {
    'gRPC-Web': everyOperation("'grpc-web'"),
    Connect: everyOperation("'connect-get'"),
  },
  Python: {
    gRPC: { ...life('python'), ...operations('grpc'), ...typed('clients/python/typed.py') },
    Connect: { ...life('python'), ...operations('connect') },
    none: { 'webhook v1': v1, 'webhook v1a': v1a('python') },
  },
  Ruby: {
    gRPC: { ...life('ruby'), ...operations('grpc'), ...typed('clients/ruby/typed.rb') },
    Connect: { ...life('ruby'), ...operations('connect') },
    none: { 'webhook v1': v1 },
  },
  Go: {
    gRPC: { ...life('go'), ...operations('grpc'), ...typed('clients/go/typed/typed.go') },
    Connect: { ...life('go'), ...operations('connect') },
    none: { 'webhook v1': v1, 'webhook v1a': v1a('go') },
  },
  'C++': {
    gRPC: { ...life('cpp'), ...operations('grpc'), ...typed('clients/cpp/typed.cc') },
    Connect: { ...life('cpp'), ...operations('connect') },
    none: { 'webhook v1': v1 },
  },
  Java: { gRPC: typed('javac') },
};

/** Why nothing is tried there, or undefined if nothing excuses it. */
function reasonOf(language: string, protocol: Protocol, task: Task): string | undefined {
  const isWebhook = task.startsWith('webhook');
  if (isWebhook !== (protocol === 'none')) return 'does not apply';
  if (language === 'TypeScript, browser' && protocol === 'gRPC') return 'browsers do not speak gRPC';
  if (language === 'TypeScript, browser' && isWebhook) return 'browsers receive no webhooks';
  if (protocol === 'gRPC-Web') {
    if (task === 'typed answers') return 'the message does not depend on the protocol: see gRPC';
    return language.startsWith('TypeScript')
      ? undefined
      : 'no client library for it outside browsers and Node';
  }
  if (protocol === 'Connect' && task === 'typed answers')
    return 'the message does not depend on the protocol: see gRPC';
  if (language === 'Java')
    return 'its client needs many packages; only what generators make of a form is tried';
  if (task === 'webhook v1a') return 'docs/webhooks.md shows the check in JavaScript, Python and Go alone';
  return undefined;
}

it('tries every language by every protocol, or says why not', () => {
  const missing: string[] = [];
  const reasons = new Map<string, string[]>();
  const rows = Object.entries(byLanguage).flatMap(([language, row]) =>
    protocols.map((protocol) => {
      const cells = (Object.keys(tasks) as Task[]).map((task) => {
        if (row[protocol]?.[task] !== undefined) return 'yes';
        const reason = reasonOf(language, protocol, task);
        if (reason === undefined) missing.push(`${language} × ${protocol} × ${task}`);
        else reasons.set(reason, [...(reasons.get(reason) ?? []), `${language} × ${protocol} × ${task}`]);
        return reason === 'does not apply' ? '' : '–';
      });
      return { client: `${language}, ${protocol === 'none' ? 'receiver' : protocol}`, cells };
    }),
  );
  reasons.delete('does not apply');

  const shown = rows.map(({ client, cells }) => [
    client,
    Object.fromEntries(Object.keys(tasks).map((task, index) => [task, cells[index]])),
  ]);
  console.table(Object.fromEntries(shown));
  for (const [reason, holes] of reasons)
    console.log(`– ${reason}: ${holes.length} cells, such as ${holes[0]}`);

  expect(missing).toEqual([]);
});

it('names tests that there are', () => {
  const proofs = Object.values(byLanguage).flatMap((row) =>
    Object.values(row).flatMap((cells) => Object.values(cells)),
  );

  for (const [file, words] of proofs) {
    expect(readFileSync(join(import.meta.dirname, file), 'utf8'), file).toContain(words);
  }
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signWebhook } from '../src/domain/delivery/signature.ts';
import { documents, type FencedBlock, fencedBlocks, readDocument } from './support/documents.ts';
import { freePort, temporaryFolder } from './support/spawn.ts';
import { until } from './support/until.ts';

/*
 * Runs every command of the documents, in their order, in a folder that looks like a clone of this repository. A
 * comment in the line before a block says how:
 *
 *   <!-- not run: why -->       it can't run on the machine of whoever changes this
 *   <!-- run until: text -->    it goes on, as a server does: until it has said the text, and then beside the others
 *   <!-- output -->             before a block of JSON: the commands before it answer with these properties
 */

const root = join(import.meta.dirname, '..');

/** The README sets the variables that the others use, and webhooks.md one that metrics.md does. */
const first = ['README.md', 'docs/rest.md', 'docs/webhooks.md'];
const inOrder = [...first, ...documents().filter((document) => !first.includes(document))];

describe('the commands in the documents', { timeout: 180_000 }, () => {
  const opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder()).path;
  const ended: Block[] = [];
  const going: GoingBlock[] = [];
  let terminal: Terminal;
  let rewrites: [from: string, to: string][];

  beforeAll(async () => {
    const left = ['node_modules', 'data', '.git'];
    for (const name of readdirSync(root).filter((name) => !left.includes(name))) {
      cpSync(join(root, name), join(folder, name), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    const [PORT, GRPC_PORT, METRICS_PORT, receiver] = ports.map(String);
    rewrites = [
      // The dependencies are there: `.ci/run` installs them in a fresh clone.
      ['npm ci && ', ''],
      ['localhost:8080', `localhost:${PORT}`],
      ['localhost:8081', `localhost:${GRPC_PORT}`],
      ['127.0.0.1:9464', `127.0.0.1:${METRICS_PORT}`],
      ['localhost:3000', `localhost:${receiver}`],
      ['listen(3000', `listen(${receiver}`],
      ['/srv/', join(folder, 'srv/')],
    ];
    const { PATH, HOME, TMPDIR } = process.env;
    // HEADER, SECRET and body.json are what docs/webhooks.md checks a signature with.
    const body = '{"id":"evt_1"}';
    const signed = signWebhook({ id: 'evt_1', body, at: Date.now(), secret: 'a-secret' });
    writeFileSync(join(folder, 'body.json'), body);
    const given = { SECRET: 'a-secret', HEADER: signed['X-Service-Signature'] };
    const settings = { PORT, GRPC_PORT, METRICS_PORT };
    terminal = opened.use(openTerminal(folder, { PATH, HOME, TMPDIR, ...given, ...settings }));
  });
  afterAll(() => opened.disposeAsync());

  it('are run, or say why not', () => {
    const blocks = documents().flatMap(blocksOf);
    const withoutReason = blocks.filter(
      ({ marker }) => marker.startsWith('not run') && !/^not run: .{10}/.test(marker),
    );
    const unknown = blocks.filter(
      ({ marker }) => marker !== '' && !/^(not run|run until|output)\b/.test(marker),
    );
    const byAnotherName = blocks.filter(({ language }) =>
      ['bash', 'shell', 'console', 'zsh'].includes(language),
    );

    expect(blocks.filter(isRun).length).toBeGreaterThan(30);
    expect([withoutReason, unknown, byAnotherName].flat().map(({ place }) => place)).toEqual([]);
  });

  it.each(inOrder)('work as they stand: %s', async (document) => {
    const blocks = blocksOf(document);

    for (const [index, block] of blocks.entries()) {
      if (!isRun(block)) continue;
      const output = await run(block);
      const documented = blocks[index + 1];
      if (documented?.marker === 'output')
        expectShape(JSON.parse(output), JSON.parse(documented.text), block);
      else expect({ place: block.place, refused: refusal(output) }).toEqual({ place: block.place });
    }
  });

  it('lead from the first form to a receiver that checks signatures and gets what is documented', async () => {
    const receiver = going.find(({ text }) => text.includes('receiver.mjs'));
    const [, event = ''] = await until(() => /^(\{"id":"evt_.*)$/m.exec(receiver?.said() ?? ''));
    const documented = blocksOf('docs/webhooks.md').find(({ language }) => language === 'json');

    expectShape(JSON.parse(event), JSON.parse(documented?.text ?? ''), documented);
  });

  it('ask a person, and print the answer with who gave it', async () => {
    const script = going.find(({ text }) => text.includes('ask.mjs'));
    const [, service = '', session = ''] = /Open (http\S+)\/f\/(\S+)/.exec(script?.said() ?? '') ?? [];
    const page = await (await fetch(`${service}/f/${session}`)).text();
    const inputs = [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g)];
    const body = new URLSearchParams({ approved: 'true', _go: 'forward' });
    for (const [, name = '', value = ''] of inputs) body.append(name, value);

    const posted = await fetch(`${service}/f/${session}`, { method: 'POST', body });

    expect(posted.status).toBe(200);
    const [said] = await until(() => /^submitted .*$/m.exec(script?.said() ?? ''));
    expect(said).toMatch(/^submitted \{ approved: true \} \{ approved: \{ by: 'human'/);
  });

  it('print the links in the mails that are files', async () => {
    const block = blocksOf('docs/forms.md').find(({ text }) => text.includes('data/mail'));

    const printed = await until(async () => {
      const { output } = await terminal.run(block?.text ?? '');
      return output.includes('/mail/confirm-owner.') ? output : undefined;
    });

    expect(printed).toMatch(/^http:\/\/localhost:\d+\/mail\/confirm-owner\.[\w-]+\.[\w-]+\.[\w-]+$/m);
  });

  it('say that a good signature is good', () => {
    expect(ended.find(({ text }) => text.includes('openssl dgst'))?.output).toBe('good\n');
  });

  async function run(block: Block): Promise<string> {
    const text = rewritten(block.text);
    const [, untilText] = /^run until: (.*)$/.exec(block.marker) ?? [];
    if (untilText !== undefined) {
      const said = await terminal.runUntil(text, rewritten(untilText));
      going.push({ ...block, said });
      return '';
    }
    const { code, output, errors } = await terminal.run(text);
    expect({ place: block.place, code, output, errors }).toMatchObject({ code: 0 });
    ended.push({ ...block, output });
    return output;
  }

  /** A text of a document, with the ports of this run and the key that the service has printed. */
  function rewritten(text: string): string {
    const key = /hfs_\w{20,}/.exec(going[0]?.said() ?? '')?.[0];
    const all: typeof rewrites = key === undefined ? rewrites : [...rewrites, ['hfs_…', key]];
    return all.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
  }
});

function blocksOf(document: string): Block[] {
  return fencedBlocks(readDocument(document)).map((block) => ({
    ...block,
    place: `${document}:${block.line}`,
    output: '',
  }));
}

function isRun({ language, marker }: FencedBlock): boolean {
  return language === 'sh' && !marker.startsWith('not run');
}

/** The refusal that REST, MCP or Connect answered with: curl ends well with it. */
function refusal(output: string): string | undefined {
  return /^.*("error": *\{|"isError": *true|^\{"code":").*$/m.exec(output)?.[0];
}

/** Expects the same properties with the same types, and the same value where that is a word. */
function expectShape(actual: unknown, documented: unknown, block: Block | undefined): void {
  expect({ place: block?.place, shape: shapeOf(actual) }).toEqual({
    place: block?.place,
    shape: shapeOf(documented),
  });
}

function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner)]));
  }
  return typeof value === 'string' && /^[a-z_.]+$/.test(value) ? value : typeof value;
}

/** `place` is the document and the line; `output` what it said when it was run. */
type Block = FencedBlock & { place: string; output: string };

/** One that goes on, and what it has said so far. */
type GoingBlock = Block & { said: () => string };

/**
 * A terminal in a folder, with a variable or a folder that a command sets holding for those after it. What it
 * leaves running is killed when it is closed.
 */
function openTerminal(folder: string, env: Record<string, string | undefined>): Terminal {
  const state = join(folder, '.terminal');
  mkdirSync(folder, { recursive: true });
  const running: Run[] = [];

  /** Runs commands in a process group of their own, and ends at the first that fails. */
  function start(commands: string): Run {
    const before = existsSync(state) ? `. ${quote(state)}\n` : '';
    const after = `trap '{ export -p; printf "cd %q\\n" "$PWD"; } > ${quote(state)}' EXIT\n`;
    const child = spawn('bash', ['-c', `${before}set -aeo pipefail\n${after}${commands}`], {
      cwd: folder,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const run: Run = { child, output: '', errors: '', closed: once(child, 'close') };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (run.output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (run.errors += text));
    running.push(run);
    return run;
  }

  return {
    async run(commands) {
      const run = start(commands);
      await run.closed;
      return { code: run.child.exitCode, output: run.output, errors: run.errors };
    },
    async runUntil(commands, text) {
      const run = start(commands);
      const said = () => run.output + run.errors;
      await until(() => said().includes(text) || run.child.exitCode !== null, 120_000, said);
      if (!said().includes(text)) throw new Error(`It ended without saying ${text}: ${said()}`);
      return said;
    },
    async [Symbol.asyncDispose]() {
      for (const { child, closed } of running) {
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
          process.kill(-child.pid, 'SIGKILL');
        }
        await closed;
      }
    },
  };
}

/** Text as one word of a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

type Terminal = AsyncDisposable & {
  run(commands: string): Promise<{ code: number | null; output: string; errors: string }>;
  /** Resolves once the commands have said a text, with what reads all they have said; they go on. */
  runUntil(commands: string, text: string): Promise<() => string>;
};

type Run = { child: ChildProcess; output: string; errors: string; closed: Promise<unknown> };

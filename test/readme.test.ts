import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { describedSettings } from '../src/config.ts';
import { signWebhook } from '../src/domain/delivery/signature.ts';
import { type ClientLimits, pageLimits, policies } from '../src/domain/methods.ts';
import { newWebhookSecret } from '../src/domain/secrets/new-secrets.ts';
import { routes } from '../src/gateway/router.ts';
import { documents, fencedBlocks, readDocument as read } from './support/documents.ts';
import { temporaryFolder } from './support/spawn.ts';

const root = join(import.meta.dirname, '..');

const verdicts = new Set(['holds', 'does not', 'not applicable']);

describe('the documents', () => {
  it('show a verifier that takes what the service signs, and nothing else', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'verify.mjs');
    writeFileSync(file, /```js\n([\s\S]*?)```/.exec(read('docs/webhooks.md'))?.[1] ?? '');
    const { verify } = await import(pathToFileURL(file).href);
    const secret = newWebhookSecret();
    const at = 1_795_226_400_000;
    const body = '{"id":"evt_1"}';
    const header = signWebhook({ id: 'evt_1', body, at, secret })['X-Service-Signature'] ?? '';
    const now = at / 1000;

    expect(verify(body, header, secret, now)).toBe(true);
    expect(verify(`${body} `, header, secret, now)).toBe(false);
    expect(verify(body, header.replace(`t=${now}`, `t=${now + 1}`), secret, now)).toBe(false);
    expect(verify(body, header, newWebhookSecret(), now)).toBe(false);
    expect(verify(body, header, secret, now + 301)).toBe(false);
    expect(verify(body, 'nonsense', secret, now)).toBe(false);
  });

  it('say of each requirement of ASVS whether it holds, and name tests that exist', () => {
    const asvs = read('docs/asvs.md');
    const rows = asvs.split('\n').filter((line) => /^\| \d/.test(line));
    const parts = rows.map((line) => line.slice(2, -2).split(' | '));
    const named = [...asvs.matchAll(/`((?:test|src|ops)\/[^`]+)`/g)].map(([, path = '']) => path);
    const numbers = parts.flatMap(([first = '']) => first.match(/\d+\.\d+\.\d+/g));

    expect(rows.length).toBeGreaterThan(100);
    expect(parts.filter(([, verdict = '', why = '']) => !verdicts.has(verdict) || why.length < 5)).toEqual(
      [],
    );
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it.each(
    Object.entries({
      typescript: 'examples/node/main.ts',
      python: 'examples/python/main.py',
      go: 'examples/go/main.go',
      ruby: 'examples/ruby/main.rb',
      java: 'examples/java/Main.java',
      cpp: 'examples/cpp/main.cc',
    }),
  )('show of a client in %s only what its example does', (language, example) => {
    const lines = (text: string) => text.split('\n').map((line) => line.trim());
    const whole = lines(read(example)).join('\n');
    const ofDocument = fencedBlocks(read(`docs/${language}.md`));
    const quoted = ofDocument.filter((block) => !['sh', 'yaml'].includes(block.language));

    expect(quoted.length).toBeGreaterThan(9);
    expect(quoted.filter(({ text }) => !whole.includes(lines(text).join('\n')))).toEqual([]);
  });

  it('name every route that is served', () => {
    const text = read('docs/rest.md');
    const missing = routes
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .filter((route) => !text.includes(route));

    expect(routes.length).toBeGreaterThan(35);
    expect(missing).toEqual([]);
  });

  it('describe every setting as `npm start -- --help` does', () => {
    const [, table = ''] = /\|---\|---\|---\|\n([\s\S]*?)\n(?:\n|$)/.exec(read('docs/settings.md')) ?? [];

    expect(table.split('\n')).toEqual(
      describedSettings.map(({ variable, standard, about }) =>
        `| \`${variable}\` | ${standard} | ${about} |`.replace('|  |', '| |'),
      ),
    );
  });

  it('give every limit of calls without a key as it is', () => {
    const [, table = ''] =
      /all clients a minute \|\n\|[-|]+\|\n([\s\S]*?)\n\n/.exec(read('docs/limits.md')) ?? [];
    const ofPages: ClientLimits[] = Object.values(pageLimits);
    const limits = [...policies.values(), ...ofPages.map((limits) => ({ limits }))]
      .flatMap(({ limits = [] }) => limits)
      .map((limit) => {
        const counted = 'owner' in limit ? [limit.owner] : [limit.client, limit.form, limit.total];
        return `| \`${limit.name}\` | … | ${limit.per} | ${counted.join(' | ')} |`;
      });

    const rows = table
      .split('\n')
      .map((row) => row.replace(/^(\| \S+ \|).*?(\| (?:minute|hour))/, '$1 … $2'))
      .map((row) => row.replace(/(?: \|){2}$/, '').replace('| | ', '|  | '));
    expect(rows.toSorted()).toEqual([...new Set(limits)].sort());
  });

  it('set in each further terminal what it needs', () => {
    const own = /^(?:node ask|curl -sN)/m; // In the second terminal, which has the variables.
    const servers = ['README.md', 'docs/webhooks.md']
      .flatMap((document) => fencedBlocks(read(document)))
      .filter(({ marker, text }) => marker.startsWith('run until') && !own.test(text));

    for (const { text } of servers) {
      const used = [...text.replace(/<<'EOF'[\s\S]*?\nEOF\n/g, '').matchAll(/\$\{?([A-Z_]+)/g)];
      expect(
        used.filter(([, name]) => !text.includes(`export ${name}=`)).map(([variable]) => variable),
      ).toEqual([]);
    }
    expect(servers).toHaveLength(3);
  });

  it('ask for the Node.js that package.json asks for', () => {
    expect(manifest.engines.node).toMatch(/^>=\d+$/);
    expect(read('README.md')).toContain(`or Node.js ${manifest.engines.node.slice(2)}+ on Linux or Windows`);
  });

  it.each(documents())('%s links to files and headings that are there', (document) => {
    const broken = linksIn(document).filter((link) => !leadsSomewhere(document, link));

    expect(broken).toEqual([]);
  });

  it('are all reached from the README', () => {
    const reached = new Set(['README.md']);
    for (const document of reached) {
      for (const link of linksIn(document)) {
        const target = targetOf(document, link).file;
        if (documents().includes(target)) reached.add(target);
      }
    }

    expect(documents().filter((document) => !reached.has(document))).toEqual([]);
  });
});

/** What a document links to within the repository. */
function linksIn(document: string): string[] {
  return [...withoutCode(read(document)).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(
    ([, link = '']) => link,
  );
}

function leadsSomewhere(document: string, link: string): boolean {
  const { file, anchor } = targetOf(document, link);
  if (!existsSync(join(root, file))) return false;
  return anchor === '' || anchorsOf(file).includes(anchor);
}

function targetOf(document: string, link: string): { file: string; anchor: string } {
  const [path = '', anchor = ''] = link.split('#');
  const file = path === '' ? document : relative(root, join(root, dirname(document), path));
  return { file, anchor };
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(document: string): string[] {
  return [...withoutCode(read(document)).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function withoutCode(markdown: string): string {
  return markdown.replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

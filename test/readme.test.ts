import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { described } from '../src/config.ts';
import { signWebhook } from '../src/domain/delivery/signature.ts';
import { newWebhookSecret } from '../src/domain/secrets.ts';
import { routes } from '../src/gateway/router.ts';
import { temporaryFolder } from './support/spawn.ts';

const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');

describe('the README', () => {
  it('shows a verifier that takes what the service signs, and nothing else', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'verify.mjs');
    writeFileSync(file, /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? '');
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

  it('names every route that is served', () => {
    const missing = routes
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .filter((route) => !readme.includes(route));

    expect(routes.length).toBeGreaterThan(35);
    expect(missing).toEqual([]);
  });

  it('describes every setting as `npm start -- --help` does', () => {
    const [, table = ''] = /\n## Settings\n[\s\S]*?\|---\|---\|---\|\n([\s\S]*?)\n\n/.exec(readme) ?? [];

    expect(table.split('\n')).toEqual(
      described.map(({ variable, standard, about }) =>
        `| \`${variable}\` | ${standard} | ${about} |`.replace('|  |', '| |'),
      ),
    );
  });

  it('asks for the Node.js that package.json asks for', () => {
    expect(manifest.engines.node).toMatch(/^>=\d+$/);
    expect(readme).toContain(`any Node.js ${manifest.engines.node.slice(2)}+`);
  });

  it('links to files that are there', () => {
    const links = [...readme.matchAll(/\]\((?!http)([^)]+)\)/g)].map(([, target = '']) => target);

    expect(links.length).toBeGreaterThan(5);
    expect(links.filter((target) => !existsSync(join(import.meta.dirname, '..', target)))).toEqual([]);
  });
});

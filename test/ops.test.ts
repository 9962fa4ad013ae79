import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { noPromtool, promtool } from './support/promtool.ts';
import { startService, type TestService } from './support/server.ts';

const root = join(import.meta.dirname, '..');
const prometheus = join(root, 'ops/prometheus');
const rules = readFileSync(join(prometheus, 'alerts.yaml'), 'utf8');
const dashboard: unknown = JSON.parse(readFileSync(join(root, 'ops/grafana/dashboard.json'), 'utf8'));
const docs = readFileSync(join(root, 'docs/metrics.md'), 'utf8');

describe('dashboard, alert rules and docs', () => {
  let service: TestService;
  let text: string;
  let exported: Set<string>;

  beforeAll(async () => {
    // The connections of the pool are counted on a server only.
    service = await startService({ engine: 'postgres', env: { METRICS_PORT: '0' } });
    await service.get('/health');
    text = await (await fetch(service.metricsUrl)).text();
    exported = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name));
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('name metrics that are exported', () => {
    const expressions = [...rules.matchAll(/expr: (.*(?:\n {10}.*)*)/g)].map(([, text = '']) => text);
    const named = {
      rules: namesIn(expressions.join('\n')),
      dashboard: namesIn(textsAt(dashboard, 'expr').join('\n')),
      docs: namesIn(docs).filter((name) => !name.endsWith('_')),
    };

    expect(expressions.length).toBeGreaterThan(15);
    expect(named.dashboard.length).toBeGreaterThan(30);
    for (const names of Object.values(named)) {
      expect(names.filter((name) => !exported.has(name) && !exported.has(withoutSuffix(name)))).toEqual([]);
    }
  });

  it('leave no metric of the service out of the docs', () => {
    const own = [...exported].filter((name) => name.startsWith('forms_'));

    expect(own.length).toBeGreaterThan(30);
    expect(own.filter((name) => !docs.includes(`\`${name}\``))).toEqual([]);
  });

  it('say of each alert what to do', () => {
    const alerts = rules.split('- alert: ').slice(1);
    const parts = (alert: string) => ({
      name: alert.split('\n', 1).join(),
      action: /action: '(.{20,})'/.exec(alert)?.[1]?.replaceAll("''", "'"),
    });

    const silent = alerts
      .map(parts)
      .filter(
        ({ name, action }) =>
          action === undefined || !docs.includes(`| \`${name}\` |`) || !docs.includes(action),
      );
    expect(silent).toEqual([]);
  });

  it.skipIf(noPromtool)('pass promtool, and alerts fire as their tests expect', () => {
    const runs = [
      promtool(['check', 'config', 'prometheus.yaml'], prometheus),
      promtool(['check', 'rules', 'alerts.yaml'], prometheus),
      promtool(['test', 'rules', 'alerts.test.yaml'], prometheus),
    ];
    const metrics = promtool(['check', 'metrics'], prometheus, text);
    // What prom-client names for itself.
    const own = metrics.output.split('\n').filter((line) => line.startsWith('forms_'));

    expect(runs.filter(({ ok }) => !ok)).toEqual([]);
    expect(own).toEqual([]);
    expect(metrics.output).not.toMatch(/error/i);
  });
});

function namesIn(expressions: string): string[] {
  return [...new Set(expressions.match(/\b(?:forms|nodejs|process)_[a-z0-9_]+/g))];
}

/** Of a histogram, whose series have one of these. */
function withoutSuffix(name: string): string {
  return name.replace(/_(bucket|count|sum)$/, '');
}

/** All texts under a key, at any depth. */
function textsAt(value: unknown, key: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === key && typeof inner === 'string' ? [inner] : textsAt(inner, key),
  );
}

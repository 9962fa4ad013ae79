import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startService, type TestService } from './support/server.ts';

/** Of Debian's package `prometheus`. */
const promtoolPath = process.env.PROMTOOL_PATH ?? '/usr/bin/promtool';

/** Without it, what it checks is left out. In CI that fails instead. */
const noPromtool = !existsSync(promtoolPath) && !process.env.CI;

const root = join(import.meta.dirname, '..');
const prometheus = join(root, 'ops/prometheus');
const rules = readFileSync(join(prometheus, 'alerts.yaml'), 'utf8');
const dashboard: unknown = JSON.parse(readFileSync(join(root, 'ops/grafana/dashboard.json'), 'utf8'));
const docs = readFileSync(join(root, 'docs/metrics.md'), 'utf8');

describe('dashboard, alert rules and docs', () => {
  let service: TestService;
  let text: string;
  let exported: Set<string>;
  /** The labels of each metric, which those without a value don't show. */
  const labels = new Map<string, string[]>();

  beforeAll(async () => {
    const registering = vi.spyOn(Registry.prototype, 'registerMetric');
    // The connections of the pool are counted on a server only.
    service = await startService({ engine: 'postgres', env: { METRICS_PORT: '0' } });
    await service.get('/health');
    for (const [metric] of registering.mock.calls) {
      const { name, labelNames } = metric as unknown as { name: string; labelNames: string[] };
      labels.set(name, labelNames);
    }
    registering.mockRestore();
    text = await (await fetch(service.metricsUrl)).text();
    exported = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name));
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('name metrics that are exported', () => {
    const expressions = expressionsOf(rules);
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

  const labelsOf = (metric: string) => [
    ...ofScrape,
    ...(metric.endsWith('_bucket') ? ['le'] : []),
    ...(labels.get(metric) ?? labels.get(withoutSuffix(metric)) ?? []),
  ];

  it('name labels that these metrics have', () => {
    const queries = [...expressionsOf(rules), ...textsAt(dashboard, 'expr')];
    const unknown = queries.flatMap((query) => {
      const ofQuery = namesIn([query]).flatMap(labelsOf);
      const selected = [...query.matchAll(/\b(\w+)\{([^}]*)\}/g)].flatMap(([, metric = '', selector = '']) =>
        [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => [metric, label] as const),
      );
      const grouped = [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
      return [
        ...selected.filter(
          ([metric, label]) => !(metric === 'up' ? ofScrape : labelsOf(metric)).includes(label),
        ),
        ...grouped.filter((label) => !ofQuery.includes(label)),
      ];
    });

    expect(unknown).toEqual([]);
    expect(labelsOf('forms_refusals_total')).toContain('reason');
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

    expect(runs.filter(({ ok }) => !ok)).toEqual([]);
    expect(metrics).toEqual({ ok: true, output: '' });
  });
});

/** What Prometheus adds. */
const ofScrape = ['job', 'instance'];

function expressionsOf(file: string): string[] {
  return [...file.matchAll(/expr: (.*(?:\n {10}.*)*)/g)].map(([, text = '']) => text);
}

function namesIn(expressions: string | string[]): string[] {
  return [...new Set(String(expressions).match(/\b(?:forms|nodejs|process)_[a-z0-9_]+/g))];
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

/** Runs promtool in a folder, with a text on its standard input. */
function promtool(args: string[], cwd: string, input = ''): { ok: boolean; output: string } {
  const { status, stdout, stderr, error } = spawnSync(promtoolPath, args, { cwd, input, encoding: 'utf8' });
  return { ok: status === 0, output: error?.message ?? `${stdout}${stderr}` };
}

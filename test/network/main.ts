import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hosts } from './hosts.ts';

/**
 * What needs addresses of its own: `npm run test:network` runs the tests of this folder in a network of their own, which
 * has no other way out than `mirror.pl`. Where none can be made it says why, and with CI=true fails.
 */
const ways = ['--net --mount', '--map-root-user --net --mount'];
const tries = ways.map((way) => ({
  way,
  ...spawnSync('unshare', [...way.split(' '), 'true'], { encoding: 'utf8' }),
}));
const found = tries.find(({ status }) => status === 0);
const missing = ['ip', 'perl'].filter((tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0);
const reason =
  missing.length > 0
    ? `${missing.join(' and ')} missing (apt-get install iproute2 perl-base)`
    : found === undefined && (tries[0]?.stderr?.trim() || 'unshare missing (apt-get install util-linux)');

if (reason) {
  process.stderr.write(
    `SKIPPED test/network, all of it (hosts of which one address goes nowhere, NAT64): ${reason}\n`,
  );
  process.exitCode = process.env.CI === 'true' ? 1 : 0;
} else process.exitCode = await runWithin(found?.way ?? '');

async function runWithin(way: string): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'forms-network-'));
  const vitest = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs');
  const inside = `set -e
    echo "$HOSTS" >"$FOLDER/hosts"
    # No name server answers.
    echo 'nameserver 127.0.0.1' >"$FOLDER/resolv.conf"
    for file in hosts resolv.conf; do mount --bind "$FOLDER/$file" "/etc/$file"; done
    ip link set lo up
    exec "$@"`;
  const command = [process.execPath, vitest, 'run', '--mode', 'network', ...process.argv.slice(2)];
  const child = spawn('unshare', [...way.split(' '), 'sh', '-c', inside, 'sh', ...command], {
    env: {
      ...process.env,
      HOSTS: Object.entries({ localhost: ['127.0.0.1', '::1'], ...hosts })
        .flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}`))
        .join('\n'),
      FOLDER: folder,
      OUTER_NETWORK: readlinkSync('/proc/self/ns/net'),
    },
    stdio: 'inherit',
  });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => child.kill(signal));
  const [code] = await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true });
  return typeof code === 'number' ? code : 1;
}

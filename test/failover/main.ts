import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { kills: { type: 'string', default: '3' } } });
if (!/^[1-9]\d{0,3}$/.test(values.kills)) {
  process.stderr.write('npm run test:failover -- --kills N    crashes the primary N times (3)\n');
  process.exit(1);
}
const vitest = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs');
const child = spawn(process.execPath, [vitest, 'run', '--mode', 'failover'], {
  env: { ...process.env, TEST_KILLS: values.kills },
  stdio: 'inherit',
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => child.kill(signal));
const [code] = await once(child, 'exit');
process.exitCode = typeof code === 'number' ? code : 1;

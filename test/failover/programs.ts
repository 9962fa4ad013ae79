import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { endWithRun } from '../support/run-processes.ts';

/** Starts a program of the system, not as root, with its output in a file, until what is `opened` is closed. */
export function startProgram(
  opened: AsyncDisposableStack,
  log: string,
  program: string,
  args: string[],
): ChildProcess {
  const child = spawn('/bin/sh', ['-c', 'exec "$@" >>"$0" 2>&1', log, program, ...args], {
    ...(root && { uid: NOBODY, gid: NOBODY }),
    cwd: '/',
    env: { PATH: SYSTEM_PATH, HOME: '/nonexistent' },
    stdio: 'ignore',
  });
  endWithRun(child.pid);
  opened.defer(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return child;
}

/** PostgreSQL refuses to run as root. */
export const root = process.getuid?.() === 0;
export const NOBODY = 65534;

export const HAPROXY = '/usr/sbin/haproxy';
export const NGINX = '/usr/sbin/nginx';
export const CADDY = '/usr/bin/caddy';
export const PGBOUNCER = '/usr/sbin/pgbouncer';

/** Debian's Patroni wants the Python of the system. */
const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin';

import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { Agent } from 'undici';
import type { Process } from '../support/processes.ts';
import { temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { CADDY, HAPROXY, NGINX, NOBODY, root, startProgram } from './programs.ts';

/** The proxies whose configuration is in `ops/proxy`. */
export const proxyNames = ['haproxy', 'nginx', 'caddy'] as const;

/** The configuration of a proxy, as it is published. */
export function configOf(name: ProxyName): string {
  return readFileSync(join(import.meta.dirname, '../../ops/proxy', files[name]), 'utf8');
}

/**
 * Starts a proxy with its published configuration before running instances; only ports, addresses and the places of
 * files are others, and what `edit` changes.
 *
 * @throws with the package to install if it is not there.
 */
export async function startProxy(
  owned: AsyncDisposableStack,
  name: ProxyName,
  { port, instances, edit = (config) => config }: ProxyOptions,
): Promise<StartedProxy> {
  const program = programs[name];
  if (!existsSync(program.path)) throw new Error(`This needs a package: apt-get install ${program.package}`);
  const folder = owned.use(temporaryFolder()).path;
  const tls = join(import.meta.dirname, '../support/tls');
  const certificate = join(folder, 'forms.pem');
  copyFileSync(join(tls, 'first.crt'), join(folder, 'forms.crt'));
  copyFileSync(join(tls, 'first.key'), join(folder, 'forms.key'));
  writeFileSync(
    certificate,
    readFileSync(join(tls, 'first.crt'), 'utf8') + readFileSync(join(tls, 'first.key'), 'utf8'),
  );
  mkdirSync(join(folder, 'run'));
  chmodSync(folder, 0o755);
  if (root) for (const path of ['', 'forms.key', 'run']) chownSync(join(folder, path), NOBODY, NOBODY);

  const [one, two = one] = instances.map(({ url, grpcUrl }) => [new URL(url).host, new URL(grpcUrl).host]);
  let config = configOf(name)
    .replaceAll('/etc/haproxy', folder)
    .replaceAll('/etc/ssl', folder)
    .replaceAll('127.0.0.1:8080', one?.[0] ?? '')
    .replaceAll('127.0.0.1:8081', one?.[1] ?? '')
    .replaceAll('forms.example.com', 'localhost')
    .replace(/(?<=bind :|listen |localhost:)443\b/, String(port));
  for (const [server, [http = '', grpc = ''] = []] of [
    ['one', one],
    ['two', two],
  ] as const) {
    config = config
      .replace(new RegExp(`server ${server} 10[.\\d]+:8080`), `server ${server} ${http}`)
      .replace(new RegExp(`server ${server} 10[.\\d]+:8081`), `server ${server} ${grpc}`);
  }
  const file = join(folder, files[name]);
  writeFileSync(file, program.around(edit(config), folder));
  const log = join(folder, 'run', 'log');
  startProgram(owned, log, program.path, program.args(file));
  const output = () => (existsSync(log) ? readFileSync(log, 'utf8') : '');
  await until(() => accepts(port), 15_000, output);

  const url = `https://localhost:${port}`;
  const ca = readFileSync(join(tls, 'first.crt'), 'utf8');
  return {
    url,
    agentFrom: (localAddress) =>
      owned.adopt(new Agent({ localAddress, connect: { ca } }), (agent) => agent.destroy()),
    grpc: createGrpcTransport({ baseUrl: url, nodeOptions: { ca } }),
    output,
  };
}

const files = { haproxy: 'haproxy.cfg', nginx: 'nginx.conf', caddy: 'Caddyfile' };

const programs: Record<ProxyName, Program> = {
  haproxy: {
    path: HAPROXY,
    package: 'haproxy',
    args: (file) => ['-db', '-f', file],
    around: (config) => config,
  },
  nginx: {
    path: NGINX,
    package: 'nginx-light',
    args: (file) => ['-c', file],
    // What Debian's nginx.conf has around it, with places that any user can write to.
    around: (config, folder) => `
daemon off;
pid ${folder}/run/pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `  ${kind}_temp_path ${folder}/run/${kind};`).join('\n')}
${config}
}
`,
  },
  caddy: {
    path: CADDY,
    package: 'caddy',
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    around: (config, folder) =>
      `{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/run\n}\n${config}`,
  },
};

/** Whether something listens on a port of loopback. */
export async function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, '127.0.0.1');
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  return promise.finally(() => socket.destroy());
}

export type ProxyName = (typeof proxyNames)[number];

type Program = {
  path: string;
  package: string;
  args: (file: string) => string[];
  /** The whole configuration, with this one in it. */
  around: (config: string, folder: string) => string;
};

type ProxyOptions = {
  port: number;
  instances: readonly Pick<Process, 'url' | 'grpcUrl'>[];
  edit?: (config: string) => string;
};

export type StartedProxy = {
  url: string;
  /** What calls it from an address of loopback. */
  agentFrom: (localAddress: string) => Agent;
  grpc: ReturnType<typeof createGrpcTransport>;
  /** What it has written. */
  output: () => string;
};

import type { ChildProcess } from 'node:child_process';
import { chmodSync, chownSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, temporaryFolder } from '../support/spawn.ts';
import { until } from '../support/until.ts';
import { HAPROXY, NOBODY, root, startProgram } from './programs.ts';

/**
 * Starts three PostgreSQL servers that Patroni keeps as one primary and two standbys, with three members of
 * etcd to agree by, and HAProxy, which leads to whoever is the primary; all from Debian's packages, on
 * 127.0.0.1. With `synchronous` a commit is answered once a standby has it, and never without one.
 *
 * @throws with the packages to install if they are not there.
 */
export async function startCluster({ synchronous }: { synchronous: boolean }): Promise<Cluster> {
  const bin = postgresPrograms();
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder()).path;
  chmodSync(folder, 0o755);
  if (root) chownSync(folder, NOBODY, NOBODY);

  const password = join(folder, 'database_password');
  writeFileSync(password, PASSWORD);
  const roles = readFileSync(join(import.meta.dirname, '../../ops/container/roles.sql'), 'utf8');
  writeFileSync(join(folder, 'roles.sql'), roles.replace('/run/secrets/database_password', password));
  const members = await startEtcd(opened, folder);
  const nodes = await Promise.all(NAMES.map((name) => nodeIn(folder, name)));
  const logs = () => [...members, ...nodes].map(endOfLog).join('\n');
  for (const node of nodes) {
    writeFileSync(node.config, JSON.stringify(patroniConfig(bin, node, { members, synchronous })));
  }
  const [first, ...others] = nodes;
  if (first !== undefined) startPatroni(opened, first);
  await until(async () => (await primaryOf(nodes)) === first, START_MS, logs);
  for (const node of others) startPatroni(opened, node);
  const whole = () => until(() => isWhole(nodes, synchronous), START_MS, logs);
  await whole();
  const port = await startHaproxy(opened, folder, nodes);

  const owned = opened.move();
  return {
    databaseUrl: `postgres://forms:${PASSWORD}@127.0.0.1:${port}/forms`,
    async crashPrimary() {
      await whole();
      const primary = await primaryOf(nodes);
      if (primary === undefined) throw new Error('There is no primary to crash.');
      const receivers = nodes.flatMap(walReceiverOf);
      for (const pid of receivers) process.kill(pid, 'SIGSTOP');
      await sleep(CUT_OFF_MS);
      for (const pid of processesOf(primary)) kill(pid, 'SIGKILL');
      // What the primary has sent meanwhile they never read: they end first.
      for (const signal of ['SIGTERM', 'SIGCONT'] as const) for (const pid of receivers) kill(pid, signal);
      await until(
        async () => {
          const next = await primaryOf(nodes);
          return next !== undefined && next !== primary;
        },
        START_MS,
        logs,
      );
    },
    async cutStandbysOff(ms) {
      await whole();
      const receivers = nodes.flatMap(walReceiverOf);
      for (const pid of receivers) process.kill(pid, 'SIGSTOP');
      await sleep(ms);
      for (const pid of receivers) kill(pid, 'SIGCONT');
    },
    async crashEtcdLeader() {
      const leader = await leaderOf(members);
      if (leader?.child === undefined) throw new Error('There is no leader to crash.');
      leader.child.kill('SIGKILL');
      await until(async () => (await leaderOf(members)) !== undefined, START_MS, logs);
      startMember(owned, leader, members);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const NAMES = ['one', 'two', 'three'];
const PASSWORD = 'failover-test';
/** How long the standbys hear nothing of the primary before it crashes. */
const CUT_OFF_MS = 1_000;
const START_MS = 90_000;

/** The folder of the programs of PostgreSQL's newest version. */
export function postgresPrograms(): string {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  const folders = versions.map((version) => `/usr/lib/postgresql/${version}/bin`);
  const bin = folders.findLast((path) => existsSync(join(path, 'initdb')));
  if (bin === undefined || ![PATRONI, ETCD, HAPROXY].every((program) => existsSync(program))) {
    throw new Error('This needs packages: apt-get install postgresql patroni etcd-server haproxy');
  }
  return bin;
}

const PATRONI = '/usr/bin/patroni';
const ETCD = '/usr/bin/etcd';

async function startEtcd(opened: AsyncDisposableStack, folder: string): Promise<Member[]> {
  const members = await Promise.all(
    NAMES.map(async (name): Promise<Member> => {
      const place = join(folder, `etcd-${name}`);
      return {
        name,
        clientPort: await freePort(),
        peerPort: await freePort(),
        folder: place,
        log: `${place}.log`,
      };
    }),
  );
  for (const member of members) startMember(opened, member, members);
  const hasLeader = async () => (await leaderOf(members)) !== undefined;
  await until(hasLeader, START_MS, () => members.map(endOfLog).join('\n'));
  return members;
}

function startMember(opened: AsyncDisposableStack, member: Member, members: Member[]): void {
  const { name, folder, log } = member;
  const [client, peer] = [urlOf(member.clientPort), urlOf(member.peerPort)];
  member.child = startProgram(opened, log, ETCD, [
    `--name=${name}`,
    `--data-dir=${folder}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=${members.map((each) => `${each.name}=${urlOf(each.peerPort)}`).join()}`,
    '--heartbeat-interval=200',
    '--election-timeout=2000',
  ]);
}

/** The member of etcd that leads the others. */
async function leaderOf(members: Member[]): Promise<Member | undefined> {
  for (const member of members) {
    const status = await jsonOf(`${urlOf(member.clientPort)}/v3/maintenance/status`, {
      method: 'POST',
      body: '{}',
    });
    if (status?.leader !== undefined && status.leader === status.header?.member_id) return member;
  }
  return undefined;
}

async function nodeIn(folder: string, name: string): Promise<Node> {
  const place = join(folder, name);
  const [port, restPort] = [await freePort(), await freePort()];
  return { name, port, restPort, data: `${place}-data`, config: `${place}.yaml`, log: `${place}.log` };
}

/** JSON is YAML, too. */
function patroniConfig(
  bin: string,
  node: Node,
  { members, synchronous }: { members: Member[]; synchronous: boolean },
) {
  const hosts = members.map(({ clientPort }) => `127.0.0.1:${clientPort}`);
  const login = (username: string) => ({ username, password: PASSWORD });
  return {
    scope: 'forms',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.restPort}`, connect_address: `127.0.0.1:${node.restPort}` },
    etcd3: { hosts },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 1,
        retry_timeout: 5,
        // A primary that crashed is not waited for: a standby takes over.
        primary_start_timeout: 0,
        maximum_lag_on_failover: 1_073_741_824,
        synchronous_mode: synchronous,
        synchronous_mode_strict: synchronous,
        postgresql: {
          use_pg_rewind: true,
          parameters: {
            wal_log_hints: 'on',
            shared_buffers: '64MB',
            max_connections: 100,
            wal_keep_size: '512MB',
          },
        },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
      post_bootstrap: `psql --no-psqlrc --set ON_ERROR_STOP=1 --file ${join(node.config, '../roles.sql')}`,
    },
    postgresql: {
      listen: `127.0.0.1:${node.port}`,
      connect_address: `127.0.0.1:${node.port}`,
      data_dir: node.data,
      bin_dir: bin,
      pgpass: `${node.data}.pgpass`,
      authentication: { superuser: login('postgres'), replication: login('replicator') },
      pg_hba: [
        'host all all 127.0.0.1/32 scram-sha-256',
        'host replication replicator 127.0.0.1/32 scram-sha-256',
      ],
      parameters: { unix_socket_directories: '' },
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
  };
}

function startPatroni(opened: AsyncDisposableStack, node: Node): void {
  const child = startProgram(opened, node.log, PATRONI, [node.config]);
  opened.defer(() => {
    // Else it would start PostgreSQL again before it is killed itself.
    child.kill('SIGSTOP');
    for (const pid of processesOf(node)) kill(pid, 'SIGKILL');
  });
}

async function primaryOf(nodes: Node[]): Promise<Node | undefined> {
  for (const node of nodes) if (await answersOk(node, 'primary')) return node;
  return undefined;
}

/**
 * Whether both standbys follow the primary, and one of them, if it is to be so, has each commit before it is answered.
 */
async function isWhole(nodes: Node[], synchronous: boolean): Promise<boolean> {
  const primary = await primaryOf(nodes);
  const replication = primary && (await jsonOf(`${urlOf(primary.restPort)}/patroni`))?.replication;
  const streaming = replication?.filter(({ state }) => state === 'streaming');
  if (streaming?.length !== nodes.length - 1) return false;
  if (!synchronous) return true;
  // PostgreSQL calls a standby synchronous before Patroni has noted that it may take over.
  for (const node of nodes) if (await answersOk(node, 'synchronous')) return true;
  return false;
}

async function answersOk(node: Node, path: string): Promise<boolean> {
  const response = await fetch(`${urlOf(node.restPort)}/${path}`).catch(() => undefined);
  await response?.arrayBuffer();
  return response?.ok === true;
}

async function startHaproxy(opened: AsyncDisposableStack, folder: string, nodes: Node[]): Promise<number> {
  const port = await freePort();
  const config = join(folder, 'haproxy.cfg');
  const servers = nodes.map(
    ({ name, port: to, restPort }) => `  server ${name} 127.0.0.1:${to} check port ${restPort}`,
  );
  writeFileSync(
    config,
    `defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 300ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`,
  );
  startProgram(opened, join(folder, 'haproxy.log'), HAPROXY, ['-db', '-f', config]);
  return port;
}

/** The processes of a node's PostgreSQL, the first of them the one that starts the others. */
function processesOf(node: Node): number[] {
  const file = join(node.data, 'postmaster.pid');
  const first = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : 0;
  if (!(first > 0) || !existsSync(`/proc/${first}`)) return [];
  const children = readFileSync(`/proc/${first}/task/${first}/children`, 'utf8').split(' ').filter(Boolean);
  return [first, ...children.map(Number)];
}

function walReceiverOf(node: Node): number[] {
  return processesOf(node).filter((pid) => readIfThere(`/proc/${pid}/cmdline`).includes('walreceiver'));
}

function kill(pid: number, signal: NodeJS.Signals): void {
  // It may have ended by itself.
  if (existsSync(`/proc/${pid}`)) process.kill(pid, signal);
}

function endOfLog({ name, log }: { name: string; log: string }): string {
  return `${name}: ${readIfThere(log).slice(-2_000)}`;
}

function readIfThere(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

async function jsonOf(url: string, init?: RequestInit): Promise<Status | undefined> {
  const response = await fetch(url, init).catch(() => undefined);
  return response?.ok === true ? ((await response.json()) as Status) : undefined;
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}`;
}

export type Cluster = AsyncDisposable & {
  /** Of whoever is the primary. */
  databaseUrl: string;
  /**
   * Kills the primary after the standbys have heard nothing of it for a second, as behind a cut network, and waits for
   * the next one. All standbys have to be there first.
   */
  crashPrimary(): Promise<void>;
  /** Keeps the standbys from reading what the primary sends. */
  cutStandbysOff(ms: number): Promise<void>;
  /** Kills the leader of etcd, waits for the next one and starts it again. */
  crashEtcdLeader(): Promise<void>;
};

type Member = {
  name: string;
  clientPort: number;
  peerPort: number;
  folder: string;
  log: string;
  child?: ChildProcess;
};
type Node = { name: string; port: number; restPort: number; data: string; config: string; log: string };
/** What etcd and Patroni say of themselves, as far as it matters here. */
type Status = {
  leader?: string;
  header?: { member_id: string };
  replication?: { state: string }[];
};

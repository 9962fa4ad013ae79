import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/**
 * Connects this network to one where every address is this machine, `delayMs` away in each direction, but for `lost`:
 * what is sent there arrives nowhere, and nobody says so.
 */
export async function startInternet({ delayMs = 0, lost = [] }: { delayMs?: number; lost?: string[] } = {}) {
  const { OUTER_NETWORK } = process.env;
  if (OUTER_NETWORK === undefined || OUTER_NETWORK === readlinkSync('/proc/self/ns/net'))
    throw new Error('These tests change the network, so they need one of their own: npm run test:network');
  // Neither end asks who has an address.
  const index = sh(`
    ip link add near type veth peer name far
    echo 1 >/proc/sys/net/ipv6/conf/far/disable_ipv6
    ip link set near arp off
    ip link set far up
    ip link set near up
    ip address add 192.0.2.1/24 dev near
    ip address add 2001:db8::1/64 dev near nodad
    ip route add default dev near
    ip -6 route add default dev near
    ip -oneline link show far | cut -d : -f 1`);
  const mirror = join(import.meta.dirname, 'mirror.pl');
  const child = spawn('perl', [mirror, index, String(delayMs), ...lost], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('The mirror ended'))),
  ]);
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
      sh('ip link delete near');
    },
  };
}

/** How many connections of this network are being made, and have had no answer. */
export function countUnanswered(): number {
  const rows = ['tcp', 'tcp6'].flatMap((name) =>
    readFileSync(`/proc/self/net/${name}`, 'utf8').split('\n').slice(1),
  );
  return rows.filter((row) => row.trim().split(/\s+/)[3] === SYN_SENT).length;
}

/** In `/proc/net/tcp`. */
const SYN_SENT = '02';

/** Starts a receiver of webhooks on every address, with TLS, which notes at which address each request has come. */
export async function startTlsReceiver() {
  const requests: string[] = [];
  let connections = 0;
  const [key, cert] = ['key', 'crt'].map((type) =>
    readFileSync(join(import.meta.dirname, `../support/tls/first.${type}`)),
  );
  const server = createServer({ key, cert }, (request, response) => {
    // The mirror has swapped them.
    requests.push(String(request.socket.remoteAddress).replace('::ffff:', ''));
    request.resume().on('end', () => response.writeHead(204).end());
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '::');
  await once(server, 'listening');
  return {
    url: `https://receiver.test:${(server.address() as AddressInfo).port}/`,
    requests,
    /** How many connections have arrived, with or without a request. */
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function sh(script: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', script], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { describe, expect, it } from 'vitest';
import { raceAddresses } from '../../src/delivery/address-race.ts';
import { connectorTo, resolveWith } from '../../src/delivery/webhook/connector.ts';
import { connectionCause } from '../../src/domain/errors/connection-causes.ts';
import { startReceiver } from '../support/receiver.ts';

const hostileHosts = `
  127.0.0.1 127.1 127.0.1 127.255.255.254 0 0.0.0.0 0x7f.1 0x7f000001 0177.0.0.1 2130706433
  017700000001 127.0.0.1. 127。0。0。1 １２７.0.0.1 0x7f.0x0.0x0.0x1 00000177.1 [::1] [::] [0:0:0:0:0:0:0:1]
  [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]
  [64:ff9b:1::127.0.0.1] [2002:7f00:1::] [::7f00:1] [2001:0:7f00:1::] [fe80::1] [fec0::1] [fc00::1]
  [fd00::1] [ff02::1] [100::1] 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 198.18.0.1
  224.0.0.1 [::ffff:10.0.0.1] [::ffff:169.254.169.254] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::]
  [2001:db8::1] 255.255.255.255 240.0.0.1 192.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1
  127.0.0.2 127.1.1.1 0x7f.0.1 0x7F.0x0.0x0.0x1 0177.1 0177.0.0.01 2130706434 017700000002 0.0.0.1 0.1.2.3
  10.255.255.255 0xa.1 012.1 167772161 172.31.255.255 172.16.1 0xac100001 192.168.1.1 192.168.257
  0xc0a80101 3232235777 169.254.1.1 0xa9fea9fe 2852039166 0251.0376.0251.0376 100.127.255.255
  198.19.255.255 239.255.255.255 255.255.255.254 240.1.1.1 [::ffff:192.168.0.1] [::ffff:c0a8:1]
  [::ffff:a00:1] [::ffff:ac10:1] [::ffff:100.64.0.1] [0:0:0:0:0:ffff:127.0.0.1]
  [0000:0000:0000:0000:0000:ffff:7f00:0001] [64:ff9b::a00:1] [64:ff9b::c0a8:1] [64:ff9b::10.0.0.1]
  [64:ff9b:1::a00:1] [2002:a00:1::] [2002:c0a8:1::] [2002:ac10:1::1] [2001::1] [2001:2::1] [3fff::1]
  [febf::1] [fd00:ec2::254] [ff05::1] [::2] [5f00::1]
`
  .trim()
  .split(/\s+/);

describe('the connector', () => {
  it('refuses every spelling of an address that is not public, before a packet leaves', async () => {
    await using canary = await startReceiver();
    await using dns = await startDnsServer(() => ['127.0.0.1']);
    const agent = new Agent({
      connect: connectorTo({ resolve: resolveWith(dns.resolver), timeoutMs: 20_000 }),
    });

    for (const host of hostileHosts) {
      const outcome = await reach(agent, `http://${host}:${canary.port}/`);
      expect([host, outcome]).toEqual([host, 'The host has no public address.']);
    }

    expect(hostileHosts.length).toBeGreaterThanOrEqual(100);
    expect(canary.connections()).toBe(0);
    await agent.destroy();
  });

  it('fails as the receiver does where only the way to another of its addresses is missing', async () => {
    const failing = async (...codes: string[]) => {
      const left = [...codes];
      const addresses = codes.map((_, n) => (n % 2 === 0 ? `2001:db8::${n + 1}` : `192.0.2.${n}`));
      const attempt = () => Promise.reject(Object.assign(new Error(), { code: left.shift() }));
      return raceAddresses(addresses, attempt).catch(({ code }) => code);
    };

    expect(await failing('ENETUNREACH', 'ECONNREFUSED')).toBe('ECONNREFUSED');
    expect(await failing('ECONNREFUSED', 'ENETUNREACH')).toBe('ECONNREFUSED');
    expect(await failing('ECONNRESET', 'ECONNREFUSED')).toBe('ECONNRESET');
    expect(await failing('ENETUNREACH', 'EMFILE')).toBe('ENETUNREACH');
  });

  it('refuses names that resolve to nothing else', async () => {
    await using canary = await startReceiver();
    const answers: Record<string, string[]> = {
      'loopback.test': ['127.0.0.1'],
      'private.test': ['10.0.0.1', '127.0.0.1'],
      'metadata.test': ['169.254.169.254'],
    };
    await using dns = await startDnsServer((name) => answers[name] ?? []);
    const agent = new Agent({
      connect: connectorTo({ resolve: resolveWith(dns.resolver), timeoutMs: 20_000 }),
    });

    for (const host of Object.keys(answers)) {
      expect(await reach(agent, `http://${host}:${canary.port}/`)).toBe('The host has no public address.');
    }
    expect(await reach(agent, `http://nothing.test:${canary.port}/`)).toBe('The host name is not known.');
    dns.fail();
    expect(await reach(agent, `http://nothing.test:${canary.port}/`)).toBe(
      'The name servers of the host fail.',
    );

    expect(canary.connections()).toBe(0);
    await agent.destroy();
  });

  it('connects to the address that it checked, whatever the name server answers next', async () => {
    await using canary = await startReceiver();
    await using dns = await startDnsServer((_, before) => (before === 0 ? ['192.88.98.1'] : ['127.0.0.1']));
    // The first may wait for a connection until its time is up; what the name server answers is to come sooner.
    const agentWithin = (timeoutMs: number) =>
      new Agent({ connect: connectorTo({ resolve: resolveWith(dns.resolver), timeoutMs }) });
    const [first, second] = [agentWithin(2_000), agentWithin(20_000)];

    expect(await reach(first, `http://rebind.test:${canary.port}/`)).not.toBe('reached');
    expect(dns.timesAsked('rebind.test')).toBe(1);
    expect(await reach(second, `http://rebind.test:${canary.port}/`)).toBe('The host has no public address.');
    expect(canary.connections()).toBe(0);
    await Promise.all([first.destroy(), second.destroy()]);
  });

  it('leaves out what is not public, and tries no more than a few of hundreds', async () => {
    const tried: string[] = [];
    const openConnector = (): ReturnType<typeof buildConnector> => (target, callback) => {
      tried.push(target.hostname);
      callback(Object.assign(new Error(), { code: 'ECONNREFUSED' }), null);
    };
    const resolve = async (host: string) =>
      host === 'mixed.test'
        ? ['127.0.0.1', PUBLIC_IPV4, '64:ff9b::7f00:1', '64:ff9b::5db8:d822']
        : Array.from({ length: 200 }, (_, n) => `93.184.216.${n}`);
    const agent = new Agent({ connect: connectorTo({ resolve, timeoutMs: 20_000, openConnector }) });

    expect(await reach(agent, 'http://mixed.test/')).toBe('The connection was refused.');
    expect(tried).toEqual([PUBLIC_IPV4, '64:ff9b::5db8:d822']);
    await reach(agent, 'http://many.test/');
    expect(tried).toHaveLength(6);
    await agent.destroy();
  });

  it.each([
    ['https://dotted.test./', 'dotted.test'],
    ['https://plain.test/', 'plain.test'],
  ])('names the host of %s without the dot of the root when it asks for a certificate', async (url, name) => {
    const named: unknown[] = [];
    const server = createTlsServer({
      SNICallback(servername, callback) {
        named.push(servername);
        callback(new Error('There is no certificate'));
      },
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const agent = agentFor([PUBLIC_IPV4], { [PUBLIC_IPV4]: port });

    await reach(agent, url);

    expect(named).toEqual([name]);
    await agent.destroy();
    server.close();
    await once(server, 'close');
  });

  it.each([
    ['the first', [PUBLIC_IPV6, PUBLIC_IPV4]],
    ['the second', [PUBLIC_IPV4, PUBLIC_IPV6]],
  ])('reaches a host of which %s address goes nowhere', async (_, addresses) => {
    await using receiver = await startReceiver();
    await using hole = await startBlackHole();
    const ports = { [PUBLIC_IPV4]: receiver.port, [PUBLIC_IPV6]: hole.port };
    const agent = agentFor(addresses, ports);

    expect(await reach(agent, 'http://both.test/')).toBe('reached');
    await agent.destroy();
  });

  it('gives no address up before its time, though another has failed at once', async () => {
    await using hole = await startBlackHole();
    const failed = Promise.withResolvers<void>();
    const agent = agentFor(
      [PUBLIC_IPV4, PUBLIC_IPV6],
      { [PUBLIC_IPV4]: hole.port, [PUBLIC_IPV6]: 1 },
      failed.resolve,
    );

    const reached = reach(agent, 'http://slow.test/');
    await failed.promise;
    hole.open();

    expect(await reached).toBe('reached');
    await agent.destroy();
  });

  it('asks about each address before it is tried, whatever the name', async () => {
    await using receiver = await startReceiver();
    const asked: string[] = [];
    const admit = async (address: string) => {
      asked.push(address);
      if (asked.length > 1) throw Object.assign(new Error(), { code: 'ETIMEDOUT' });
    };
    const options = { resolve: async () => [], allowPrivate: true, timeoutMs: 20_000, admit };
    const agent = new Agent({ connect: connectorTo(options) });

    const outcomes: string[] = [];
    for (const host of ['127.0.0.1', 'localhost']) {
      outcomes.push(await reach(agent, `http://${host}:${receiver.port}/`));
    }

    const [first, ...others] = asked;
    expect(first).toBe('127.0.0.1');
    expect(others.filter((address) => address !== '127.0.0.1' && address !== '::1')).toEqual([]);
    expect(others.length).toBeGreaterThan(0);
    expect(outcomes).toEqual(['reached', 'No connection in time.']);
    await agent.destroy();
  });

  it('refuses what is not public before it asks about it', async () => {
    await using dns = await startDnsServer(() => ['127.0.0.1']);
    const asked: string[] = [];
    const resolve = resolveWith(dns.resolver);
    const admit = async (address: string) => void asked.push(address);
    const options = { resolve, allowPrivate: false, timeoutMs: 20_000, admit };
    const agent = new Agent({ connect: connectorTo(options) });

    for (const host of ['127.0.0.1', '[::1]', 'loopback.test']) {
      expect(await reach(agent, `http://${host}/`)).toBe('The host has no public address.');
    }

    expect(asked).toEqual([]);
    await agent.destroy();
  });
});

const PUBLIC_IPV4 = '93.184.216.34';
const PUBLIC_IPV6 = '2606:2800:21f:cb07:6820:80da:af6b:8b2c';

/** Connects by these addresses of a host to ports of this machine. */
function agentFor(addresses: string[], ports: Record<string, number>, onFailed?: () => void): Agent {
  const openConnector: typeof buildConnector = (options) => {
    const connect = buildConnector(options);
    return ({ hostname, ...target }, callback) =>
      connect({ ...target, hostname: '127.0.0.1', port: String(ports[hostname]) }, (...results) => {
        if (results[0] !== null) onFailed?.();
        callback(...results);
      });
  };
  return new Agent({
    connect: connectorTo({ resolve: async () => addresses, timeoutMs: 20_000, openConnector }),
  });
}

/** A port that answers no attempt to connect: its process is stopped, and its queue full. `open` lets it go on. */
async function startBlackHole() {
  const source = `require('node:http').createServer((_, response) => response.end()).listen(0, '127.0.0.1', 1, function () {
    process.stdout.write(String(this.address().port));
  })`;
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = await once(child.stdout, 'data');
  const port = Number(said);
  child.kill('SIGSTOP');
  const filling: Socket[] = [];
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    filling.push(socket);
    const isIn = await Promise.race([once(socket, 'connect').then(() => true), sleep(300, false)]);
    if (!isIn) break;
  }
  return {
    port,
    open() {
      for (const socket of filling) socket.destroy();
      child.kill('SIGCONT');
    },
    async [Symbol.asyncDispose]() {
      for (const socket of filling) socket.destroy();
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

async function reach(agent: Agent, url: string): Promise<string> {
  const { origin, pathname: path } = new URL(url);
  try {
    await agent.request({ origin, path, method: 'POST', body: '{}' });
    return 'reached';
  } catch (error) {
    return `${connectionCause(error).says}.`;
  }
}

/**
 * Starts a name server on a free port of 127.0.0.1 that answers every question for an IPv4 address as
 * told, and every other one with nothing. `answer` is told how often the name was asked before.
 */
async function startDnsServer(answer: (name: string, before: number) => string[]) {
  const asked = new Map<string, number>();
  let flags = NO_ERROR;
  const socket = createSocket('udp4', (query, from) => {
    const { name, end } = readName(query);
    const wantsIpv4 = query.readUInt16BE(end) === 1;
    const before = asked.get(name) ?? 0;
    if (wantsIpv4) asked.set(name, before + 1);
    const addresses = wantsIpv4 ? answer(name, before) : [];

    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(flags, 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt16BE(0, 8);
    header.writeUInt16BE(0, 10);
    const records = addresses.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    socket.send(Buffer.concat([header, query.subarray(12, end + 4), ...records]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');

  const resolver = new Resolver({ timeout: 10_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    resolver,
    /** Answers from now on that the name servers of the name fail. */
    fail() {
      flags = SERVER_FAILURE;
    },
    /** How often the addresses of a name were asked for. */
    timesAsked: (name: string) => asked.get(name) ?? 0,
    async [Symbol.asyncDispose]() {
      resolver.cancel();
      socket.close();
    },
  };
}

const NO_ERROR = 0x8180;
const SERVER_FAILURE = 0x8182;

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

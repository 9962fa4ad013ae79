import { Agent } from 'undici';
import { describe, expect, it } from 'vitest';
import { publicConnector, resolveWith } from '../../src/delivery/connect.ts';
import { faultInWords } from '../../src/delivery/fault-words.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { startReceiver } from '../support/receiver.ts';

const hostileHosts = `
  127.0.0.1 127.1 127.0.1 127.255.255.254 0 0.0.0.0 0x7f.1 0x7f000001 0177.0.0.1 2130706433
  017700000001 127.0.0.1. 127。0。0。1 １２７.0.0.1 0x7f.0x0.0x0.0x1 00000177.1 [::1] [::] [0:0:0:0:0:0:0:1]
  [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]
  [64:ff9b:1::127.0.0.1] [2002:7f00:1::] [::7f00:1] [2001:0:7f00:1::] [fe80::1] [fec0::1] [fc00::1]
  [fd00::1] [ff02::1] [100::1] 10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 198.18.0.1
  224.0.0.1 [::ffff:10.0.0.1] [::ffff:169.254.169.254] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::]
  [2001:db8::1] 255.255.255.255 240.0.0.1 192.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1
`
  .trim()
  .split(/\s+/);

describe('the connector for public addresses', () => {
  it('refuses every spelling of an address that is not public, before a packet leaves', async () => {
    await using canary = await startReceiver();
    await using dns = await startDnsServer(() => ['127.0.0.1']);
    const agent = new Agent({ connect: publicConnector(resolveWith(dns.resolver), 2_000) });

    for (const host of hostileHosts) {
      const outcome = await reach(agent, `http://${host}:${canary.port}/`);
      expect([host, outcome]).toEqual([host, 'The host has no public address.']);
    }

    expect(canary.connections()).toBe(0);
    await agent.destroy();
  });

  it('refuses names that lead to such an address, also among public ones', async () => {
    await using canary = await startReceiver();
    const answers: Record<string, string[]> = {
      'loopback.test': ['127.0.0.1'],
      'mixed.test': ['93.184.216.34', '127.0.0.1'],
      'metadata.test': ['169.254.169.254'],
    };
    await using dns = await startDnsServer((name) => answers[name] ?? []);
    const agent = new Agent({ connect: publicConnector(resolveWith(dns.resolver), 2_000) });

    for (const host of Object.keys(answers)) {
      expect(await reach(agent, `http://${host}:${canary.port}/`)).toBe('The host has no public address.');
    }
    expect(await reach(agent, `http://nothing.test:${canary.port}/`)).toBe('The host name is not known.');

    expect(canary.connections()).toBe(0);
    await agent.destroy();
  });

  it('connects to the address that it checked, whatever the name server says next', async () => {
    await using canary = await startReceiver();
    await using dns = await startDnsServer((_, before) => (before === 0 ? ['192.88.98.1'] : ['127.0.0.1']));
    const agent = new Agent({ connect: publicConnector(resolveWith(dns.resolver), 300) });

    const first = await reach(agent, `http://rebind.test:${canary.port}/`);
    const asked = dns.timesAsked('rebind.test');
    const second = await reach(agent, `http://rebind.test:${canary.port}/`);

    expect(first).not.toBe('reached');
    expect(asked).toBe(1);
    expect(second).toBe('The host has no public address.');
    expect(canary.connections()).toBe(0);
    await agent.destroy();
  });

  it('never tells the address in the recorded error', async () => {
    const error = Object.assign(new Error('connect ECONNREFUSED 10.1.2.3:80'), { code: 'ECONNREFUSED' });

    expect(faultInWords(new AggregateError([error]))).toBe('The connection was refused.');
    expect(faultInWords(new Error('connect to 10.1.2.3'))).toBe('The connection failed.');
  });
});

async function reach(agent: Agent, url: string): Promise<string> {
  const { origin, pathname: path } = new URL(url);
  try {
    await agent.request({ origin, path, method: 'POST', body: '{}' });
    return 'reached';
  } catch (error) {
    return faultInWords(error);
  }
}

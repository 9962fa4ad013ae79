import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';

/**
 * Starts a name server on a free port of 127.0.0.1 that answers every question for an IPv4 address as
 * told, and every other one with nothing. `answer` is told how often the name was asked before.
 */
export async function startDnsServer(answer: (name: string, before: number) => string[]) {
  const asked = new Map<string, number>();
  const socket = createSocket('udp4', (query, from) => {
    const { name, end } = readName(query);
    const wantsIpv4 = query.readUInt16BE(end) === 1;
    const before = asked.get(name) ?? 0;
    if (wantsIpv4) asked.set(name, before + 1);
    const addresses = wantsIpv4 ? answer(name, before) : [];

    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
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
    /** How often the addresses of a name were asked for. */
    timesAsked: (name: string) => asked.get(name) ?? 0,
    async [Symbol.asyncDispose]() {
      resolver.cancel();
      socket.close();
    },
  };
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

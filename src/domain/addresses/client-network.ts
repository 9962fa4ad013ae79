import ipaddr from 'ipaddr.js';

/**
 * What counts as one client: an IPv4 address, or the /64 that an IPv6 customer has to themselves. Some proxies forward
 * the port as well, which is another for each connection. What is no IP address is returned as it is.
 */
export function networkOf(forwarded: string): string {
  const address = withPort.exec(forwarded)?.slice(1).join('') ?? forwarded;
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** `192.0.2.1:50000` or `[2001:db8::1]:50000`. */
const withPort = /^(?:([\d.]+)|\[(.+)\]):\d+$/;

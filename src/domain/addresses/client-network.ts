import ipaddr from 'ipaddr.js';

/**
 * What counts as one client: an IPv4 address, or the /64 that an IPv6 customer has to themselves. What is no
 * IP address is returned as it is.
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

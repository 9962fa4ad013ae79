import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { formLimits } from '../limits/limits.ts';

/**
 * Whether an IP address is a public host of the internet, so that callers may make the service connect to it.
 *
 * IPv4 is everything but the special-purpose registry, multicast and the reserved class E. IPv6 is only 2000::/3
 * less its special ranges, so that every form that carries an IPv4 address inside (mapped, compatible, 6to4, Teredo) is
 * refused, but for that of NAT64 (RFC 6052): networks without IPv4 have no other way to it, and what is within is judged.
 * What is not an IP address is not public.
 */
export function isPublicAddress(ip: string): boolean {
  if (isIP(ip) === 0 || ip.includes('%')) return false;
  const address = ipaddr.parse(ip);
  if (address.kind() === 'ipv4') return address.range() === 'unicast';
  if (address.match(nat64)) return isPublicAddress(address.toByteArray().slice(-4).join('.'));
  return address.match(globalIpv6) && !specialIpv6.some((range) => address.match(range));
}

/**
 * What is wrong with the URL of a webhook, or undefined.
 *
 * Checks the text only: a name may still resolve to a private address, so the address that is connected to
 * needs `isPublicAddress`. `allowPrivate` lifts the HTTPS rule and that of the host.
 */
export function checkWebhookUrl(
  text: string,
  { allowPrivate }: { allowPrivate: boolean },
): string | undefined {
  if (text.length > formLimits.url) return `A webhook URL has at most ${formLimits.url} characters`;
  if (blank.test(text) || !URL.canParse(text)) return 'Expected an absolute URL';
  const url = new URL(text);
  if (allowPrivate) {
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'Expected an HTTP or HTTPS URL';
  } else if (url.protocol !== 'https:') return `Expected an HTTPS URL${UNLESS_ALLOWED}`;
  if (url.username !== '' || url.password !== '') return 'A webhook URL must not hold credentials';
  if (!allowPrivate && !mayBePublic(url.hostname))
    return `The host of a webhook must be public${UNLESS_ALLOWED}`;
  return undefined;
}

/** URL has already folded every spelling of an IPv4 address (`0x7f.1`, `2130706433`) to its dotted form. */
function mayBePublic(host: string): boolean {
  const literal = host.startsWith('[') ? host.slice(1, -1) : host;
  if (isIP(literal) !== 0) return isPublicAddress(literal);
  const name = `.${host.replace(/(?<!\.)\.+$/, '')}`;
  return name !== '.' && !privateNames.some((suffix) => name.endsWith(suffix));
}

const UNLESS_ALLOWED = ', unless the service runs with WEBHOOK_ALLOW_PRIVATE=true';

/** `URL` drops tabs and line breaks and trims blanks: what is stored would not be what is called. */
const blank = /[\s\p{Cc}]/u;

const privateNames = ['.localhost', '.local', '.internal'];

const nat64 = ipaddr.parseCIDR('64:ff9b::/96');

const globalIpv6 = ipaddr.parseCIDR('2000::/3');

/** What is special inside 2000::/3: protocol assignments with Teredo and ORCHID, documentation, 6to4, AS112. */
const specialIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'].map(
  (range) => ipaddr.parseCIDR(range),
);

/**
 * What counts as one client: an IPv4 address, or the /64 that an IPv6 customer has to themselves. Some proxies forward
 * the port as well, which is another for each connection. What is no IP address is returned as it is.
 */
export function networkOf(forwarded: string): string {
  const address = withPort.exec(forwarded)?.slice(1).join('') ?? forwarded;
  if (!address.includes(':')) return address;
  return address.length > MAX_KNOWN_LENGTH ? readNetwork(address) : networks.memo(address);
}

/**
 * Reading an IPv6 address takes longer than the other checks of a call, and a call asks for its network several
 * times.
 */
const networks = new LRUCache<string, string>({ max: 1_000, memoMethod: readNetwork });

/** Longer ones have a zone, or are none. */
const MAX_KNOWN_LENGTH = 64;

function readNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/**
 * The networks that one customer may have many clients in, the smallest first: the IPv6 /56 and /48, or the IPv4 /24,
 * each with how many times the calls of one client it may make. None for what is no IP address.
 */
export function widerNetworksOf(forwarded: string): { network: string; times: number }[] {
  const client = networkOf(forwarded);
  if (ipaddr.IPv4.isValidFourPartDecimal(client)) {
    return [{ network: client.replace(/(?<=\.)[^.]+$/, '0/24'), times: 8 }];
  }
  if (!client.endsWith('::/64')) return [];
  const [first = '', second = '', third = '', fourth = ''] = client.split(':');
  const subnet = (Number.parseInt(fourth, 16) & 0xff00).toString(16);
  const site = `${first}:${second}:${third}`;
  return [
    { network: `${site}:${subnet}::/56`, times: 4 },
    { network: `${site}::/48`, times: 8 },
  ];
}

/** The widest of them, so that one who has a whole IPv6 /48 or IPv4 /24 counts once. */
export function widestNetworkOf(forwarded: string): string {
  return widerNetworksOf(forwarded).at(-1)?.network ?? networkOf(forwarded);
}

/** `192.0.2.1:50000` or `[2001:db8::1]:50000`. */
const withPort = /^(?:([\d.]+)|\[(.+)\]):\d+$/;

/** Whether the host of a URL is this machine; names under `localhost` never leave it (RFC 6761, section 6.3). */
export function isLoopback(hostname: string): boolean {
  return /^(.+\.)?localhost$|^127\.\d+\.\d+\.\d+$|^\[::1\]$/.test(hostname);
}

/**
 * A host or an origin with one name for loopback, to compare by: clients and browsers use `localhost`, `127.0.0.1` and
 * `[::1]` for the same service. Another port is another service still.
 */
export function withOneLoopback(hostOrOrigin: string): string {
  return hostOrOrigin.replace(/^(https?:\/\/)?(?:127\.0\.0\.1|\[::1\])(?=:\d+$|$)/, '$1localhost');
}

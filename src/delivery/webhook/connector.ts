import { CONNREFUSED, lookup, Resolver, SERVFAIL, TIMEOUT } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from '../../domain/addresses/ip-address.ts';
import { hasCode } from '../../domain/errors/system-errors.ts';

/**
 * Connects to a host by addresses that were checked: the name is resolved once, and the socket goes to one of what was
 * found. Unless `allowPrivate`, a name with any address that is not public is refused as a whole.
 *
 * With `admit` the first address is used alone, after `admit` has been asked about that very one: how a host is named
 * changes nothing. What `admit` throws is the connection's error.
 */
export function connectorTo(options: ConnectorOptions): buildConnector.connector {
  const { resolve, allowPrivate = false, admit, timeoutMs, openConnector = buildConnector } = options;

  async function addressesOf(host: string): Promise<string[]> {
    const addresses = isIP(host) !== 0 ? [host] : await (allowPrivate ? lookUp : resolve)(host);
    const [first] = addresses;
    if (first === undefined) throw new HostError('ENOTFOUND');
    if (!allowPrivate && !addresses.every(isPublicAddress)) throw new HostError('NOT_PUBLIC');
    await admit?.(first);
    return admit === undefined ? addresses : [first];
  }

  const connect = openConnector({ lookup: lookupBy(addressesOf), timeout: timeoutMs });
  return (target, callback) => {
    const host = withoutBrackets(target.hostname);
    // The socket looks names up, not addresses.
    if (isIP(host) === 0) connect(target, callback);
    else
      addressesOf(host).then(
        () => connect(target, callback),
        (error: Error) => callback(error, null),
      );
  };
}

/** As sockets do by themselves, the hosts file included. */
async function lookUp(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Asks the system's name servers. Ignores the hosts file, and blocks no thread of libuv's pool. */
export function systemResolver(): ResolveHost {
  return resolveWith(new Resolver({ timeout: 2_000, tries: 2 }));
}

/** Asks for the addresses of both families; one of them is enough. Throws if no name server has answered. */
export function resolveWith(resolver: Pick<Resolver, 'resolve4' | 'resolve6'>): ResolveHost {
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const unanswered = answers.find((answer) => answer.status === 'rejected' && isUnanswered(answer.reason));
    if (addresses.length === 0 && unanswered !== undefined) throw new HostError('EAI_AGAIN');
    return addresses;
  };
}

/** What name servers say of a name that has no address, or none of this family, is an answer. */
function isUnanswered(error: unknown): boolean {
  return hasCode(error, TIMEOUT, CONNREFUSED, SERVFAIL);
}

/**
 * No connection may be made to a host, or its name could not be looked up. Does not name the address. The codes are
 * those of `getaddrinfo`: that c-ares has of its own where no name server answers would read as the receiver's refusal.
 */
class HostError extends Error {
  override name = 'HostError';
  readonly code: 'NOT_PUBLIC' | 'EAI_AGAIN' | 'ENOTFOUND';

  constructor(code: HostError['code']) {
    super();
    this.code = code;
  }
}

function lookupBy(addressesOf: (host: string) => Promise<string[]>): LookupFunction {
  return (host, options, callback) => {
    addressesOf(host).then(
      (addresses) => {
        const all = addresses.map((address) => ({ address, family: isIP(address) }));
        const [first] = all;
        if (options.all === true) callback(null, all);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

/** The addresses of a host, of both families; none if there is no such host. */
export type ResolveHost = (host: string) => Promise<string[]>;

type ConnectorOptions = {
  resolve: ResolveHost;
  /** Whether other addresses than public ones may be connected to; absent: no. */
  allowPrivate?: boolean;
  /** Throws if no connection may be made to the address now; absent: any may. */
  admit?: (address: string) => Promise<void>;
  timeoutMs: number;
  /** How a checked address is connected to; absent: as undici does. */
  openConnector?: typeof buildConnector | undefined;
};

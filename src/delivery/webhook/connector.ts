import { lookup, Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from '../../domain/addresses/public-address.ts';

/**
 * Connects to public addresses only, judged by the address that is connected to: the host's name is
 * resolved once, every address of it is checked, and the socket goes to one of those.
 *
 * A name with any address that is not public is refused as a whole. Fails with `NotPublicError`.
 */
export function publicConnector(resolve: ResolveHost, timeoutMs: number): buildConnector.connector {
  const connect = buildConnector({ lookup: publicLookup(resolve), timeout: timeoutMs });
  return (options, callback) => {
    // `lookup` is not called for IP addresses.
    const host = withoutBrackets(options.hostname);
    if (isIP(host) !== 0 && !isPublicAddress(host)) callback(new NotPublicError(), null);
    else connect(options, callback);
  };
}

/**
 * Connects to one address of a host, after `admit` has been asked about that very address: how a host is named
 * changes nothing. What `admit` throws is the connection's error. Other addresses than public ones are refused
 * as by `publicConnector`, unless `allowPrivate`.
 */
export function admittingConnector(options: AdmittingOptions): buildConnector.connector {
  const { resolve, allowPrivate, timeoutMs, admit } = options;
  const connect = buildConnector({ timeout: timeoutMs });

  async function admittedAddress(host: string): Promise<string> {
    const addresses = isIP(host) !== 0 ? [host] : allowPrivate ? await lookUp(host) : await resolve(host);
    const [address] = addresses;
    if (address === undefined) throw new UnknownHostError();
    if (!allowPrivate && !addresses.every(isPublicAddress)) throw new NotPublicError();
    await admit(address);
    return address;
  }

  return (target, callback) => {
    // TLS still checks the host's name: undici takes it from `target.host`.
    admittedAddress(withoutBrackets(target.hostname)).then(
      (hostname) => connect({ ...target, hostname }, callback),
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

/** Asks for the addresses of both families; one of them is enough. */
export function resolveWith(resolver: Pick<Resolver, 'resolve4' | 'resolve6'>): ResolveHost {
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}

/** The host's address is one that a webhook may not go to. Does not name the address. */
class NotPublicError extends Error {
  override name = 'NotPublicError';
  readonly code = 'NOT_PUBLIC';
}

/** The host's name has no address. */
class UnknownHostError extends Error {
  override name = 'UnknownHostError';
  readonly code = 'ENOTFOUND';
}

function publicLookup(resolve: ResolveHost): LookupFunction {
  return (host, options, callback) => {
    const found = async () => {
      const addresses = await resolve(host);
      if (addresses.length === 0) throw new UnknownHostError();
      if (!addresses.every(isPublicAddress)) throw new NotPublicError();
      return addresses.map((address) => ({ address, family: isIP(address) }));
    };
    found().then(
      (all) => {
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

type AdmittingOptions = {
  resolve: ResolveHost;
  allowPrivate: boolean;
  timeoutMs: number;
  /** Throws if no connection may be made to the address now. */
  admit: (address: string) => Promise<void>;
};

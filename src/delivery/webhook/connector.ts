import { CONNREFUSED, Resolver, SERVFAIL, TIMEOUT } from 'node:dns/promises';
import { isIP, Socket } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from '../../domain/addresses/ip-address.ts';
import { hasCode } from '../../domain/errors/system-errors.ts';
import { lookUp, raceAddresses } from '../address-race.ts';

/**
 * Connects to a host by addresses that were checked: the name is resolved once, and sockets go to what was found. Unless
 * `allowPrivate`, addresses that are not public are left out, and a name with no other is refused.
 *
 * Several addresses race, and none is given up before `timeoutMs`. Before each, `admit` is asked about that very address:
 * how a host is named changes nothing.
 */
export function connectorTo(options: ConnectorOptions): buildConnector.connector {
  const { resolve, allowPrivate = false, admit, timeoutMs, openConnector = buildConnector } = options;
  const connect = openConnector({ timeout: timeoutMs });

  async function addressesOf(host: string): Promise<string[]> {
    const found = isIP(host) !== 0 ? [host] : await (allowPrivate ? lookUp : resolve)(host);
    const allowed = allowPrivate ? found : found.filter(isPublicAddress);
    if (found.length === 0) throw new HostError('ENOTFOUND');
    if (allowed.length === 0) throw new HostError('NOT_PUBLIC');
    return allowed;
  }

  async function attempt(
    target: buildConnector.Options,
    address: string,
    isOver: AbortSignal,
  ): Promise<Socket> {
    await admit?.(address);
    isOver.throwIfAborted();
    return new Promise((resolveSocket, reject) => {
      let opened: unknown;
      // undici ends its own time limit only when the socket fails with an error.
      const giveUp = () => opened instanceof Socket && opened.destroy(isOver.reason);
      isOver.addEventListener('abort', giveUp);
      opened = connect({ ...target, hostname: address }, (error, socket) => {
        isOver.removeEventListener('abort', giveUp);
        if (error === null) resolveSocket(socket);
        else reject(error);
      });
    });
  }

  async function race(target: buildConnector.Options): Promise<Socket> {
    const host = withoutBrackets(target.hostname);
    // Certificates and servers know names without a dot at the end.
    const servername = isIP(host) === 0 ? host.replace(/\.$/, '') : '';
    const named = servername === '' ? target : { ...target, servername };
    return raceAddresses(await addressesOf(host), (address, isOver) => attempt(named, address, isOver));
  }

  return (target, callback) => {
    race(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** Asks the system's name servers. Ignores the hosts file, and blocks no thread of libuv's pool. */
export function systemResolver(): ResolveHost {
  return resolveWith(new Resolver({ timeout: 2_000, tries: 2 }));
}

/**
 * Asks for the addresses of both families; one of them is enough. Throws if no name server has answered, or if those of
 * the name fail, which those of this machine report.
 */
export function resolveWith(resolver: Pick<Resolver, 'resolve4' | 'resolve6'>): ResolveHost {
  return async (host) => {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const faults = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
    if (addresses.length > 0) return addresses;
    if (faults.some((fault) => hasCode(fault, TIMEOUT, CONNREFUSED))) throw new HostError('EAI_AGAIN');
    if (faults.some((fault) => hasCode(fault, SERVFAIL))) throw new HostError('ESERVFAIL');
    return [];
  };
}

/**
 * No connection may be made to a host, or its name could not be looked up. Does not name the address. The codes are
 * those of `getaddrinfo`: that c-ares has of its own where no name server answers would read as the receiver's refusal.
 */
class HostError extends Error {
  override name = 'HostError';
  readonly code: 'NOT_PUBLIC' | 'EAI_AGAIN' | 'ESERVFAIL' | 'ENOTFOUND';

  constructor(code: HostError['code']) {
    super();
    this.code = code;
  }
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

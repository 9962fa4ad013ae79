import { CONNREFUSED, lookup, Resolver, SERVFAIL, TIMEOUT } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildConnector } from 'undici';
import { isPublicAddress } from '../../domain/addresses/ip-address.ts';
import { hasCode } from '../../domain/errors/system-errors.ts';

/**
 * Connects to a host by addresses that were checked: the name is resolved once, and sockets go to what was found. Unless
 * `allowPrivate`, addresses that are not public are left out, and a name with no other is refused.
 *
 * Several addresses race (RFC 8305): the next one is tried a quarter of a second after the one before, or once that has
 * failed, and none is given up before `timeoutMs`. The first connection wins, and later ones are closed. Before each
 * `admit` is asked about that very address: how a host is named changes nothing. What fails is told of the first.
 */
export function connectorTo(options: ConnectorOptions): buildConnector.connector {
  const { resolve, allowPrivate = false, admit, timeoutMs, openConnector = buildConnector } = options;
  const connect = openConnector({ timeout: timeoutMs });

  async function addressesOf(host: string): Promise<string[]> {
    const found = isIP(host) !== 0 ? [host] : await (allowPrivate ? lookUp : resolve)(host);
    const allowed = allowPrivate ? found : found.filter(isPublicAddress);
    if (found.length === 0) throw new HostError('ENOTFOUND');
    if (allowed.length === 0) throw new HostError('NOT_PUBLIC');
    return familiesInTurn(allowed).slice(0, MAX_ADDRESSES);
  }

  async function attempt(target: buildConnector.Options, address: string): Promise<Socket> {
    await admit?.(address);
    return new Promise((resolveSocket, reject) => {
      connect({ ...target, hostname: address }, (error, socket) => {
        if (error === null) resolveSocket(socket);
        else reject(error);
      });
    });
  }

  async function race(target: buildConnector.Options): Promise<Socket> {
    const host = withoutBrackets(target.hostname);
    // Certificates and servers know names without the dot of the root.
    const servername = isIP(host) === 0 ? host.replace(/\.$/, '') : '';
    const named = servername === '' ? target : { ...target, servername };
    const addresses = await addressesOf(host);
    const attempts: Promise<Socket>[] = [];
    for (const address of addresses) {
      const latest = attempt(named, address);
      attempts.push(latest);
      if (attempts.length === addresses.length) break;
      const pause = sleep(NEXT_ADDRESS_MS, undefined, { ref: false });
      const winner = await Promise.race([
        Promise.any(attempts).catch(() => undefined),
        latest.catch(() => undefined),
        pause,
      ]);
      if (winner !== undefined) break;
    }
    const winner = await Promise.any(attempts).catch(() => attempts[0] as Promise<never>);
    for (const each of attempts)
      each.then(
        (socket) => socket !== winner && socket.destroy(),
        () => undefined,
      );
    return winner;
  }

  return (target, callback) => {
    race(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** RFC 8305, section 8. */
const NEXT_ADDRESS_MS = 250;

/** Of one host: a name can have hundreds, of others. */
const MAX_ADDRESSES = 4;

/** Addresses with those of IPv4 and IPv6 in turn, beginning with the family of the first. */
function familiesInTurn(addresses: readonly string[]): string[] {
  const [first = ''] = addresses;
  const [ones, others] = [true, false].map((isSame) =>
    addresses.filter((address) => (isIP(address) === isIP(first)) === isSame),
  );
  return addresses.flatMap((_, n) => [ones?.[n], others?.[n]]).filter((address) => address !== undefined);
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

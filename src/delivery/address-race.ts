import { lookup } from 'node:dns/promises';
import { isIP, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLocalFault } from '../store/database/faults.ts';

/**
 * Connects to the first of several addresses that answers (RFC 8305): the next one is tried a quarter of a second after
 * the one before, or once that has failed, and none is given up before `attempt` does so, or before the signal that it
 * gets says that another one has won. Throws what the first address fails with, but for what is
 * this machine's fault, such as no way to IPv6, where another address fails by itself.
 */
export async function raceAddresses(
  addresses: readonly string[],
  attempt: (address: string, isOver: AbortSignal) => Promise<Socket>,
): Promise<Socket> {
  const tried = familiesInTurn(addresses).slice(0, MAX_ADDRESSES);
  const attempts: Promise<Socket>[] = [];
  const over = new AbortController();
  for (const address of tried) {
    const latest = attempt(address, over.signal);
    attempts.push(latest);
    if (attempts.length === tried.length) break;
    const pause = sleep(NEXT_ADDRESS_MS, undefined, { ref: false });
    const winner = await Promise.race([
      Promise.any(attempts).catch(() => undefined),
      latest.catch(() => undefined),
      pause,
    ]);
    if (winner !== undefined) break;
  }
  const winner = await Promise.any(attempts).catch(({ errors }: AggregateError) => {
    throw errors.find((error) => !isLocalFault(error)) ?? errors[0];
  });
  over.abort();
  for (const each of attempts)
    each.then(
      (socket) => socket !== winner && socket.destroy(),
      () => undefined,
    );
  return winner;
}

/** The addresses of a host as sockets find them by themselves, the hosts file included. */
export async function lookUp(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
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

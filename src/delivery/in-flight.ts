/**
 * Keeps count of what is under way, in all and for each receiver.
 *
 * A receiver begins with a few places and earns one more with each quick answer, up to half of all; a
 * slow answer takes it back to one. So any number of deliveries for receivers that are dead or new
 * leaves room for the others'.
 */
export function createInFlight(workers: number): InFlight {
  const most = Math.max(1, Math.floor(workers / 2));
  const atFirst = Math.min(most, PLACES_AT_FIRST);
  /** Those that differ from `atFirst`, the ones heard of last at the end. */
  const places = new Map<string, number>();
  const counts = new Map<string, number>();
  let total = 0;

  return {
    perReceiver: atFirst,
    free: () => workers - total,
    busy: () =>
      [...new Set([...counts.keys(), ...places.keys()])].map((receiver) => ({
        receiver,
        free: Math.max(0, (places.get(receiver) ?? atFirst) - (counts.get(receiver) ?? 0)),
      })),
    begin(receiver) {
      total += 1;
      counts.set(receiver, (counts.get(receiver) ?? 0) + 1);
    },
    end(receiver, tookMs) {
      total -= 1;
      const left = (counts.get(receiver) ?? 1) - 1;
      if (left > 0) counts.set(receiver, left);
      else counts.delete(receiver);

      const before = places.get(receiver) ?? atFirst;
      places.delete(receiver);
      places.set(receiver, tookMs < SLOW_MS ? Math.min(most, before + 1) : 1);
      const [oldest] = places.keys();
      if (places.size > MAX_KNOWN && oldest !== undefined) places.delete(oldest);
    },
  };
}

const PLACES_AT_FIRST = 4;

/** A receiver that takes longer holds its place longer than is fair to the others. */
const SLOW_MS = 2_000;

/** Their names go into each claim. */
const MAX_KNOWN = 200;

export type InFlight = {
  /** The most for one receiver that `busy` does not name. */
  perReceiver: number;
  /** How many more may begin. */
  free(): number;
  /** How many more each of the known receivers may have. */
  busy(): { receiver: string; free: number }[];
  begin(receiver: string): void;
  end(receiver: string, tookMs: number): void;
};

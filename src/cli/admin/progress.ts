/**
 * Makes what says how far something has come: nothing in the first second, then at most one line a second.
 * `describe` is called when a line is due.
 */
export function createProgress(note: (line: string) => void, now: () => number) {
  const begin = now();
  let last = begin;
  return (describe: () => string) => {
    if (now() - last < EVERY_MS) return;
    last = now();
    note(`${describe()} (${Math.round((last - begin) / 1000)} s)`);
  };
}

/** A number of bytes for people, such as `12 MiB`. */
export function inMib(bytes: number): string {
  const mib = bytes / 1024 ** 2;
  return mib < 10 ? `${mib.toFixed(1)} MiB` : `${Math.round(mib)} MiB`;
}

const EVERY_MS = 1_000;

export type Progress = ReturnType<typeof createProgress>;

import type { Duration } from '@bufbuild/protobuf/wkt';

/** A duration in seconds; undefined if it has a fraction. Beyond what numbers hold, it is only roughly right. */
export function wholeSeconds({ seconds, nanos }: Duration): number | undefined {
  return nanos === 0 ? Number(seconds) : undefined;
}

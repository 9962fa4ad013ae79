import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';

/** Seconds as a message has them. */
export function durationOf(whole: number | undefined) {
  return whole === undefined ? undefined : { seconds: BigInt(whole), nanos: 0 };
}

/** A message's time as a reply has it. */
export function timeOf(time: Timestamp | undefined): string {
  return time === undefined ? EPOCH : timestampDate(time).toISOString();
}

/** A message's time as a reply has it; null if it is not set. */
export function timeOrNull(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timeOf(time);
}

/** A message's text as a reply has it; null if it is not set. */
export function textOrNull(text: string): string | null {
  return text === '' ? null : text;
}

/** A part of a response that its service always sets. Throws if it did not. */
export function present<T>(part: T | undefined): T {
  if (part === undefined) throw new TypeError('A response lacks a part that is always set');
  return part;
}

const EPOCH = new Date(0).toISOString();

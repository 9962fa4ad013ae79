import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { Random } from './types.ts';

/** Numbers that follow from a text alone (sfc32, seeded by FNV-1a). */
export function createRandom(seed: string): Random {
  const next = sfc32(seed);
  const number = () => next() / 2 ** 32;
  const whole = (least: number, most: number) => least + Math.floor(number() * (most - least + 1));
  return {
    number,
    whole,
    chance: (share) => number() < share,
    pick(from) {
      if (from.length === 0) throw new RangeError('There is nothing to pick from');
      return from[whole(0, from.length - 1)] as (typeof from)[number];
    },
    text: (length) => Array.from({ length }, () => LETTERS.charAt(whole(0, LETTERS.length - 1))).join(''),
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}

/** Lets all that is secret or random in this process follow from the seed, `Math.random` included. */
export function seedRandomness(seed: string): void {
  const next = sfc32(`${seed}/process`);
  Math.random = () => next() / 2 ** 32;

  const fill = <T extends NodeJS.ArrayBufferView>(view: T): T => {
    const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    for (let at = 0; at < bytes.length; at++) bytes[at] = next();
    return view;
  };
  const randomBytes = (size: number, callback?: (error: null, bytes: Buffer) => void) => {
    const bytes = fill(Buffer.alloc(size));
    if (callback === undefined) return bytes;
    queueMicrotask(() => callback(null, bytes));
    return undefined;
  };
  const randomUUID = () => {
    const bytes = fill(Buffer.alloc(16));
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  };
  const randomInt = (first: number, second?: number) => {
    const [least, end] = second === undefined ? [0, first] : [first, second];
    return least + Math.floor((next() / 2 ** 32) * (end - least));
  };
  Object.assign(crypto, { randomBytes, randomUUID, randomInt, randomFillSync: fill });
  Object.defineProperty(globalThis.crypto, 'getRandomValues', { value: fill });
  Object.defineProperty(globalThis.crypto, 'randomUUID', { value: randomUUID });
  syncBuiltinESMExports();
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

function sfc32(seed: string): () => number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < seed.length; at++) hash = Math.imul(hash ^ seed.charCodeAt(at), 0x01000193);
  let [a, b, c, d] = [hash, hash ^ 0x9e3779b9, Math.imul(hash, 0x85ebca6b), 1];
  const next = () => {
    const sum = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let n = 0; n < 15; n++) next();
  return next;
}

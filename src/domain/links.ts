import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { addressKey } from './addresses/email-address.ts';
import { DAY_MS, HOUR_MS } from './limits/limits.ts';
import { newToken } from './secrets/new-secrets.ts';
import { deriveKey, type SecretKey } from './secrets/secret-key.ts';

/**
 * Returns the token of an emailed link. It holds what following the link does, for which form and by which address.
 *
 * `expiresAt` is in milliseconds since 1970; null never expires, as links that stop emails must not.
 */
export function mailLinkToken(key: SecretKey, link: MailLink, expiresAt: number | null): string {
  const { purpose, formId, address } = link;
  return `${purpose}.${signPair(key, `mail:${purpose}`, [formId, address], expiresAt)}`;
}

/** Reads a token of `mailLinkToken`, made with any of the keys. `now` is in milliseconds. */
export function readMailLink(
  keys: readonly SecretKey[],
  token: string,
  now: number,
): { ok: true; link: MailLink } | RefusedLink {
  const dot = token.indexOf('.');
  const purpose = mailLinkPurposes.safeParse(token.slice(0, Math.max(dot, 0)));
  if (!purpose.success) return { ok: false, reason: 'invalid' };
  const read = verifyPair(keys, `mail:${purpose.data}`, token.slice(dot + 1), now);
  return read.ok
    ? { ok: true, link: { purpose: purpose.data, formId: read.pair[0], address: read.pair[1] } }
    : read;
}

/** The purpose of a link to correct a submission, whose id it has in place of an address. */
export const CORRECTION = 'correct';

/** How long such a link works. */
export const CORRECTION_MS = 7 * DAY_MS;

/** The address of the page behind a token. `baseUrl` has no slash at the end. */
export function mailLinkUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/mail/${token}`;
}

/** In place of a form: the emails by which owners sign in. */
export const SIGN_IN_MAILS = 'sign-in';

/**
 * The address of a submitted file for anyone who has it, without a key, for 7 days from `now`, in milliseconds,
 * unless the form gets another owner before: `ownerEpoch` counts them. `baseUrl` has no slash at the end.
 *
 * It names the form beside the file, so that what stands in the answers to one form never opens a file of another.
 */
export function fileLink(
  { secretKey, baseUrl, now }: LinkMaker,
  { id, ownerEpoch }: { id: string; ownerEpoch: number },
  uploadId: string,
): string {
  const claim = [`${id} ${ownerEpoch}`, uploadId] as const;
  return `${baseUrl}/files/${signPair(secretKey, FILE, claim, now + FILE_LINK_MS)}`;
}

/** What the token in a link stands for, if it was signed with the key and has not expired. */
export function readFileLink(
  key: SecretKey,
  token: string,
  now: number,
): { ok: true; formId: string; ownerEpoch: number; uploadId: string } | RefusedLink {
  const read = verifyPair([key], FILE, token, now);
  if (!read.ok) return read;
  const [formId = '', epoch] = read.pair[0].split(' ');
  // Those of earlier versions name no owner.
  if (epoch === undefined) return { ok: false, reason: 'expired' };
  return { ok: true, formId, ownerEpoch: Number(epoch), uploadId: read.pair[1] };
}

/** How long a link to a file works. */
export const FILE_LINK_MS = 7 * DAY_MS;

/**
 * A token that opens the stream of a form's submissions in place of a key, until `expiresAt` in milliseconds, as long
 * as the key is valid that it names.
 */
export function streamToken(key: SecretKey, { formId, keyId }: StreamRight, expiresAt: number): string {
  return `${STREAM_PREFIX}${signPair(key, STREAM, [formId, keyId], expiresAt)}`;
}

/** Whether a credential is meant as a token of `streamToken`. */
export function isStreamToken(text: string): boolean {
  return text.startsWith(STREAM_PREFIX);
}

/** What a token of `streamToken` opens; undefined if it was not signed with the key, or has expired. */
export function readStreamToken(key: SecretKey, token: string, now: number): StreamRight | undefined {
  const read = verifyPair([key], STREAM, token.slice(STREAM_PREFIX.length), now);
  return read.ok ? { formId: read.pair[0], keyId: read.pair[1] } : undefined;
}

/** How long a token opens streams. */
export const STREAM_TOKEN_MS = 10 * 60 * 1000;

/** Keys begin with `hfs_`. */
const STREAM_PREFIX = 'hfst_';

/**
 * A new token of an emailed link by which an address signs in. `now` is in milliseconds; the token works for 15
 * minutes. No two are the same, so that the use of one can be noted.
 */
export function signInToken(key: SecretKey, address: string, now: number): string {
  return signPair(key, SIGN_IN, [address, newToken()], now + SIGN_IN_LINK_MS);
}

/** The address that a token of `signInToken` signs in, if it was made with one of the keys and is not expired. */
export function readSignInToken(
  keys: readonly SecretKey[],
  token: string,
  now: number,
): { ok: true; address: string } | RefusedLink {
  const read = verifyPair(keys, SIGN_IN, token, now);
  return read.ok ? { ok: true, address: read.pair[0] } : read;
}

/** The address of the page behind a token. `baseUrl` has no slash at the end. */
export function signInUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/owner/sign-in/${token}`;
}

/** How long a link that confirms an owner also signs in, from when it is written. */
export const CONFIRMED_SIGN_IN_MS = HOUR_MS;

/** How long a link works by which an address signs in. */
export const SIGN_IN_LINK_MS = 15 * 60 * 1000;

/**
 * Proves, for a year from `now` in milliseconds, that somebody has signed in with an address and may ask for further
 * links to it. It opens nothing.
 */
export function deviceToken(key: SecretKey, address: string, now: number): string {
  return signLink(key, DEVICE, addressKey(address), now + DEVICE_MS);
}

/** Whether a token of `deviceToken` is one for an address. */
export function isDeviceOf(
  key: SecretKey,
  { token, address, now }: { token: string; address: string; now: number },
): boolean {
  const result = verifyLink([key], DEVICE, token, now);
  return result.ok && result.value === addressKey(address);
}

/** How long a device token works. */
export const DEVICE_MS = 365 * DAY_MS;

/**
 * A token that carries `value` and proves that this service gave it out, for an emailed or shown link.
 *
 * Tokens of one purpose are worth nothing for another. The value can be read by anyone who holds the
 * token. `expiresAt` is in milliseconds since 1970; null never expires.
 */
export function signLink(key: SecretKey, purpose: string, value: string, expiresAt: number | null): string {
  const expiry = expiresAt === null ? '' : Math.floor(expiresAt).toString(36);
  const claim = `${Buffer.from(value).toString('base64url')}.${expiry}`;
  return `${claim}.${linkMac(key, purpose, claim).toString('base64url')}`;
}

/**
 * Reads a token of `signLink`, signed with any of the keys. `now` is in milliseconds; a token is expired from
 * `expiresAt` on.
 */
export function verifyLink(
  keys: readonly SecretKey[],
  purpose: string,
  token: string,
  now: number,
): { ok: true; value: string } | RefusedLink {
  const [value = '', expiry = '', mac = '', ...rest] = token.split('.', 4);
  const given = Buffer.from(mac, 'base64url');
  const isSignedWith = (key: SecretKey) => {
    const expected = linkMac(key, purpose, `${value}.${expiry}`);
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  if (rest.length > 0 || !keys.some(isSignedWith)) return { ok: false, reason: 'invalid' };
  if (expiry !== '' && now >= Number.parseInt(expiry, 36)) return { ok: false, reason: 'expired' };
  return { ok: true, value: Buffer.from(value, 'base64url').toString('utf8') };
}

function linkMac(key: SecretKey, purpose: string, claim: string): Buffer {
  return createHmac('sha256', deriveKey(key, `link:${purpose}`))
    .update(claim)
    .digest();
}

function signPair(key: SecretKey, purpose: string, pair: Readonly<Pair>, expiresAt: number | null): string {
  return signLink(key, purpose, JSON.stringify(pair), expiresAt);
}

function verifyPair(
  keys: readonly SecretKey[],
  purpose: string,
  token: string,
  now: number,
): { ok: true; pair: Pair } | RefusedLink {
  const result = verifyLink(keys, purpose, token, now);
  return result.ok ? { ok: true, pair: pairSchema.parse(JSON.parse(result.value)) } : result;
}

const FILE = 'file';
const STREAM = 'stream';
const SIGN_IN = 'owner-sign-in';
const DEVICE = 'owner-device';

const mailLinkPurposes = z.enum(['confirm-owner', 'change-owner', 'confirm-recipient', 'stop', CORRECTION]);

const pairSchema = z.tuple([z.string(), z.string()]);

export type MailLink = { purpose: MailLinkPurpose; formId: string; address: string };
export type MailLinkPurpose = z.output<typeof mailLinkPurposes>;

/** The form whose stream may be read, and the key that gives the right. */
export type StreamRight = { formId: string; keyId: string };

/** What links are made with. */
export type LinkMaker = { secretKey: SecretKey; baseUrl: string; now: number };

type Pair = z.output<typeof pairSchema>;

type RefusedLink = { ok: false; reason: 'invalid' | 'expired' };

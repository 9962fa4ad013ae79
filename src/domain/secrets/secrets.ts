import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** A new API key: `hfs_` and 32 random bytes in base 62. Shown once; stored as its hash. */
export function newApiKey(): string {
  return `hfs_${toBase62(randomBytes(32))}`;
}

/** A new one-time token for a link: 32 random bytes in base 62. */
export function newToken(): string {
  return toBase62(randomBytes(32));
}

/** A new webhook secret in the form of Standard Webhooks: `whsec_` and 24 random bytes in base 64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`;
}

/**
 * The SHA-256 of a secret in hex: what is stored of keys and tokens. Only for secrets of full
 * strength, as made here; it is no password hash.
 */
export function hashSecret(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Reads SECRET_KEY: 32 bytes in hex or base 64. Throws an error that says what was wrong. */
export function parseSecretKey(text: string): SecretKey {
  const trimmed = text.trim();
  if (/^[0-9a-fA-F]{64}$/.test(trimmed)) return Buffer.from(trimmed, 'hex');
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)) return Buffer.from(trimmed, 'base64');
  throw new Error('expected 32 bytes as 64 hex digits or as base64; make one with: openssl rand -hex 32');
}

/** A new SECRET_KEY in hex, as `parseSecretKey` reads it. */
export function newSecretKey(): string {
  return randomBytes(SECRET_KEY_BYTES).toString('hex');
}

/**
 * Keeps secrets that must be read again (webhook secrets) under SECRET_KEY: AES-256-GCM.
 *
 * Sealing the same text twice gives different results. `open` throws an error if the text was sealed under
 * neither of the keys, or has been changed; `previous` is for nothing else.
 */
export class SecretBox {
  /** What is sealed under the current key begins with this, and nothing else does. */
  readonly prefix: string;
  /** Whether there is a previous key, under which secrets may be sealed. */
  readonly hasPrevious: boolean;
  readonly #key: Buffer;
  readonly #keys: readonly { id: string; key: Buffer }[];

  constructor(key: SecretKey, previous?: SecretKey) {
    this.#key = deriveKey(key, 'seal');
    this.#keys = [key, ...(previous === undefined ? [] : [previous])].map((each) => ({
      id: idOfKey(each),
      key: deriveKey(each, 'seal'),
    }));
    this.prefix = `v2.${idOfKey(key)}.`;
    this.hasPrevious = previous !== undefined;
  }

  seal(text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return `${this.prefix}${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`;
  }

  open(sealed: string): string {
    const [, id, content = ''] = sealedFormat.exec(sealed) ?? [];
    const bytes = Buffer.from(content, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) {
      throw new Error('A stored secret is not in a format that this version can read');
    }
    // The first version did not name its key.
    for (const known of this.#keys) {
      const text = id === undefined || id === known.id ? opened(known.key, bytes) : undefined;
      if (text !== undefined) return text;
    }
    throw new Error('A stored secret does not open: SECRET_KEY is not the one it was stored under');
  }
}

const sealedFormat = /^(?:v1|v2\.([0-9a-f]{8}))\.([\w-]*)$/;

/** Names a key in what is sealed under it, and says nothing of it. */
function idOfKey(key: SecretKey): string {
  return deriveKey(key, 'id').toString('hex', 0, 4);
}

function opened(key: Buffer, bytes: Buffer): string | undefined {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

/**
 * A token that carries `value` and proves that this service gave it out, for a mailed or shown link.
 *
 * Tokens of one purpose are worth nothing for another. The value can be read by whoever holds the
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
): LinkResult {
  const [value = '', expiry = '', mac = '', ...rest] = token.split('.');
  const given = Buffer.from(mac, 'base64url');
  const isSignedWith = (key: SecretKey) => {
    const expected = linkMac(key, purpose, `${value}.${expiry}`);
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
  if (rest.length > 0 || !keys.some(isSignedWith)) return { ok: false, reason: 'invalid' };
  if (expiry !== '' && now >= Number.parseInt(expiry, 36)) return { ok: false, reason: 'expired' };
  return { ok: true, value: Buffer.from(value, 'base64url').toString('utf8') };
}

/**
 * A short name for something personal, such as a client's address, to compare and count by: the same for the same
 * text under the same key, and without the key nobody can tell what it stands for.
 */
export function pseudonymOf(key: SecretKey, purpose: string, text: string): string {
  const mac = createHmac('sha256', deriveKey(key, `pseudonym:${purpose}`))
    .update(text)
    .digest();
  return mac.subarray(0, PSEUDONYM_BYTES).toString('base64url');
}

function linkMac(key: SecretKey, purpose: string, claim: string): Buffer {
  return createHmac('sha256', deriveKey(key, `link:${purpose}`))
    .update(claim)
    .digest();
}

/** One key for each purpose, so that what is made for one can't be used for another; derived once. */
function deriveKey(key: SecretKey, purpose: string): Buffer {
  const derived = derivedKeys.get(key) ?? new Map<string, Buffer>();
  derivedKeys.set(key, derived);
  const known = derived.get(purpose);
  if (known !== undefined) return known;
  const made = Buffer.from(hkdfSync('sha256', key, '', `headless-form-service:${purpose}`, 32));
  derived.set(purpose, made);
  return made;
}

/** By purpose; there are as many purposes as places in the code that name one. */
const derivedKeys = new WeakMap<SecretKey, Map<string, Buffer>>();

function toBase62(bytes: Buffer): string {
  let number = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < BASE62_CHARS) {
    text = base62.charAt(Number(number % 62n)) + text;
    number /= 62n;
  }
  return text;
}

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62^43 is the first power of 62 above 2^256. */
const BASE62_CHARS = 43;

const SECRET_KEY_BYTES = 32;
const NONCE_BYTES = 12;
/** Long enough that no two share one. */
const PSEUDONYM_BYTES = 16;
const TAG_BYTES = 16;

/** The 32 bytes of SECRET_KEY, as `parseSecretKey` gives them. */
export type SecretKey = Buffer;

export type LinkResult = { ok: true; value: string } | { ok: false; reason: 'invalid' | 'expired' };

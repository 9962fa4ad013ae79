import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

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
 * One key for each purpose, so that what is made for one can't be used for another; derived once.
 *
 * A `KeyObject`, since Node takes five times as long for an HMAC by a key that is a `Buffer`.
 */
export function deriveKey(key: SecretKey, purpose: string): KeyObject {
  const derived = derivedKeys.get(key) ?? new Map<string, KeyObject>();
  derivedKeys.set(key, derived);
  const known = derived.get(purpose);
  if (known !== undefined) return known;
  const bytes = hkdfSync('sha256', key, '', `headless-form-service:${purpose}`, 32);
  const made = createSecretKey(Buffer.from(bytes));
  derived.set(purpose, made);
  return made;
}

/** By purpose; there are as many purposes as places in the code that name one. */
const derivedKeys = new WeakMap<SecretKey, Map<string, KeyObject>>();

const SECRET_KEY_BYTES = 32;

/** The 32 bytes of SECRET_KEY, as `parseSecretKey` gives them. */
export type SecretKey = Buffer;

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

/** Long enough that no two share one. */
const PSEUDONYM_BYTES = 16;

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
  readonly #key: KeyObject;
  readonly #keys: readonly { id: string; key: KeyObject }[];

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
    const text = this.openIfKnown(sealed);
    if (text !== undefined) return text;
    throw new Error('A stored secret does not open: SECRET_KEY is not the one it was stored under');
  }

  /** Undefined for what neither key opens. */
  openIfKnown(sealed: string): string | undefined {
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
    return undefined;
  }
}

const sealedFormat = /^(?:v1|v2\.([0-9a-f]{8}))\.([\w-]*)$/;

/** Names a key in what is sealed under it, and says nothing of it. */
function idOfKey(key: SecretKey): string {
  return deriveKey(key, 'id').export().toString('hex', 0, 4);
}

function opened(key: KeyObject, bytes: Buffer): string | undefined {
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

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey, type SecretKey } from './secret-key.ts';

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

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

import type { SecretBox } from '../../domain/secrets.ts';
import { type SigningSecrets, secretsAt } from '../../store/webhook-secrets.ts';

/**
 * Makes what opens a webhook's secrets: the one that signs at an instant, and after a rotation the one
 * before it for as long as receivers may still use it. `at` is in milliseconds.
 *
 * Opened secrets are kept by their sealed texts, a bounded number of them.
 */
export function createSecretReader(box: SecretBox): SecretReader {
  const opened = new Map<string, string>();
  const open = (sealed: string): string => {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const secret = box.open(sealed);
    if (opened.size >= MAX_OPENED) opened.clear();
    opened.set(sealed, secret);
    return secret;
  };

  return (webhook, at) => {
    const { secret, previousSecret } = secretsAt(webhook, new Date(at));
    return {
      secret: open(secret),
      previousSecret: previousSecret === null ? undefined : open(previousSecret),
    };
  };
}

/** A few MB at most. */
const MAX_OPENED = 10_000;

export type SecretReader = (
  webhook: SigningSecrets,
  at: number,
) => { secret: string; previousSecret: string | undefined };

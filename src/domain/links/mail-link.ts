import { z } from 'zod';
import type { SecretKey } from '../secrets/secret-key.ts';
import { signLink, verifyLink } from './signed-link.ts';

/**
 * Returns the token of a mailed link. It holds what following the link does, for which form and by which address.
 *
 * `expiresAt` is in milliseconds since 1970; null never expires, as links that stop mail must not.
 */
export function mailLinkToken(key: SecretKey, link: MailLink, expiresAt: number | null): string {
  const { purpose, formId, address } = link;
  const claim = JSON.stringify([formId, address]);
  return `${purpose}.${signLink(key, `mail:${purpose}`, claim, expiresAt)}`;
}

/** Reads a token of `mailLinkToken`, made with any of the keys. `now` is in milliseconds. */
export function readMailLink(keys: readonly SecretKey[], token: string, now: number): MailLinkResult {
  const dot = token.indexOf('.');
  const purpose = purposes.safeParse(token.slice(0, Math.max(dot, 0)));
  if (!purpose.success) return { ok: false, reason: 'invalid' };

  const result = verifyLink(keys, `mail:${purpose.data}`, token.slice(dot + 1), now);
  if (!result.ok) return result;
  const [formId, address] = claims.parse(JSON.parse(result.value));
  return { ok: true, link: { purpose: purpose.data, formId, address } };
}

/** The address of the page behind a token. `baseUrl` has no slash at the end. */
export function mailLinkUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/mail/${token}`;
}

/** In place of a form: the mails by which owners sign in. */
export const SIGN_IN_MAILS = 'sign-in';

const purposes = z.enum(['confirm-owner', 'change-owner', 'confirm-recipient', 'stop']);
const claims = z.tuple([z.string(), z.string()]);

export type MailLink = { purpose: MailLinkPurpose; formId: string; address: string };
export type MailLinkPurpose = z.output<typeof purposes>;
export type MailLinkResult = { ok: true; link: MailLink } | { ok: false; reason: 'invalid' | 'expired' };

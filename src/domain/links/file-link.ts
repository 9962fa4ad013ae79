import { z } from 'zod';
import { DAY_MS } from '../durations.ts';
import type { SecretKey } from '../secrets/secret-key.ts';
import { signLink, verifyLink } from './signed-link.ts';

/**
 * The address of a submitted file for whoever has it, without a key, for 30 days from `now`, in milliseconds. `baseUrl`
 * has no slash at the end.
 *
 * It names the form beside the file, so that what stands in the answers to one form never opens a file of another.
 */
export function fileLink({ secretKey, baseUrl, now }: LinkMaker, formId: string, uploadId: string): string {
  const token = signLink(secretKey, PURPOSE, JSON.stringify([formId, uploadId]), now + FILE_LINK_MS);
  return `${baseUrl}/files/${token}`;
}

/** What the token in a link stands for, if it was signed with one of the keys and has not expired. */
export function readFileLink(keys: readonly SecretKey[], token: string, now: number): FileLinkResult {
  const result = verifyLink(keys, PURPOSE, token, now);
  if (!result.ok) return result;
  const [formId, uploadId] = claims.parse(JSON.parse(result.value));
  return { ok: true, formId, uploadId };
}

const PURPOSE = 'file';

/** How long a link works. */
export const FILE_LINK_MS = 30 * DAY_MS;

const claims = z.tuple([z.string(), z.string()]);

/** What links are made with. */
export type LinkMaker = { secretKey: SecretKey; baseUrl: string; now: number };

type FileLinkResult =
  | { ok: true; formId: string; uploadId: string }
  | { ok: false; reason: 'invalid' | 'expired' };

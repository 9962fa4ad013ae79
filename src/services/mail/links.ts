import { NextCall, Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { failed } from '../../domain/errors/failure.ts';
import { type MailLink, readMailLink } from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import type { Queries } from '../../store/database/queries.ts';
import { findMailedLink } from '../../store/mail/mailed-links.ts';
import type { ServiceContext } from '../context.ts';

/** What the token of a link stands for. Throws INVALID_TOKEN. */
export function linkOf({ verifyingKeys, now }: ServiceContext, token: string): MailLink {
  const result = readMailLink(verifyingKeys, token, now());
  if (result.ok) return result.link;
  throw wrongLink(result.reason === 'expired' ? 'The link has expired' : undefined);
}

/** Throws unless a link was given out, and not used or voided since. */
export async function refuseUnusable({ database }: { database: Queries }, token: string): Promise<void> {
  const link = await findMailedLink(database, hashSecret(token));
  if (link === null) throw wrongLink();
  if (link.usedAt !== null) throw linkUsed();
}

export function wrongLink(message = 'The link is not valid') {
  return failed(Reason.INVALID_TOKEN, message, { nextCall: NextCall.NONE });
}

/** The link has done what it stood for, or another has. */
export function linkUsed() {
  return failed(Reason.TOKEN_USED, 'The link has been used', { nextCall: NextCall.NONE });
}

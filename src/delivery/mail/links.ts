import { DAY_MS } from '../../domain/limits/limits.ts';
import { type MailLinkPurpose, mailLinkToken, SIGN_IN_LINK_MS, signInToken } from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import { insertMailedLink } from '../../store/mail/mailed-links.ts';
import type { DeliveryOptions } from '../options.ts';

/** Makes a link for a mail, that confirms something for 30 days, and stores what makes it work. Returns its token. */
export async function newRequestLink(
  options: LinkOptions,
  kind: keyof typeof purposes,
  { formId, to: address }: { formId: string; to: string },
): Promise<string> {
  const { secretKey, now } = options;
  const purpose = purposes[kind];
  const token = mailLinkToken(secretKey, { purpose, formId, address }, now() + LINK_MS);
  await store(options, token, { purpose, formId, address, lifeMs: LINK_MS });
  return token;
}

/** Makes a link to sign in, for 15 minutes, in whichever browser unless `browserHash` names one. Returns its token. */
export async function newSignInLink(
  options: LinkOptions,
  address: string,
  browserHash: string | null,
): Promise<string> {
  const token = signInToken(options.secretKey, address, options.now());
  await store(options, token, {
    purpose: 'sign-in',
    formId: '',
    address,
    browserHash,
    lifeMs: SIGN_IN_LINK_MS,
  });
  return token;
}

async function store({ database, now }: LinkOptions, token: string, link: NewLink): Promise<void> {
  const { lifeMs, browserHash = null, ...about } = link;
  const createdAt = new Date(now());
  const expiresAt = new Date(now() + lifeMs);
  await insertMailedLink(database, {
    ...about,
    tokenHash: hashSecret(token),
    browserHash,
    createdAt,
    expiresAt,
  });
}

const LINK_MS = 30 * DAY_MS;

const purposes = {
  notice: 'confirm-owner',
  confirmation: 'confirm-owner',
  recipient_confirmation: 'confirm-recipient',
  owner_change: 'change-owner',
} satisfies Record<string, MailLinkPurpose>;

type NewLink = {
  purpose: string;
  formId: string;
  address: string;
  browserHash?: string | null;
  lifeMs: number;
};

type LinkOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'now'>;

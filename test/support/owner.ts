import { OwnersService } from '../../gen/headlessforms/v1/owners_pb.js';
import { type MailLink, mailLinkToken, SIGN_IN_LINK_MS, signInToken } from '../../src/domain/links.ts';
import { hashSecret } from '../../src/domain/secrets/new-secrets.ts';
import type { SecretKey } from '../../src/domain/secrets/secret-key.ts';
import type { Queries } from '../../src/store/database/database.ts';
import { insertMailedLink } from '../../src/store/mail/mailed-links.ts';
import type { TestService } from './server.ts';

/**
 * Signs an address in as a mailed link does, and makes it the confirmed owner of these forms. Returns the credential
 * of its session.
 */
export async function givenOwnerSession(
  service: TestService,
  address: string,
  ...formIds: string[]
): Promise<string> {
  await service.database.execute(
    'update forms set owner_email = $1, owner_confirmed_at = now() where id = any($2)',
    [address, formIds],
  );
  const owners = service.client(OwnersService, 'connect', null);
  const { sessionToken } = await owners.signIn({ token: await givenSignInLink(service.database, address) });
  return sessionToken;
}

/** The token of a link to sign in, as it is mailed at `now`; `browser` asked for it, if it is given. */
export async function givenSignInLink(
  database: Queries,
  address: string,
  { key = secretKey, now = Date.now(), browser }: LinkOptions & { browser?: string } = {},
): Promise<string> {
  const token = signInToken(key, address, now);
  const browserHash = browser === undefined ? null : hashSecret(browser);
  await store(
    database,
    token,
    { purpose: 'sign-in', formId: '', address },
    now + SIGN_IN_LINK_MS,
    browserHash,
  );
  return token;
}

/** The token of a link that confirms something, as it is mailed, until `expiresAt`. */
export async function givenMailLink(
  database: Queries,
  link: MailLink,
  { key = secretKey, expiresAt = Date.now() + 60_000 }: LinkOptions & { expiresAt?: number } = {},
): Promise<string> {
  const token = mailLinkToken(key, link, expiresAt);
  await store(database, token, link, expiresAt, null);
  return token;
}

async function store(
  database: Queries,
  token: string,
  { purpose, formId, address }: { purpose: string; formId: string; address: string },
  expiresAt: number,
  browserHash: string | null,
): Promise<void> {
  const times = { createdAt: new Date(), expiresAt: new Date(expiresAt) };
  await insertMailedLink(database, {
    tokenHash: hashSecret(token),
    purpose,
    formId,
    address,
    browserHash,
    ...times,
  });
}

/** The `SECRET_KEY` of services in tests. */
export const secretKey = Buffer.from('ab'.repeat(32), 'hex');

type LinkOptions = { key?: SecretKey; now?: number };

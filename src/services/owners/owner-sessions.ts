import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import Bowser from 'bowser';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import { OwnerSessionSchema, type OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { widestNetworkOf } from '../../domain/addresses/ip-address.ts';
import { failed } from '../../domain/errors/failure.ts';
import { newId } from '../../domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../domain/limits/limits.ts';
import { deviceToken, isDeviceOf, readSignInToken, signLink, verifyLink } from '../../domain/links.ts';
import { rowToMessage } from '../../domain/messages.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { pseudonymOf, type SecretKey } from '../../domain/secrets/secret-key.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { clientAddressOf, type Owner, ownerOf } from '../../rpc/context.ts';
import type { Transaction } from '../../store/database/database.ts';
import { queueMails } from '../../store/deliveries/enqueue-mails.ts';
import { findMailedLink, useMailedLink, voidMailedLinks } from '../../store/mail/mailed-links.ts';
import {
  closeOwnerSessions,
  findOwnerSession,
  insertOwnerSession,
  listOwnerSessions,
  touchOwnerSession,
} from '../../store/owners/owners.ts';
import type { ServiceContext } from '../context.ts';
import { keepReply } from '../idempotency.ts';
import { browserHashOf, requireEmail } from '../request-values.ts';

/**
 * Finds the owner behind a session's token.
 *
 * A token proves by itself that this service made it, so that guessed ones cost the database nothing.
 */
export function createOwnerReader({ database, verifyingKeys, now, log }: OwnerReaderOptions): OwnerReader {
  return {
    async find(text) {
      if (!isToken(verifyingKeys, text, now())) return undefined;
      const tokenHash = hashSecret(text);
      const session = await findOwnerSession(database, tokenHash);
      if (session === null) return undefined;
      const { address, createdAt: signedInAt, expiresAt, usedAt } = session;
      if (now() - (usedAt ?? signedInAt).getTime() > LAST_USE_PRECISION_MS) {
        touchOwnerSession(database, tokenHash).catch((error: unknown) => {
          log.warn({ err: error }, 'could not note the use of an owner’s session');
        });
      }
      return { address, tokenHash, signedInAt, expiresAt };
    },
  };
}

function isToken(keys: readonly SecretKey[], text: string, now: number): boolean {
  if (!text.startsWith(PREFIX) || text.length > MAX_TOKEN_LENGTH) return false;
  return verifyLink(keys, PURPOSE, text.slice(PREFIX.length), now).ok;
}

/** The RPCs by which owners sign in and out. */
export function sessionMethods(context: ServiceContext) {
  const { database, secretKey, now, notifyWorkers, audit } = context;
  return {
    /** Whether the address owns a form is found out when the email is sent, so that nobody can tell by the answer. */
    async requestSignIn({ email: given, deviceToken: token, browser }, call) {
      const email = requireEmail(given);
      const languages = preferredLanguages(call.requestHeader.get('accept-language') ?? '').join();
      const isKnown = isDeviceOf(secretKey, { token, address: email, now: now() });
      // The site that the client is in.
      const askedFrom = pseudonymOf(secretKey, 'asked-from', widestNetworkOf(clientAddressOf(call)));
      const browserHash = browserHashOf(browser);
      const mail = {
        to: email,
        signIn: true,
        languages,
        ...(isKnown ? { isKnown } : { askedFrom }),
        ...(browserHash !== null && { browserHash }),
      };
      // Strangers ask for these emails, so that they wait behind those of forms with a key; known devices don't.
      const queued = { id: newId('dlv', now()), eventId: null, projectId: '', formId: '', keyless: !isKnown };
      const receiver = addressKey(email);
      const reply = await database.transaction(async (tx) => {
        await queueMails(tx, [{ ...queued, kind: 'sign_in', receiver, mail, delaySeconds: 0 }]);
        return keepReply(tx, call, { mailWritten: context.settings.smtpUrl === undefined });
      });
      notifyWorkers();
      return reply;
    },

    async getSignInLink({ token, browser }) {
      const address = addressIn(context, token);
      const link = await findMailedLink(database, hashSecret(token));
      return { address, elsewhere: isElsewhere(link, browser) };
    },

    async signIn({ token, browser, stay, formerSessionToken }, call) {
      const address = addressIn(context, token);
      return database.transaction(async (tx) => {
        const linkHash = hashSecret(token);
        if (isElsewhere(await findMailedLink(tx, linkHash), browser)) throw elsewhere();
        if (!(await useMailedLink(tx, linkHash))) throw used();
        const opened = await openOwnerSession(tx, context, call, { address, stay, formerSessionToken });
        return keepReply(tx, call, opened);
      });
    },

    async listOwnerSessions(_request, call) {
      const { address, tokenHash: own } = ownerOf(call);
      const sessions = await listOwnerSessions(database, address);
      return {
        sessions: sessions.map(({ tokenHash: id, ...session }) => {
          const lastUseTime = timestampFromDate(session.usedAt ?? session.createdAt);
          return rowToMessage(OwnerSessionSchema, session, { id, lastUseTime, current: id === own });
        }),
      };
    },

    async endOwnerSession({ sessionId: tokenHash }, call) {
      const { address } = ownerOf(call);
      // A text that is no such id, perhaps with NUL in it, is not looked up.
      if (!/^[0-9a-f]{64}$/.test(tokenHash)) return {};
      await database.transaction(async (tx) => {
        const ended = await closeOwnerSessions(tx, { tokenHash, address });
        if (ended > 0) await audit.change(tx, call, {});
      });
      return {};
    },

    async signOut({ everywhere }, call) {
      const { tokenHash, address } = ownerOf(call);
      await database.transaction(async (tx) => {
        await (everywhere ? signOutEverywhere(tx, address) : closeOwnerSessions(tx, { tokenHash }));
        await audit.change(tx, call, everywhere ? { detail: 'everywhere' } : {});
      });
      return {};
    },

    async getOwner(_request, call) {
      const { address, expiresAt } = ownerOf(call);
      return { address, expireTime: timestampFromDate(expiresAt) };
    },
  } satisfies Partial<ServiceImpl<typeof OwnersService>>;
}

/** Opens a session of an address that has followed an emailed link, and ends the one that its browser had. */
export async function openOwnerSession(
  tx: Transaction,
  { secretKey, now, audit }: ServiceContext,
  call: HandlerContext,
  { address, stay, formerSessionToken }: { address: string; stay: boolean; formerSessionToken: string },
) {
  const createdAt = new Date(now());
  const expiresAt = new Date(now() + (stay ? LONG_SESSION_MS : SESSION_MS));
  const sessionToken = newSessionToken(secretKey, expiresAt);
  if (formerSessionToken !== '') {
    await closeOwnerSessions(tx, { tokenHash: hashSecret(formerSessionToken) });
  }
  await insertOwnerSession(tx, {
    tokenHash: hashSecret(sessionToken),
    address,
    createdAt,
    expiresAt,
    browser: browserName(call.requestHeader.get('user-agent') ?? ''),
    usedAt: createdAt,
  });
  await audit.change(tx, call, { owner: address, action: 'owner.signed_in' });
  const device = deviceToken(secretKey, address, now());
  return { sessionToken, expireTime: timestampFromDate(expiresAt), address, deviceToken: device };
}

/** Ends all sessions of an address, and voids the links to sign in with it. Returns how many sessions there were. */
export async function signOutEverywhere(tx: Transaction, address: string): Promise<number> {
  await voidMailedLinks(tx, { address, purpose: 'sign-in' });
  return closeOwnerSessions(tx, { address });
}

/** Where a browser asked for a link, it works in that one alone. */
function isElsewhere(
  link: { browserHash: string | null; usedAt: Date | null } | null,
  browser: string,
): boolean {
  if (link === null || link.usedAt !== null) throw used();
  return link.browserHash !== null && link.browserHash !== browserHashOf(browser);
}

/** Such as `Firefox, Linux`; empty for what is no known browser. */
export function browserName(userAgent: string): string {
  if (userAgent === '' || userAgent.length > MAX_AGENT_LENGTH) return '';
  const { browser, os } = Bowser.parse(userAgent);
  return [browser.name ?? '', os.name ?? ''].filter((name) => name !== '').join(', ');
}

function newSessionToken(secretKey: SecretKey, expiresAt: Date): string {
  return `${PREFIX}${signLink(secretKey, PURPOSE, newToken(), expiresAt.getTime())}`;
}

function addressIn({ verifyingKeys, now }: ServiceContext, token: string): string {
  const link = readSignInToken(verifyingKeys, token, now());
  if (link.ok) return addressKey(link.address);
  throw failed(
    Reason.INVALID_TOKEN,
    link.reason === 'expired' ? 'The link has expired' : 'The link is not valid',
  );
}

function used() {
  return failed(Reason.TOKEN_USED, 'The link has been used');
}

function elsewhere() {
  return failed(Reason.INVALID_TOKEN, 'The link works only in the browser that asked for it');
}

const PREFIX = 'own_';
const PURPOSE = 'owner-session';

/** Ours have about 120 characters. */
const MAX_TOKEN_LENGTH = 256;

/** How long an owner stays signed in, and one who wishes to stay so. */
const SESSION_MS = 12 * HOUR_MS;
const LONG_SESSION_MS = 30 * DAY_MS;

/** A session's last use is kept to about a minute, so that one that is busy is not written on each call. */
const LAST_USE_PRECISION_MS = 60_000;

/** Those of browsers have some 200 characters. */
const MAX_AGENT_LENGTH = 512;

export type OwnerReader = {
  /** Whose session this is; undefined if nobody's, ended or expired. */
  find(text: string): Promise<Owner | undefined>;
};

export type OwnerReaderOptions = Pick<ServiceContext, 'database' | 'verifyingKeys' | 'now' | 'log'>;

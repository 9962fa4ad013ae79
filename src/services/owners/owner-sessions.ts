import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { Reason } from '../../../gen/headlessforms/v1/errors_pb.js';
import type { OwnersService } from '../../../gen/headlessforms/v1/owners_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { networkOf } from '../../domain/addresses/ip-address.ts';
import { failed } from '../../domain/errors/failure.ts';
import { newId } from '../../domain/ids.ts';
import { HOUR_MS } from '../../domain/limits/limits.ts';
import {
  deviceToken,
  isDeviceOf,
  readSignInToken,
  SIGN_IN_LINK_MS,
  signLink,
  verifyLink,
} from '../../domain/links.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { pseudonymOf, type SecretKey } from '../../domain/secrets/secret-key.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { clientAddressOf, type Owner, ownerOf } from '../../rpc/context.ts';
import type { Database } from '../../store/database/database.ts';
import { queueMails } from '../../store/deliveries/delivery-inserts.ts';
import {
  closeOwnerSessions,
  findOwnerSession,
  isSignInLinkUsed,
  openOwnerSession,
} from '../../store/owners/owner-sessions.ts';
import type { ServiceContext } from '../context.ts';
import { requireEmail } from '../request-values.ts';

/**
 * Finds the owner behind a session's token.
 *
 * A token proves by itself that this service made it, so that guessed ones cost the database nothing.
 */
export function createOwnerReader({ database, verifyingKeys, now }: OwnerReaderOptions): OwnerReader {
  return {
    async find(text) {
      if (!text.startsWith(PREFIX) || text.length > MAX_TOKEN_LENGTH) return undefined;
      if (!verifyLink(verifyingKeys, PURPOSE, text.slice(PREFIX.length), now()).ok) return undefined;
      const tokenHash = hashSecret(text);
      const session = await findOwnerSession(database, tokenHash);
      return session === null ? undefined : { ...session, tokenHash };
    },
  };
}

/** The RPCs by which owners sign in and out. */
export function sessionMethods(context: ServiceContext) {
  const { database, secretKey, verifyingKeys, now, notifyWorkers, audit } = context;
  return {
    /** Whether the address owns a form is found out when the mail is sent, so that nobody can tell by the answer. */
    async requestSignIn({ email, deviceToken: token }, call) {
      requireEmail(email);
      const languages = preferredLanguages(call.requestHeader.get('accept-language') ?? '').join();
      const isKnown = isDeviceOf(verifyingKeys, { token, address: email, now: now() });
      const askedFrom = pseudonymOf(secretKey, 'asked-from', networkOf(clientAddressOf(call)));
      await queueMails(database, [signInMail({ email, languages, time: now(), isKnown, askedFrom })]);
      notifyWorkers();
      return { mailWritten: context.settings.smtpUrl === undefined };
    },

    async getSignInLink({ token }) {
      const address = addressIn(context, token);
      if (await isSignInLinkUsed(database, hashSecret(token))) throw used();
      return { address };
    },

    async signIn({ token }, call) {
      const address = addressIn(context, token);
      const createdAt = new Date(now());
      const expiresAt = new Date(now() + SESSION_MS);
      const sessionToken = newSessionToken(secretKey, expiresAt);
      const link = { tokenHash: hashSecret(token), expiresAt: new Date(now() + SIGN_IN_LINK_MS) };
      const session = { tokenHash: hashSecret(sessionToken), address, createdAt, expiresAt };
      await database.transaction(async (tx) => {
        if (!(await openOwnerSession(tx, link, session))) throw used();
        await audit.change(tx, call, { owner: address });
      });
      const device = deviceToken(secretKey, address, now());
      return { sessionToken, expireTime: timestampFromDate(expiresAt), address, deviceToken: device };
    },

    async signOut({ everywhere }, call) {
      const { tokenHash, address } = ownerOf(call);
      await database.transaction(async (tx) => {
        await closeOwnerSessions(tx, everywhere ? { address } : { tokenHash });
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

/** Strangers ask for these mails, so that they wait behind those of forms with a key; known devices don't. */
function signInMail({ email, languages, time, isKnown, askedFrom }: AskedMail) {
  return {
    id: newId('dlv', time),
    eventId: null,
    projectId: '',
    formId: '',
    keyless: !isKnown,
    kind: 'sign_in',
    receiver: addressKey(email),
    mail: { to: email, signIn: true, languages, ...(isKnown ? { isKnown } : { askedFrom }) },
    delaySeconds: 0,
  };
}

function newSessionToken(secretKey: SecretKey, expiresAt: Date): string {
  return `${PREFIX}${signLink(secretKey, PURPOSE, newToken(), expiresAt.getTime())}`;
}

function addressIn({ verifyingKeys, now }: ServiceContext, token: string): string {
  const link = readSignInToken(verifyingKeys, token, now());
  if (link.ok) return addressKey(link.address);
  throw failed(
    Reason.INVALID_TOKEN,
    link.reason === 'expired' ? 'The link has expired' : 'The link is not right',
  );
}

function used() {
  return failed(Reason.TOKEN_USED, 'The link has been used');
}

const PREFIX = 'own_';
const PURPOSE = 'owner-session';

/** Ours have about 120 characters. */
const MAX_TOKEN_LENGTH = 256;

/** How long an owner stays signed in. */
const SESSION_MS = 12 * HOUR_MS;

type AskedMail = {
  email: string;
  /** As in `Accept-Language`. */
  languages: string;
  time: number;
  /** Whether a device that has signed in with the address asks. */
  isKnown: boolean;
  /** A pseudonym of the client's network. */
  askedFrom: string;
};

export type OwnerReader = {
  /** Whose session this is; undefined if nobody's, ended or expired. */
  find(text: string): Promise<Owner | undefined>;
};

export type OwnerReaderOptions = {
  database: Database;
  verifyingKeys: readonly SecretKey[];
  now: () => number;
};

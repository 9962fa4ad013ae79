import type { HandlerContext } from '@connectrpc/connect';
import type {
  GiveRespondentCodeRequest,
  SendRespondentCodeRequest,
} from '../../../gen/headlessforms/internal/v1/hosted_pb.js';
import { addressKey } from '../../domain/addresses/email-address.ts';
import { widestNetworkOf } from '../../domain/addresses/ip-address.ts';
import { invalid, limited, notFound } from '../../domain/errors/failure.ts';
import { newId } from '../../domain/ids.ts';
import { browserLength, DAY_MS, HOUR_MS } from '../../domain/limits/limits.ts';
import { pageLimits } from '../../domain/methods.ts';
import { hashSecret, newToken } from '../../domain/secrets/new-secrets.ts';
import { pseudonymOf } from '../../domain/secrets/secret-key.ts';
import {
  CODE_MS,
  CODE_TRIES,
  CODES_A_SESSION,
  codeAllowanceOfForm,
  codeAllowances,
  FORM_VISIT_MS,
  isRespondentCode,
  type VerifiedRespondent,
} from '../../domain/sessions/respondent.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import { queueMails } from '../../store/deliveries/enqueue-mails.ts';
import { countAgainst } from '../../store/mail/mail-allowances.ts';
import {
  type CodePlace,
  findRespondent,
  insertCode,
  keepCode,
  tryCode,
} from '../../store/mail/mailed-links.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { lockSession, updateSession } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { keepReply } from '../idempotency.ts';
import { badParameter, requireEmail } from '../request-values.ts';

/**
 * Whether a page needs a code of its respondent, and who has given one in the browser. A form that takes one submission
 * of each mailbox asks its visitors; a session asks whom it is for.
 */
export async function findStanding(
  { database }: Pick<ServiceContext, 'database'>,
  page: RespondentPage,
  browser: string,
): Promise<RespondentStanding> {
  const place = placeOf(page);
  if (place === undefined) return { isNeeded: false, isSent: false };
  if (!isBrowser(browser)) return { isNeeded: true, isSent: false };
  const { given, isSent } = await findRespondent(database, { ...place, browserHash: hashSecret(browser) });
  const email = page.session?.respondent?.email;
  const isOther = email !== undefined && given !== undefined && addressKey(email) !== given.address;
  if (given === undefined || isOther) return { isNeeded: true, isSent };
  const verifiedAt = given.usedAt.toISOString();
  const respondent = { method: 'email_code' as const, email: email ?? given.address, verifiedAt };
  return { isNeeded: false, isSent: false, respondent };
}

/**
 * Emails a code to the respondent of a session, or to the address that the visitor of a form's page has entered. All
 * bounds are taken before anything is queued.
 */
export async function sendCode(
  context: ServiceContext,
  page: RespondentPage,
  { email, browser }: SendRespondentCodeRequest,
  call: HandlerContext,
) {
  const { database, secretKey, now, notifyWorkers } = context;
  const { form, session } = page;
  const place = requirePlace(page);
  requireBrowser(browser);
  const to = requireEmail(session?.respondent?.email ?? email);
  if (place.sessionId === null) await context.limitRate(call, pageLimits.code, form.id);
  else if (codesOf(session) >= CODES_A_SESSION) throw tooManyOfSession(session);

  const deliveryId = newId('dlv', now());
  const askedFrom = pseudonymOf(secretKey, 'asked-from', widestNetworkOf(clientAddressOf(call)));
  const id = hashSecret(newToken());
  const languages = preferredLanguages(call.requestHeader.get('accept-language') ?? '').join();
  const reply = await database.transaction(async (tx) => {
    if (place.sessionId !== null) {
      const locked = await lockSession(tx, place.sessionId);
      if (locked?.respondent == null) throw notFound('session');
      const codes = codesOf(locked) + 1;
      if (codes > CODES_A_SESSION) throw tooManyOfSession(locked);
      await updateSession(tx, locked.id, { respondent: { ...locked.respondent, codes } });
    }
    const allowances = codeAllowances(to, askedFrom);
    if (place.sessionId === null) allowances.push(codeAllowanceOfForm(form.id));
    for (const allowance of allowances) {
      const waitMs = await countAgainst(tx, deliveryId, allowance);
      if (waitMs !== null) throw limited('codes', 'There were too many codes today', waitMs / 1000);
    }
    await insertCode(tx, {
      ...place,
      browserHash: hashSecret(browser),
      id,
      address: addressKey(to),
      lifeMs: CODE_MS,
    });
    await queueMails(tx, [
      {
        id: deliveryId,
        eventId: null,
        projectId: form.projectId,
        formId: form.id,
        keyless: false,
        kind: 'respondent_code',
        // The log of deliveries outlives the session: it holds no address of somebody who may never answer.
        receiver: pseudonymOf(secretKey, 'respondent', addressKey(to)),
        mail: { to, languages, codeId: id },
        delaySeconds: 0,
      },
    ]);
    return keepReply(tx, call, { mailWritten: context.settings.smtpUrl === undefined });
  });
  notifyWorkers();
  return reply;
}

/** Takes a code. A try counts though the code is another. */
export async function giveCode(
  { database, verifyingKeys }: ServiceContext,
  page: RespondentPage,
  { code, browser }: GiveRespondentCodeRequest,
  call: HandlerContext,
) {
  const place = requirePlace(page);
  requireBrowser(browser);
  const isGiven = await database.transaction(async (tx) => {
    const asked = { ...place, browserHash: hashSecret(browser), maxTries: CODE_TRIES };
    const id = await tryCode(tx, asked);
    if (id === null || !isRespondentCode(verifyingKeys, id, code)) return false;
    const ofSession = { until: page.session?.expiresAt, lifeMs: HOUR_MS };
    await keepCode(tx, id, place.sessionId === null ? { lifeMs: FORM_VISIT_MS } : ofSession);
    await keepReply(tx, call, {});
    return true;
  });
  if (!isGiven)
    throw invalid([{ path: 'code', code: 'custom', message: 'Expected the code from the latest email' }]);
  return {};
}

/** What a code of a page is for; undefined if the page needs none. */
function placeOf({ form, session }: RespondentPage): Omit<CodePlace, 'browserHash'> | undefined {
  const isVisitors = session === undefined || session.keylessBytes !== null;
  const respondent = session?.respondent ?? null;
  if (!isVisitors) return respondent === null ? undefined : { formId: form.id, sessionId: session.id };
  const isAsked = form.version.definition.settings.onePerRespondent === true || respondent !== null;
  return isAsked ? { formId: form.id, sessionId: null } : undefined;
}

function requirePlace(page: RespondentPage): Omit<CodePlace, 'browserHash'> {
  const place = placeOf(page);
  if (place === undefined) throw notFound('page that asks for a code');
  return place;
}

function requireBrowser(browser: string): void {
  const message = `Expected ${browserLength.min} to ${browserLength.max} characters`;
  if (!isBrowser(browser)) throw badParameter('browser', 'custom', message);
}

function isBrowser(browser: string): boolean {
  return browser.length >= browserLength.min && browser.length <= browserLength.max;
}

function codesOf(session: Session | undefined): number {
  return session?.respondent?.codes ?? 0;
}

function tooManyOfSession(session: Session | undefined) {
  const restMs = session === undefined ? DAY_MS : session.expiresAt.getTime() - session.readAt.getTime();
  return limited('codes_of_session', `This session has had ${CODES_A_SESSION} codes`, restMs / 1000);
}

/** A session, or the form whose own page it is. */
export type RespondentPage = { form: PublishedForm; session: Session | undefined };

export type RespondentStanding = {
  /** Whether a code is needed that was not given. */
  isNeeded: boolean;
  /** Whether one was emailed that can be given. */
  isSent: boolean;
  respondent?: VerifiedRespondent | undefined;
};

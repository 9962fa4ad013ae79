import { mailLinkUrl } from '../../domain/delivery/mail-link.ts';
import { addressKey, isEmailAddress } from '../../domain/email-address.ts';
import type { Claim } from '../../store/delivery-queue.ts';
import { findAnyForm } from '../../store/forms.ts';
import { isMailStopped, takeMailQuota } from '../../store/mail.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { type MailMessage, mailMessageSchema } from './message.ts';
import { openMailTransport } from './transport.ts';

/** Opens what sends mails, by SMTP or into files, within the limits of each address. */
export function createMailSender(options: MailSenderOptions): MailSender {
  const { database, settings, log } = options;
  const transport = openMailTransport(settings, log);

  return {
    async send(claim, stored, signal) {
      signal.throwIfAborted();
      const mail = mailMessageSchema.parse(stored);
      if (!isEmailAddress(mail.to)) return { outcome: 'dropped', error: 'Not an address.' };
      if (await isMailStopped(database, { address: mail.to, formId: claim.formId })) {
        return { outcome: 'dropped', error: 'The address wants no more mail.' };
      }
      const wait = await waitForQuota(options, claim, mail.to);
      if (wait !== null) return { outcome: 'waits', ...wait };

      try {
        const content = { ...headersOf(settings, claim, mail), text: mail.text, html: mail.html };
        const response = await transport.send({ ...content, signal }, claim.id);
        return { outcome: 'delivered', responseStatus: statusIn(response), responseBody: response };
      } catch (error) {
        if (signal.aborted) throw error;
        if (isRefusedLogin(error)) {
          log.error(
            { err: error },
            'The mail server refuses the login in SMTP_URL; the mail is tried again.',
          );
        }
        return failureOf(error);
      }
    },
    close: () => transport.close(),
  };
}

/**
 * Counts the mail against what its address may get in a day; retries are not counted again. Null if
 * it may be sent.
 */
async function waitForQuota({ database }: MailSenderOptions, claim: Claim, to: string): Promise<Wait | null> {
  if (claim.step > 0) return null;
  const quota = await quotaOf(claim, to, async () => findAnyForm(database, claim.formId));
  if (quota === null) return null;
  const wait = await takeMailQuota(database, { address: to, ...quota });
  return wait === null ? null : { error: quota.reason, ...wait };
}

async function quotaOf(claim: Claim, to: string, findForm: () => ReturnType<typeof findAnyForm>) {
  if (requestKinds.has(claim.kind)) {
    return {
      kind: 'confirmation',
      limit: REQUESTS_A_DAY,
      reason: 'Waits: the address was asked to confirm often today.',
    };
  }
  if (claim.kind !== 'owner') return null;
  const form = await findForm();
  const isOwner = form !== null && form.ownerEmail !== null && addressKey(form.ownerEmail) === addressKey(to);
  if (!isOwner || form.ownerConfirmedAt !== null) return null;
  return {
    kind: 'owner',
    limit: UNCONFIRMED_A_DAY,
    reason: 'Waits: the owner has not confirmed the address.',
  };
}

const requestKinds = new Set(['confirmation', 'recipient_confirmation', 'owner_change']);

/** Over the whole service, so that nobody can flood a stranger by making many forms. */
const REQUESTS_A_DAY = 3;

/** Enough to see that a form works before confirming. */
const UNCONFIRMED_A_DAY = 20;

/** Addresses are passed as objects, so that nodemailer parses no text for them. */
function headersOf(settings: MailSenderOptions['settings'], claim: Claim, mail: MailMessage) {
  const { mailFrom, baseUrl } = settings;
  const domain = mailFrom.slice(mailFrom.lastIndexOf('@') + 1);
  return {
    from: { name: '', address: mailFrom },
    to: { name: '', address: mail.to },
    subject: mail.subject,
    ...(mail.replyTo !== undefined && { replyTo: { name: '', address: mail.replyTo } }),
    messageId: `<${claim.id}@${domain}>`,
    headers: {
      'Auto-Submitted': claim.kind === 'autoresponse' ? 'auto-replied' : 'auto-generated',
      'List-Unsubscribe': { prepared: true, value: `<${mailLinkUrl(baseUrl, mail.stopToken)}>` },
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    },
  };
}

/** A 5xx answer is final, except for a refused login: an operator can correct SMTP_URL. */
function failureOf(error: unknown): Outcome {
  const { responseStatus, response } = smtpAnswer(error);
  const final = responseStatus !== undefined && responseStatus >= 500 && !isRefusedLogin(error);
  return {
    outcome: 'failed',
    error:
      responseStatus === undefined
        ? "The mail server can't be reached."
        : `The mail server answered ${responseStatus}.`,
    final,
    responseStatus,
    responseBody: response?.slice(0, MAX_RESPONSE_CHARS),
  };
}

const MAX_RESPONSE_CHARS = 2048;

function isRefusedLogin(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAUTH';
}

function smtpAnswer(error: unknown): { responseStatus?: number; response?: string } {
  if (!(error instanceof Error)) return {};
  return {
    ...('responseCode' in error &&
      typeof error.responseCode === 'number' && { responseStatus: error.responseCode }),
    ...('response' in error && typeof error.response === 'string' && { response: error.response }),
  };
}

function statusIn(response: string): number | undefined {
  const [status] = /^\d{3}/.exec(response) ?? [];
  return status === undefined ? undefined : Number(status);
}

export type MailSender = {
  /**
   * Sends one mail, unless its address wants none or has had enough for today. Throws only if `signal` is
   * aborted or the database fails.
   */
  send(claim: Claim, stored: unknown, signal: AbortSignal): Promise<Outcome>;
  close(): void;
};

export type MailSenderOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'log'>;

type Wait = { error: string; waitMs: number };

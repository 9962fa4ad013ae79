import { isEmailAddress } from '../../domain/addresses/email-address.ts';
import { mailLinkUrl } from '../../domain/links/mail-link.ts';
import type { Claim } from '../../store/deliveries/claim.ts';
import type { DeliveryOptions } from '../options.ts';
import type { Outcome } from '../worker/attempt.ts';
import { type DeferredMailOptions, readMail } from './deferred-mails.ts';
import { findMailRefusal } from './limits.ts';
import { type MailMessage, mailMessageSchema } from './message.ts';
import { openMailTransport } from './transport.ts';

/** Opens what sends mails, by SMTP or into files, within the limits of each address. */
export function createMailSender(options: MailSenderOptions): MailSender {
  const { settings, log } = options;
  const transport = openMailTransport(settings, log);

  return {
    async send(claim, stored, signal) {
      signal.throwIfAborted();
      const addressee = recipientSchema.parse(stored);
      const { to } = addressee;
      if (!isEmailAddress(to)) return { outcome: 'dropped', error: 'Not an address.' };
      const refusal = await findMailRefusal(options, claim, addressee);
      if (refusal !== null) return refusal;

      const mail = await readMail(options, claim.formId, stored);
      if (mail === null) return { outcome: 'dropped', error: 'What it is about was removed.' };

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
          return failureOf(error);
        }
        const failure = failureOf(error);
        const { error: reason, responseStatus: status } = failure;
        log.warn({ delivery: claim.id, code: codeOf(error), status }, `A mail could not be sent: ${reason}`);
        return failure;
      }
    },
    close: () => transport.close(),
  };
}

const recipientSchema = mailMessageSchema.pick({ to: true, countedAs: true });

/** Addresses are passed as objects, so that nodemailer parses no text for them. */
function headersOf(settings: MailSenderOptions['settings'], claim: Claim, mail: MailMessage) {
  const { mailFrom, baseUrl } = settings;
  const domain = mailFrom.slice(mailFrom.lastIndexOf('@') + 1);
  return {
    from: { name: unencoded(mail.senderName ?? ''), address: mailFrom },
    to: { name: '', address: mail.to },
    subject: unencoded(mail.subject),
    ...(mail.replyTo !== undefined && { replyTo: { name: '', address: mail.replyTo } }),
    messageId: `<${claim.id}@${domain}>`,
    headers: {
      'Auto-Submitted': claim.kind === 'autoresponse' ? 'auto-replied' : 'auto-generated',
      'List-Unsubscribe': { prepared: true, value: `<${mailLinkUrl(baseUrl, mail.stopToken)}>` },
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
    },
  };
}

/**
 * The same text, of which mail programs decode no part: nodemailer sends what is an encoded word already (RFC 2047) as
 * it is, so that one could hold a link that was not seen. The character between has no width.
 */
function unencoded(text: string): string {
  return text.replaceAll('=?', '=\u2060?');
}

/** A 5xx answer is final, except for a refused login: an operator can correct SMTP_URL. */
function failureOf(error: unknown): Extract<Outcome, { outcome: 'failed' }> {
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
  return codeOf(error) === 'EAUTH';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
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

export type MailSenderOptions = DeferredMailOptions & Pick<DeliveryOptions, 'log'>;

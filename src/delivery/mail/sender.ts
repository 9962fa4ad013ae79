import { isEmailAddress } from '../../domain/addresses/email-address.ts';
import { type ConnectionCause, connectionCause } from '../../domain/errors/connection-causes.ts';
import { mailLinkUrl } from '../../domain/links.ts';
import { isLocalFault } from '../../store/database/faults.ts';
import type { Claim, QueuedMailContent } from '../../store/deliveries/claimed.ts';
import type { DeliveryOptions } from '../options.ts';
import { type Outcome, refused } from '../outcome.ts';
import { type ComposeOptions, composeMail, MakingFailed, queuedMailSchema } from './compose.ts';
import { findMailRefusal } from './may-send.ts';
import type { MailMessage } from './message.ts';
import { MailServerLate, openMailTransport } from './transport.ts';

/** Opens what sends emails, by SMTP or into files, within the limits of each address. */
export function createMailSender(options: MailSenderOptions): MailSender {
  const { settings } = options;
  const transport = openMailTransport(options);

  return {
    async send(claim, content, signal) {
      signal.throwIfAborted();
      const addressee = recipientSchema.parse(content.mail);
      const { to } = addressee;
      if (!isEmailAddress(to)) return refused('no_address');
      const refusal = await findMailRefusal(options, claim, addressee);
      if (refusal !== null) return refusal;

      const mail = await composeMail(options, claim, content).catch((error: unknown) => {
        if (!(error instanceof MakingFailed)) throw error;
        options.log.error({ err: error, delivery: claim.id }, 'Could not make an email; it has failed.');
        return error;
      });
      if (mail instanceof MakingFailed) return refused('mail_not_made');
      if (mail === null) return refused('subject_gone');

      try {
        const written = { ...headersOf(settings, claim, mail), text: mail.text, html: mail.html };
        const response = await transport.send({ ...written, signal }, claim.id);
        return {
          stage: 'answered',
          next: 'done',
          responseStatus: statusIn(response),
          responseBody: response,
        };
      } catch (error) {
        if (signal.aborted || isLocalFault(error)) throw error;
        return failureOf(error);
      }
    },
    connections: transport.connections,
    close: () => transport.close(),
  };
}

const recipientSchema = queuedMailSchema.pick({ to: true, countedAs: true });

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
 * The same text, written so that mail programs decode no part of it: nodemailer sends what is an encoded word already
 * (RFC 2047) as it is, so that one could hold a link that was not seen. The character between has no width.
 */
function unencoded(text: string): string {
  return text.replaceAll('=?', '=\u2060?');
}

function failureOf(error: unknown): Outcome {
  const { responseStatus, response } = smtpAnswer(error);
  const cause = connectionCause(error);
  // A 421 after the message is about the message, not the connection.
  const isBusy = responseStatus === 421 && codeOf(error) !== 'EMESSAGE';
  const facts = {
    code: cause.code,
    ...(cause.advice && { hint: cause.advice }),
    ...(isBusy && { hint: 'If it takes fewer connections, say how many in SMTP_URL: ?maxConnections=2.' }),
    ...(codeOf(error) === 'EAUTH' && !isBusy && { hint: 'The mail server refuses the login in SMTP_URL.' }),
  };
  const responseBody = response?.slice(0, MAX_RESPONSE_CHARS);
  const known = { error: reasonOf(error, cause, responseStatus), responseBody, facts };
  if (responseStatus === undefined) return { stage: 'sent', ...known };
  const next = isBusy ? 'wait' : isUnknownRecipient(error) ? 'end' : 'retry';
  return { stage: 'answered', next, responseStatus, ...known };
}

const MAX_RESPONSE_CHARS = 2048;

function reasonOf(error: unknown, { says }: ConnectionCause, responseStatus: number | undefined): string {
  if (responseStatus !== undefined) return `The mail server answered ${responseStatus}.`;
  if (error instanceof MailServerLate) return error.message;
  return `The mail server can't be reached: ${says.replace(/^The|^No/, (word) => word.toLowerCase())}.`;
}

/**
 * Whether the answer to RCPT TO says that there is no such mailbox, which no later attempt changes. A 5xx about
 * anything else ends: a sender, a login, a policy, a list of senders or a full mailbox can be corrected.
 */
function isUnknownRecipient(error: unknown): boolean {
  if (!(error instanceof Error && 'command' in error && error.command === 'RCPT TO')) return false;
  const { responseStatus = 0, response = '' } = smtpAnswer(error);
  // The enhanced code (RFC 3463): servers refuse senders and networks after RCPT TO, too, and tell by it that they do.
  const [, about] = /^\d{3}[ -]5\.(\d{1,3}\.\d{1,3})/.exec(response) ?? [];
  return mailboxRefusals.has(responseStatus) && (about === undefined || mailboxProblems.has(about));
}

/**
 * RFC 5321: no such mailbox, not a local one, not a name of a mailbox. Not 552, too much stored, nor 554, no reason.
 */
const mailboxRefusals = new Set([550, 551, 553]);

/** No such mailbox, no such domain, no address, moved, a domain that takes no email (RFC 7505); mailbox disabled. */
const mailboxProblems = new Set(['1.1', '1.2', '1.3', '1.6', '1.10', '2.1']);

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
   * Sends one email, unless its address wants none or has had enough for today. Throws only if `signal` is
   * aborted, or the database, this machine or its network fails.
   */
  send(claim: Claim, content: QueuedMailContent, signal: AbortSignal): Promise<Outcome>;
  /** How many emails may be sent at once. */
  connections: number;
  close(): void;
};

export type MailSenderOptions = ComposeOptions &
  Pick<DeliveryOptions, 'log' | 'openMailSocket' | 'smtpTimes'>;

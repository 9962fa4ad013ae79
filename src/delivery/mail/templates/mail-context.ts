import { mailLinkToken, mailLinkUrl } from '../../../domain/mail-link.ts';
import type { SecretKey } from '../../../domain/secrets.ts';
import type { MailMessage } from '../message.ts';
import { type Letter, renderLetter } from './letter.ts';
import { oneLine } from './plain.ts';

/** Writes a mail with the link that stops mails of this form to its reader. */
export function writeMail(context: MailContext, content: MailContent): MailMessage {
  const { secretKey, baseUrl, formId, to } = context;
  const { subject, replyTo, ...letter } = content;
  const stopToken = mailLinkToken(secretKey, { purpose: 'stop', formId, address: to }, null);
  return {
    to,
    subject: oneLine(subject),
    ...renderLetter({
      ...letter,
      title: oneLine(letter.title),
      footer: oneLine(letter.footer, MAX_FOOTER_CHARS),
      stopUrl: mailLinkUrl(baseUrl, stopToken),
    }),
    ...(replyTo !== undefined && { replyTo }),
    stopToken,
  };
}

const MAX_FOOTER_CHARS = 400;

/** To whom a mail goes, about which form, and what links need. */
export type MailContext = { secretKey: SecretKey; baseUrl: string; formId: string; to: string };

type MailContent = Omit<Letter, 'stopUrl'> & { subject: string; replyTo?: string };

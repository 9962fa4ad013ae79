import type { MailMessage } from '../message.ts';
import { type MailContext, writeMail } from './mail-context.ts';

/** Tells an owner that a webhook was turned off. Of its URL only the host is named: the rest may be secret. */
export function webhookOffMail(context: MailContext, webhook: WebhookFacts): MailMessage {
  const { id, url, reason } = webhook;
  return writeMail(context, {
    subject: `A webhook was turned off: ${new URL(url).host}`,
    title: 'A webhook was turned off',
    paragraphs: [
      `Nothing is sent to ${new URL(url).host} any more (webhook ${id}). ${reason}`,
      'Submissions are kept. Once the receiver works again, turn the webhook on and replay what failed.',
    ],
    footer: 'Sent to you as an owner of a form that this webhook serves.',
  });
}

type WebhookFacts = { id: string; url: string; reason: string };

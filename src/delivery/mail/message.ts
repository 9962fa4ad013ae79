import { z } from 'zod';

/** The shape of a mail as a delivery holds it: everything that differs from mail to mail. */
export const mailMessageSchema = z.object({
  to: z.string(),
  subject: z.string(),
  text: z.string(),
  html: z.string(),
  replyTo: z.string().exactOptional(),
  /** The token with which the reader stops such mails. */
  stopToken: z.string(),
});

export type MailMessage = z.output<typeof mailMessageSchema>;

/** What mails there are. The log of deliveries shows these words. */
export type MailKind =
  | 'owner'
  | 'autoresponse'
  | 'confirmation'
  | 'recipient_confirmation'
  | 'owner_change'
  | 'webhook_off'
  | 'demo';

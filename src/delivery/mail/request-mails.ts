import { type MailLinkPurpose, mailLinkToken, mailLinkUrl } from '../../domain/delivery/mail-link.ts';
import { type MailContext, type MailMessage, oneLine, writeMail } from './message.ts';

/**
 * The mail that asks an address to confirm something about a form. Its reader may not know the form, so
 * it quotes nothing of the form's creator but the form's name, without links.
 *
 * `now` is in milliseconds; the link works for 30 days.
 */
export function requestMail(
  context: MailContext,
  { kind, formName, now }: { kind: RequestKind; formName: string; now: number },
): MailMessage {
  const { secretKey, baseUrl, formId, to } = context;
  const name = withoutLinks(formName);
  const { purpose, subject, ask, button } = requests[kind];
  const token = mailLinkToken(secretKey, { purpose, formId, address: to }, now + LINK_MS);
  return writeMail(context, {
    subject: `${subject}: ${name}`,
    title: subject,
    paragraphs: [ask(name), 'If you did not expect this, do nothing.'],
    button: { label: button, url: mailLinkUrl(baseUrl, token) },
    footer: `Sent to ${to} because somebody gave this address to the form service.`,
  });
}

/** Text by a stranger, for a mail that the reader has not asked for: one line with nothing to click. */
function withoutLinks(text: string): string {
  const words = oneLine(text, MAX_STRANGER_CHARS).split(' ');
  return words.map((word) => (linkLike.test(word) ? '[…]' : word)).join(' ');
}

const MAX_STRANGER_CHARS = 100;

/** What mail programs turn into links: addresses of pages and people, in any script. */
const linkLike = /:\/\/|@|[\p{L}\p{N}][.\u3002\uff0e\uff61][\p{L}\p{N}]{2,}|^www\b/iu;

const LINK_MS = 30 * 24 * 60 * 60 * 1000;

const requests: Record<RequestKind, Request> = {
  confirmation: {
    purpose: 'confirm-owner',
    subject: 'Confirm your form',
    ask: (name) => `The form "${name}" is published, and this address is to get its submissions.`,
    button: 'Confirm this address',
  },
  recipient_confirmation: {
    purpose: 'confirm-recipient',
    subject: 'Confirm that you want submissions',
    ask: (name) => `The owner of the form "${name}" wants its submissions sent to this address.`,
    button: 'Get these mails',
  },
  owner_change: {
    purpose: 'change-owner',
    subject: 'Take over a form',
    ask: (name) => `This address was named as the owner of the form "${name}".`,
    button: 'Become the owner',
  },
};

export type RequestKind = 'confirmation' | 'recipient_confirmation' | 'owner_change';

type Request = { purpose: MailLinkPurpose; subject: string; ask: (name: string) => string; button: string };

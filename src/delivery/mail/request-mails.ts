import {
  type MailLinkPurpose,
  mailLinkToken,
  mailLinkUrl,
  SIGN_IN_MAILS,
} from '../../domain/delivery/mail-link.ts';
import { signInToken, signInUrl } from '../../domain/sign-in-link.ts';
import { lettersAndDigits, withoutLinks } from '../../text/untrusted.ts';
import { type MailContext, type MailMessage, writeMail } from './message.ts';

/**
 * The mail that asks an address to confirm something about a form. Its reader may not know the form, so
 * it quotes nothing of the form's creator but the form's name, without links.
 *
 * `pageUrl` is where a form that is to be confirmed can be filled in, if it has a page. `now` is in milliseconds; the
 * link works for 30 days.
 */
export function requestMail(
  context: MailContext,
  { kind, formName, pageUrl, now }: RequestedMail,
): MailMessage {
  const name = withoutLinks(formName);
  const { subject, ask } = requests[kind];
  return writeMail(context, {
    subject: `${subject}: ${name}`,
    title: subject,
    paragraphs: [
      ask(name),
      ...(pageUrl === undefined ? [] : [`Its page, for you to share: ${pageUrl}`]),
      'If you did not expect this, do nothing.',
    ],
    button: confirmButton(context, kind, now),
    footer: footerOf(context),
  });
}

/**
 * The mail that tells the owner of a form made without a key that answers wait until the address has confirmed.
 * It quotes nothing of them, and of the form only the letters and digits of its name.
 *
 * `waiting` is how many answers wait; `now` is in milliseconds; the link works for 30 days.
 */
export function noticeMail(
  context: MailContext,
  { formName, waiting, now }: { formName: string; waiting: number; now: number },
): MailMessage {
  const name = lettersAndDigits(formName);
  const form = name === '' ? 'a form' : `the form "${name}"`;
  return writeMail(context, {
    subject: 'Answers wait for you to confirm this address',
    title: 'Answers wait for you',
    paragraphs: [
      `${waiting === 1 ? '1 answer' : `${waiting} answers`} to ${form} ${waiting === 1 ? 'waits' : 'wait'} for you.`,
      'Somebody made the form without an API key and named this address as its owner. The answers are sent once you have confirmed that.',
      'If you did not expect this, do nothing.',
    ],
    button: confirmButton(context, 'confirmation', now),
    footer: footerOf(context),
  });
}

/** The mail with the link by which an owner signs in, for 15 minutes from `now`, in milliseconds. */
export function signInMail(context: Omit<MailContext, 'formId'>, now: number): MailMessage {
  const { secretKey, baseUrl, to } = context;
  const url = signInUrl(baseUrl, signInToken(secretKey, to, now));
  return writeMail(
    { ...context, formId: SIGN_IN_MAILS },
    {
      subject: 'Sign in to your forms',
      title: 'Sign in to your forms',
      paragraphs: [
        'This link opens the page of the forms that this address owns. It works once, for 15 minutes.',
        'If you did not ask for it, do nothing: without the link nobody can sign in.',
      ],
      button: { label: 'Sign in', url },
      footer: footerOf(context),
    },
  );
}

function confirmButton({ secretKey, baseUrl, formId, to }: MailContext, kind: RequestKind, now: number) {
  const { purpose, button } = requests[kind];
  const token = mailLinkToken(secretKey, { purpose, formId, address: to }, now + LINK_MS);
  return { label: button, url: mailLinkUrl(baseUrl, token) };
}

function footerOf({ to }: Pick<MailContext, 'to'>): string {
  return `Sent to ${to} because somebody gave this address to the form service.`;
}

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

type RequestedMail = { kind: RequestKind; formName: string; pageUrl?: string | undefined; now: number };

export type RequestKind = 'confirmation' | 'recipient_confirmation' | 'owner_change';

type Request = { purpose: MailLinkPurpose; subject: string; ask: (name: string) => string; button: string };

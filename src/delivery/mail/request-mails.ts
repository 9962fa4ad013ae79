import { mailLinkUrl, SIGN_IN_MAILS, signInUrl } from '../../domain/links.ts';
import { inDigits } from '../../text/quantities.ts';
import { lettersAndDigits, withoutLinks } from '../../text/untrusted.ts';
import { fill, type MailWords } from '../../text/words.ts';
import { type MailContext, type MailMessage, writeMail } from './message.ts';

/**
 * The mail that asks an address to confirm something about a form. Its reader may not know the form, so
 * it quotes nothing of the form's creator but the form's name, without links.
 *
 * `pageUrl` is where a form that is to be confirmed can be filled in, if it has a page; `token` is that of the link.
 */
export function requestMail(
  context: MailContext,
  { kind, formName, pageUrl, usesWebhook, token }: RequestedMail,
): MailMessage {
  const { mail } = context.language;
  const form = withoutLinks(formName);
  const { title, text } = requestWords(kind, mail, usesWebhook);
  return writeMail(context, {
    subject: `${title}: ${form}`,
    title,
    paragraphs: [fill(text, { form }), mail.ignore],
    ...(pageUrl !== undefined && {
      rows: [{ label: mail.page, text: pageUrl, links: [{ name: pageUrl, url: pageUrl }] }],
    }),
    button: confirmButton(context, kind, token),
    footer: [fill(mail.whyAsked, { email: context.to })],
  });
}

/**
 * The mail that tells the owner of a form made without a key that answers wait until the address has confirmed.
 * It quotes nothing of them, and of the form only the letters and digits of its name.
 *
 * `waiting` is how many answers wait; `token` is that of the link to confirm.
 */
export function noticeMail(
  context: MailContext,
  { formName, waiting, token }: { formName: string; waiting: number; token: string },
): MailMessage {
  const { mail, tag } = context.language;
  const form = lettersAndDigits(formName);
  return writeMail(context, {
    subject: mail.noticeSubject,
    title: mail.noticeTitle,
    paragraphs: [
      fill(form === '' ? mail.noticeTextNameless : mail.noticeText, { form, n: inDigits(waiting, tag) }),
      mail.noticeMore,
      mail.ignore,
    ],
    button: confirmButton(context, 'confirmation', token),
    footer: [fill(mail.whyAsked, { email: context.to })],
  });
}

/** The mail with the link by which an owner signs in. */
export function signInMail(context: Omit<MailContext, 'formId'>, token: string): MailMessage {
  const { baseUrl, to, language } = context;
  const { mail } = language;
  return writeMail(
    { ...context, formId: SIGN_IN_MAILS },
    {
      subject: mail.signInTitle,
      title: mail.signInTitle,
      paragraphs: [mail.signInText, mail.signInIgnore],
      button: { label: mail.signInButton, url: signInUrl(baseUrl, token) },
      footer: [fill(mail.whySignIn, { email: to })],
    },
  );
}

/** The mail to who owned a form until another address took it over. */
export function ownerChangedMail(context: MailContext, formName: string): MailMessage {
  const { mail } = context.language;
  const form = withoutLinks(formName);
  return writeMail(context, {
    subject: `${mail.ownerChangedTitle}: ${form}`,
    title: mail.ownerChangedTitle,
    paragraphs: [fill(mail.ownerChangedText, { form })],
    footer: [fill(mail.whyOwned, { form })],
  });
}

/** The mail that says that a webhook, of which only the `host` is named, was turned off. */
export function webhookOffMail(
  context: MailContext,
  { id, host }: { id: string; host: string },
): MailMessage {
  const { mail } = context.language;
  return writeMail(context, {
    subject: `${mail.webhookTitle}: ${host}`,
    title: mail.webhookTitle,
    paragraphs: [fill(mail.webhookText, { host, id }), mail.webhookMore],
    footer: [mail.whyWebhook],
  });
}

function confirmButton({ baseUrl, language }: MailContext, kind: RequestKind, token: string) {
  const { button } = requestWords(kind, language.mail, false);
  return { label: button, url: mailLinkUrl(baseUrl, token) };
}

function requestWords(kind: RequestKind, mail: MailWords, usesWebhook: boolean): RequestWords {
  switch (kind) {
    case 'confirmation':
      return {
        title: mail.confirmTitle,
        text: usesWebhook ? mail.confirmWebhookText : mail.confirmText,
        button: mail.confirmButton,
      };
    case 'recipient_confirmation':
      return { title: mail.recipientTitle, text: mail.recipientText, button: mail.recipientButton };
    case 'owner_change':
      return { title: mail.takeOverTitle, text: mail.takeOverText, button: mail.takeOverButton };
    default:
      return kind satisfies never;
  }
}

type RequestedMail = {
  kind: RequestKind;
  formName: string;
  pageUrl?: string | undefined;
  /** Whether the form's submissions go to a webhook. */
  usesWebhook: boolean;
  token: string;
};

export type RequestKind = 'confirmation' | 'recipient_confirmation' | 'owner_change';

type RequestWords = { title: string; text: string; button: string };

import { addressKey } from '../../domain/addresses/email-address.ts';
import { readableAddress } from '../../domain/addresses/readable-address.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { DAY_MS } from '../../domain/limits/limits.ts';
import {
  type MailLinkPurpose,
  mailLinkToken,
  mailLinkUrl,
  SIGN_IN_LINK_MS,
  SIGN_IN_MAILS,
  signInToken,
  signInUrl,
} from '../../domain/links.ts';
import { hashSecret } from '../../domain/secrets/new-secrets.ts';
import { insertMailedLink } from '../../store/mail/mailed-links.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { timeInWords } from '../../text/quantities.ts';
import { lettersAndDigits, oneLine, withBrokenLinks, withoutLinks } from '../../text/untrusted.ts';
import { fill, fillCount, type MailWords } from '../../text/words.ts';
import type { DeliveryOptions } from '../options.ts';
import { type MailContext, type MailMessage, writeMail } from './message.ts';

/** What each email that asks an address to confirm something says, and what its link does. */
const requests = {
  confirmation: {
    purpose: 'confirm-owner',
    title: 'confirmTitle',
    text: 'confirmText',
    button: 'confirmButton',
  },
  recipient_confirmation: {
    purpose: 'confirm-recipient',
    title: 'recipientTitle',
    text: 'recipientText',
    button: 'recipientButton',
  },
  owner_change: {
    purpose: 'change-owner',
    title: 'takeOverTitle',
    text: 'takeOverText',
    button: 'takeOverButton',
  },
} as const satisfies Record<string, Request>;

/**
 * The email that asks an address to confirm something about a form. Its reader may not know the form, so
 * it quotes nothing of the form's creator but the form's name, without links.
 *
 * `pageUrl` is where a form that is to be confirmed can be filled in, if it has a page.
 */
export async function requestMail(
  options: LinkOptions,
  context: MailContext,
  { kind, formName, pageUrl, responsesTo, browserHash, by }: RequestedMail,
): Promise<MailMessage> {
  const { mail } = context.language;
  const form = withoutLinks(formName);
  const request: Request = requests[kind];
  const title = mail[request.title];
  const asked = by === undefined ? mail[request.text] : mail.takeOverBy;
  const text = kind === 'confirmation' ? mail[confirmTexts[responsesTo]] : asked;
  return writeMail(context, {
    subject: `${title}: ${form}`,
    title,
    paragraphs: [fill(text, { form, email: by && readableAddress(by) }), mail.ignore],
    ...(pageUrl !== undefined && {
      rows: [{ label: mail.page, text: pageUrl, links: [{ name: pageUrl, url: pageUrl }] }],
    }),
    button: await newButton(options, context, request, browserHash),
    footer: [fill(mail.whyAsked, { email: readableAddress(context.to) })],
  });
}

/**
 * The email that tells the owner of a form made without a key that answers wait until the address has confirmed.
 * It quotes nothing of them, and of the form only the letters and digits of its name.
 *
 * `waiting` is how many answers wait.
 */
export async function noticeMail(
  options: LinkOptions,
  context: MailContext,
  { formName, waiting }: { formName: string; waiting: number },
): Promise<MailMessage> {
  const { mail, tag } = context.language;
  const form = lettersAndDigits(formName);
  const title = fillCount(mail.noticeSubjectOne, mail.noticeSubject, waiting, tag);
  return writeMail(context, {
    title,
    paragraphs: [...(form === '' ? [] : [fill(mail.noticeText, { form })]), mail.noticeMore, mail.ignore],
    button: await confirmationButton(options, context),
    footer: [fill(mail.whyAsked, { email: readableAddress(context.to) })],
  });
}

/** The email with the link by which an owner signs in, in whichever browser unless `browserHash` names one. */
export async function signInMail(
  options: LinkOptions,
  context: Omit<MailContext, 'formId'>,
  browserHash: string | null,
): Promise<MailMessage> {
  const { baseUrl, to: address, language } = context;
  const { mail } = language;
  const token = signInToken(options.secretKey, address, options.now());
  const about = { purpose: 'sign-in', formId: '', address, browserHash };
  await storeLink(options, token, about, SIGN_IN_LINK_MS);
  return writeMail(
    { ...context, formId: SIGN_IN_MAILS },
    {
      title: mail.signInTitle,
      paragraphs: [mail.signInText, mail.signInIgnore],
      button: { label: mail.signInButton, url: signInUrl(baseUrl, token) },
      footer: [fill(mail.whySignIn, { email: readableAddress(address) })],
    },
  );
}

/**
 * The email with the code that a respondent asked for. Strangers can have it sent, so that it quotes nothing of the
 * form or the session.
 */
export function codeMail(context: MailContext, code: string): MailMessage {
  const { mail, words } = context.language;
  return writeMail(context, {
    title: fill(mail.codeSubject, { code }),
    paragraphs: [mail.codeText, mail.codeIgnore],
    rows: [{ label: words.codeLabel, text: code }],
    footer: [fill(mail.whyCode, { email: readableAddress(context.to) })],
  });
}

/** The email to who owned a form until another address took it over, and to this one. */
export function ownerChangedMail(
  context: MailContext,
  formName: string,
  ownerEmail: string | null,
): MailMessage {
  const { mail, words } = context.language;
  const form = withoutLinks(formName);
  if (addressKey(ownerEmail ?? '') === addressKey(context.to)) {
    return writeMail(context, {
      subject: `${mail.ownedTitle}: ${form}`,
      title: mail.ownedTitle,
      paragraphs: [fill(mail.ownedText, { form })],
      button: { label: words.seeResponses, url: `${context.baseUrl}/owner/forms/${context.formId}` },
      footer: [fill(mail.whyTakenOver, { form })],
    });
  }
  return writeMail(context, {
    subject: `${mail.ownerChangedTitle}: ${form}`,
    title: mail.ownerChangedTitle,
    paragraphs: [fill(mail.ownerChangedText, { form })],
    footer: [fill(mail.whyOwned, { form })],
  });
}

/** What emails about webhooks say. */
const webhookWords = {
  webhook_off: { title: 'webhookTitle', text: 'webhookText', more: 'webhookMore' },
  webhook_failing: { title: 'webhookFailingTitle', text: 'webhookFailingText', more: 'webhookFailingMore' },
  webhook_working: { title: 'webhookWorkingTitle', text: 'webhookWorkingText', more: 'webhookWorkingMore' },
} as const satisfies Record<string, Record<string, keyof MailWords>>;

/** Whether a kind of email is one of those about webhooks. */
export function isAboutWebhook(kind: string): kind is keyof typeof webhookWords {
  return Object.hasOwn(webhookWords, kind);
}

/** The email that reports what became of a webhook. Of its URL only the host is named: the rest can be secret. */
export function webhookMail(
  context: MailContext,
  kind: keyof typeof webhookWords,
  { id, host, reader }: { id: string; host: string; reader: 'owner' | 'operator' },
): MailMessage {
  const { mail } = context.language;
  const { title, text, more } = webhookWords[kind];
  return writeMail(context, {
    subject: `${mail[title]}: ${host}`,
    title: mail[title],
    paragraphs: [fill(mail[text], { host, id }), mail[more]],
    footer: [reader === 'owner' ? mail.whyWebhook : mail.whyWebhookOperator],
  });
}

/** The button with a new link by which an owner confirms the address. */
export function confirmationButton(options: LinkOptions, context: MailContext) {
  return newButton(options, context, requests.confirmation, null);
}

/** The button with a new link that confirms something for 30 days, stored with what makes it work. */
async function newButton(
  options: LinkOptions,
  { formId, to: address, baseUrl, language }: MailContext,
  { purpose, button }: Request,
  browserHash: string | null,
) {
  const token = mailLinkToken(options.secretKey, { purpose, formId, address }, options.now() + LINK_MS);
  await storeLink(options, token, { purpose, formId, address, browserHash }, LINK_MS);
  return { label: language.mail[button], url: mailLinkUrl(baseUrl, token) };
}

/** Stores what makes the link behind a token work, once and for so long. */
async function storeLink(
  { database, now }: LinkOptions,
  token: string,
  about: { purpose: string; formId: string; address: string; browserHash: string | null },
  lifeMs: number,
): Promise<void> {
  const [createdAt, expiresAt] = [new Date(now()), new Date(now() + lifeMs)];
  await insertMailedLink(database, { ...about, tokenHash: hashSecret(token), createdAt, expiresAt });
}

const LINK_MS = 30 * DAY_MS;

/**
 * The email to the person whom a session asks. Its reader may never have asked for it: what it quotes of the asker is
 * plain text, in which nothing is a link, and its sender has no name. Its stop link stops all questions of the project,
 * since a question of the project's own has a form of its own.
 */
export function questionMail(context: Omit<MailContext, 'formId'>, question: Question): MailMessage {
  const { projectId, project, definition, session, reminder, url } = question;
  const { mail, tag } = context.language;
  const { context: shown, notify, expiresAt } = session;
  const name = withoutLinks(definition.name);
  const from = withoutLinks(project);
  return writeMail(
    { ...context, formId: projectId },
    {
      subject: fill(reminder === 0 ? mail.questionSubject : mail.questionReminder, { form: name }),
      title: name,
      paragraphs: [
        fill(mail.questionText, { project: from }),
        ...[shown?.title, notify?.message].flatMap((words) => (words ? [withBrokenLinks(words)] : [])),
        questionsOf(definition),
        fill(mail.questionUntil, { time: timeInWords(expiresAt, tag) }),
      ].filter((text) => text !== ''),
      button: { label: mail.questionButton, url },
      footer: [fill(mail.whyQuestion, { project: from }), mail.questionIgnore],
    },
  );
}

/** What a person is asked, one question a line. */
function questionsOf({ fields }: FormDefinition): string {
  const asked = fields.filter(({ hidden, answeredBy }) => !hidden && answeredBy !== 'agent');
  const lines = asked.slice(0, MAX_QUESTIONS).map(({ label }) => `• ${withBrokenLinks(oneLine(label))}`);
  return [...lines, ...(asked.length > MAX_QUESTIONS ? ['…'] : [])].join('\n');
}

/** The page shows them all. */
const MAX_QUESTIONS = 20;

const confirmTexts = {
  webhook: 'confirmWebhookText',
  listed: 'confirmListedText',
  owner: 'confirmText',
} as const satisfies Record<RequestedMail['responsesTo'], keyof MailWords>;

type Request = { purpose: MailLinkPurpose } & Record<'title' | 'text' | 'button', keyof MailWords>;

export type RequestKind = keyof typeof requests;

export type RequestedMail = {
  kind: RequestKind;
  formName: string;
  pageUrl?: string | undefined;
  /** Where the form's submissions go: a webhook, the addresses that its definition has, or its owner. */
  responsesTo: 'webhook' | 'listed' | 'owner';
  /** Of the browser that asked for it, in which alone its link signs in; null if none is known. */
  browserHash: string | null;
  /** The address of the owner who asks to take the form over. */
  by: string | undefined;
};

type LinkOptions = Pick<DeliveryOptions, 'database' | 'secretKey' | 'now'>;

type Question = {
  projectId: string;
  project: string;
  definition: FormDefinition;
  session: Pick<Session, 'context' | 'notify' | 'expiresAt'>;
  /** 0 for the first email, and then the number of the reminder. */
  reminder: number;
  /** The session's page. */
  url: string;
};

import { z } from 'zod';
import { isEmailAddress } from '../../domain/addresses/email-address.ts';
import { answersInWords } from '../../domain/answers/answer-texts.ts';
import type { Answers } from '../../domain/answers/answers.ts';
import { type AnswerChannel, answerChannels } from '../../domain/answers/provenance.ts';
import type { EmailDelivery, FormDefinition } from '../../domain/definition/definition.ts';
import { fieldsToReplyTo } from '../../domain/definition/delivery.ts';
import { translate } from '../../domain/definition/translate.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { asksName } from '../../domain/fields/autofill.ts';
import { isShown } from '../../domain/fields/field.ts';
import { uploadsIn } from '../../domain/fields/file.ts';
import { ownValue } from '../../domain/json/json.ts';
import { FILE_LINK_MS, fileLink } from '../../domain/links.ts';
import { dayInWords, fileSizeInWords, timeInWords } from '../../text/quantities.ts';
import { oneLine, withBrokenLinks } from '../../text/untrusted.ts';
import { chooseLanguage, fill } from '../../text/words.ts';
import { type MailContext, type MailMessage, type MailRow, writeMail } from './message.ts';
import { shortenRows } from './shorten.ts';

/**
 * The email about a submission to an owner or a recipient of its form: the answers in the order of the fields, hidden
 * ones too, long ones cut, files as links. `definition` is the one that was answered; subject and `Reply-To` are as
 * `delivery` has it now. An owner gets a link to the submission, or first one to confirm; others can't open it.
 *
 * Who has confirmed gets all words as they are. Before that no program makes a link of any, and files are names.
 */
export function submissionMail(
  context: MailContext,
  submission: AnsweredForm,
  about: AboutSubmissionMail,
): MailMessage {
  const { definition, submissionId } = submission;
  const { delivery, reader } = about;
  const { mail } = context.language;
  const safe = safeWords(reader);
  const replyTo = answererOf(submission, delivery);
  const origins = originsInWords({ ...submission, source: safe(oneLine(submission.source ?? 'api')) });
  const together = new Set(origins.values()).size === 1;
  const { rows, shortened } = shortenRows(rowsOf(context, submission, about, together ? new Map() : origins));
  const isOwner = reader === 'owner' || reader === 'unconfirmed';
  const open = { label: mail.open, url: submissionUrl(context, submissionId) };
  return writeMail(context, {
    subject: safe(delivery.subject ?? subjectOf(context, submission, about)),
    title: safe(definition.name),
    paragraphs: [
      receivedInWords(context, submission),
      ...(submission.replaces === undefined ? [] : [mail.corrects]),
      ...(rows.length === 0 ? [mail.noAnswers] : []),
      ...(together ? [...origins.values()].slice(0, 1) : []),
      ...(shortened ? [howToReadWhole(context, submissionId, isOwner)] : []),
      ...filesInWords(context, submission, about),
    ],
    rows,
    ...(isOwner && { button: about.confirmation ?? open }),
    footer: [
      fill(mail[whys[reader]], { form: safe(definition.name) }),
      fill(mail.submission, { id: submissionId }),
    ],
    ...(replyTo !== undefined && { replyTo }),
  });
}

/** The form's name and who answered, where a field says so. One who has not confirmed gets no stranger's words here. */
function subjectOf(
  { language }: MailContext,
  { definition, answers }: AnsweredForm,
  { delivery, reader }: AboutSubmissionMail,
): string {
  const inWords = answersInWords(definition, answers, { hiddenToo: true });
  const texts = new Map(inWords.map(({ fieldId, text }) => [fieldId, text]));
  const given = definition.fields.filter(({ id }) => (texts.get(id) ?? '') !== '');
  const seen = given.filter(isShown);
  const named =
    given.find(({ id }) => id === delivery.answererName) ??
    seen.find(({ type, id }) => type === 'text' && asksName(id)) ??
    seen.find(({ type }) => type === 'email');
  if (named === undefined || reader === 'unconfirmed')
    return fill(language.mail.newSubmission, { form: definition.name });
  return `${definition.name}: ${texts.get(named.id)?.slice(0, MAX_SUBJECT_NAME)}`;
}

const MAX_SUBJECT_NAME = 80;

const whys = {
  owner: 'whyOwner',
  unconfirmed: 'whyUnconfirmed',
  named: 'whyNamed',
  added: 'whyAdded',
  operator: 'whyOperator',
} as const;

function rowsOf(
  context: MailContext,
  { definition, answers }: AnsweredForm,
  { reader, ownerEpoch, now }: AboutSubmissionMail,
  notes: ReadonlyMap<string, string>,
): MailRow[] {
  const { secretKey, baseUrl, formId, language } = context;
  const safe = safeWords(reader);
  return answersInWords(definition, answers, { hiddenToo: true }).map(({ fieldId, label, text }) => {
    const note = notes.get(fieldId);
    const uploads = reader === 'unconfirmed' ? [] : uploadsIn(answers[fieldId]);
    const links = uploads.map(({ id, filename, size }) => ({
      name: `${filename} (${fileSizeInWords(size, language.tag)})`,
      url: fileLink({ secretKey, baseUrl, now }, { id: formId, ownerEpoch }, id),
    }));
    return {
      label: safe(oneLine(label)),
      text: safe(text),
      ...(note !== undefined && { note }),
      ...(links.length > 0 && { links }),
    };
  });
}

/** An address that has not confirmed may never have asked for the email. */
function safeWords(reader: Reader): (text: string) => string {
  return reader === 'unconfirmed' ? withBrokenLinks : (text) => text;
}

function receivedInWords({ language: { mail, tag } }: MailContext, { createdAt }: AnsweredForm): string {
  return fill(mail.received, { time: timeInWords(new Date(createdAt), tag) });
}

function filesInWords(
  { language }: MailContext,
  { answers }: AnsweredForm,
  { reader, now }: AboutSubmissionMail,
): string[] {
  const { mail, tag } = language;
  if (!Object.values(answers).some((answer) => uploadsIn(answer).length > 0)) return [];
  if (reader === 'unconfirmed') return [mail.filesLater];
  return [fill(mail.filesUntil, { day: dayInWords(new Date(now + FILE_LINK_MS), tag) })];
}

/** Whom a reply goes to: the field that the form names, else the first of those that it may go to with an address. */
function answererOf({ definition, answers }: AnsweredForm, { replyTo }: EmailDelivery): string | undefined {
  if (replyTo !== undefined) return addressIn(answers, replyTo);
  return fieldsToReplyTo(definition.fields).flatMap(({ id }) => addressIn(answers, id) ?? [])[0];
}

/** Where each answer comes from, by field id, in the language of the form. */
function originsInWords({ definition, provenance = {}, source = 'api' }: AnsweredForm): Map<string, string> {
  const { words } = chooseLanguage(definition.settings.locale ?? '');
  const texts: Record<AnswerChannel, string> = {
    human: words.answeredByPerson,
    api: source === 'api' ? words.answeredByApi : fill(words.answeredFrom, { source }),
    prefill: words.answeredByPrefill,
    default: words.answeredByDefault,
    mcp_user: words.answeredByMcpUser,
  };
  return new Map(Object.entries(provenance).map(([id, { by }]) => [id, texts[by]]));
}

function howToReadWhole({ baseUrl, language }: MailContext, submissionId: string, isOwner: boolean): string {
  const { mail } = language;
  const url = `${baseUrl}/v1/submissions/${submissionId}`;
  return `${mail.leftOut} ${isOwner ? mail.wholeForOwner : fill(mail.wholeForOthers, { url })}`;
}

/** Where the owner of the form, once signed in, sees the submission. */
function submissionUrl({ baseUrl }: MailContext, submissionId: string): string {
  return `${baseUrl}/owner/submissions/${submissionId}`;
}

/**
 * The email to the person who answered, in the language in which they did. `original` is the definition in use now.
 * Null if it has no such email, or if they gave no address. All its words are those of the form, so that anyone who
 * gives another's address sends them nothing of their own. `correctionUrl` leads to the page where they correct what they
 * sent.
 */
export function autoresponseMail(
  context: Omit<MailContext, 'to' | 'language' | 'senderName'>,
  { answers, language: tag }: AnsweredForm,
  original: FormDefinition,
  correctionUrl?: string,
): MailMessage | null {
  const { delivery, name, settings } = translate(original, tag === undefined ? [] : [tag]);
  if (delivery.type !== 'email' || delivery.autoresponse === undefined) return null;
  const { subject, message, to: fieldId } = delivery.autoresponse;
  const to = addressIn(answers, fieldId);
  if (to === undefined) return null;
  const language = chooseLanguage(settings.locale);
  return writeMail(
    { ...context, language, senderName: name, to },
    {
      title: subject,
      paragraphs: [message],
      ...(correctionUrl !== undefined && { button: { label: language.words.correct, url: correctionUrl } }),
      footer: [fill(language.mail.whyAnswered, { form: name })],
    },
  );
}

/** Whom the email to who answered goes to, by the stored body of a submission's event; undefined if there is none. */
export function autoresponseAddress({ autoresponse }: EmailDelivery, body: string): string | undefined {
  return autoresponse && addressIn(answeredVersion(body).data.answers, autoresponse.to);
}

/** What the stored body of a submission's event says, and the version that was answered. Throws for other events. */
export function answeredVersion(body: string): { data: Omit<AnsweredForm, 'definition'>; versionId: string } {
  const { data } = submissionEvent.parse(JSON.parse(sentBody(body)));
  const { formVersionId, ...rest } = data;
  return { data: rest, versionId: formVersionId };
}

const submissionEvent = z.object({
  data: z.object({
    submissionId: z.string(),
    formVersionId: z.string(),
    language: z.string().exactOptional(),
    createdAt: z.string(),
    source: z.string().exactOptional(),
    replaces: z.string().exactOptional(),
    respondent: z.object({ email: z.string() }).exactOptional(),
    answers: z.custom<Answers>((value) => typeof value === 'object' && value !== null),
    provenance: z.record(z.string(), z.object({ by: z.enum(answerChannels) })).exactOptional(),
  }),
});

/** The answer to an email field, if it is one plain address. */
function addressIn(answers: Answers, fieldId: string): string | undefined {
  const answer = ownValue(answers, fieldId);
  return typeof answer === 'string' && isEmailAddress(answer) ? answer : undefined;
}

/**
 * Who reads an email about a submission: its form's owner, one who has not confirmed, a recipient that the definition
 * names or that the owner has added, or the operator, who gets what comes to the demo form.
 */
export type Reader = 'owner' | 'unconfirmed' | 'named' | 'added' | 'operator';

type AboutSubmissionMail = {
  delivery: EmailDelivery;
  reader: Reader;
  /** Of the form, for links to files. */
  ownerEpoch: number;
  /** Milliseconds. */
  now: number;
  /** Of an owner who has not confirmed: the button that does, in place of the one that opens the submission. */
  confirmation: { label: string; url: string } | undefined;
};

/** A submission and the definition that it answers. */
export type AnsweredForm = {
  definition: FormDefinition;
  answers: Answers;
  submissionId: string;
  /** Of a translated form, the language in which it was filled in. */
  language?: string;
  /** ISO 8601. */
  createdAt: string;
  /** The submission that it corrects. */
  replaces?: string;
  /** Whose address is proven. */
  respondent?: { email: string };
  /** Where each answer comes from, by field id; not of submissions that are older than the record. */
  provenance?: Record<string, { by: AnswerChannel }>;
  /** Where a call has it from, in its sender's words. */
  source?: string;
};

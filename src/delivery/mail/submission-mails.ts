import { z } from 'zod';
import type { Answers } from '../../domain/answers/answers.ts';
import { answersInWords } from '../../domain/answers/answers-in-words.ts';
import { type AnswerChannel, answerChannels } from '../../domain/answers/provenance.ts';
import type { EmailDelivery, FormDefinition } from '../../domain/definition/definition.ts';
import { isEmailAddress } from '../../domain/email-address.ts';
import { sentBody } from '../../domain/events/bodies.ts';
import { oneLine, withBrokenLinks } from '../../text/untrusted.ts';
import { chooseLanguage } from '../../text/words/language.ts';
import { type MailContext, type MailMessage, writeMail } from './message.ts';
import { shortenRows } from './shorten.ts';

/**
 * The mail to an owner about a submission: the answers in the order of the fields, hidden ones too, long ones
 * cut. `definition` is the one that was answered; subject and `Reply-To` are as `delivery` has it now. An owner gets a link
 * to the submission; others can not open it.
 *
 * An owner who has confirmed gets all words as they are. Before that no program makes a link of any.
 */
export function submissionMail(
  context: MailContext,
  submission: AnsweredForm,
  { delivery, confirmed, isOwner }: { delivery: EmailDelivery; confirmed: boolean; isOwner: boolean },
): MailMessage {
  const { definition, answers, submissionId, createdAt } = submission;
  const safe = (text: string) => (confirmed ? text : withBrokenLinks(text));
  const replyTo = delivery.replyTo === undefined ? undefined : addressIn(answers, delivery.replyTo);
  const origins = originsInWords(submission);
  const together = new Set(origins.values()).size === 1;
  const { rows, shortened } = shortenRows(
    answersInWords(definition, answers, { hiddenToo: true }).map(({ fieldId, label, text }) => {
      const note = together ? undefined : origins.get(fieldId);
      return { label: safe(oneLine(label)), text: safe(text), ...(note !== undefined && { note }) };
    }),
  );
  return writeMail(context, {
    subject: safe(delivery.subject ?? `New submission: ${definition.name}`),
    title: safe(definition.name),
    paragraphs: [
      ...(rows.length === 0 ? ['Somebody submitted the form without an answer.'] : []),
      ...(together ? [...origins.values()].slice(0, 1) : []),
      ...(shortened ? [howToReadWhole(context, submissionId, isOwner)] : []),
    ],
    rows,
    ...(isOwner && { button: { label: 'Open this submission', url: submissionUrl(context, submissionId) } }),
    footer: `Submission ${submissionId} of ${createdAt}, sent to you as an owner of this form.`,
    ...(replyTo !== undefined && { replyTo }),
  });
}

/** Where each answer comes from, by field id, in the language of the form. */
function originsInWords({ definition, provenance = {} }: AnsweredForm): Map<string, string> {
  const { words } = chooseLanguage(definition.settings.locale ?? '');
  const texts: Record<AnswerChannel, string> = {
    human: words.answeredByPerson,
    api: words.answeredByApi,
    prefill: words.answeredByPrefill,
    default: words.answeredByDefault,
  };
  return new Map(Object.entries(provenance).map(([id, { by }]) => [id, texts[by]]));
}

function howToReadWhole({ baseUrl }: MailContext, submissionId: string, isOwner: boolean): string {
  const leftOut = 'The answers are too long for a mail, so a part of them is left out.';
  if (isOwner) return `${leftOut} The link below shows them whole.`;
  return (
    `${leftOut} Submission ${submissionId} is kept whole; ` +
    `read it with an API key of the form's project: GET ${baseUrl}/v1/submissions/${submissionId}`
  );
}

/** Where the owner of the form, once signed in, sees the submission. */
function submissionUrl({ baseUrl }: MailContext, submissionId: string): string {
  return `${baseUrl}/owner/submissions/${submissionId}`;
}

/**
 * The mail to the person who answered. Null if they gave no address. All its words are those of the form, so
 * that whoever gives another's address sends them nothing of their own.
 */
export function autoresponseMail(
  context: Omit<MailContext, 'to'>,
  submission: AnsweredForm,
  autoresponse: Autoresponse,
): MailMessage | null {
  const to = addressIn(submission.answers, autoresponse.to);
  if (to === undefined) return null;
  return writeMail(
    { ...context, to },
    {
      subject: autoresponse.subject,
      title: autoresponse.subject,
      paragraphs: [autoresponse.message],
      footer: `You get this once, because your address was given in the form "${submission.definition.name}".`,
    },
  );
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
    createdAt: z.string(),
    answers: z.custom<Answers>((value) => typeof value === 'object' && value !== null),
    provenance: z.record(z.string(), z.object({ by: z.enum(answerChannels) })).exactOptional(),
  }),
});

/** The answer to an email field, if it is one plain address. */
function addressIn(answers: Answers, fieldId: string): string | undefined {
  const answer = Object.hasOwn(answers, fieldId) ? answers[fieldId] : undefined;
  return typeof answer === 'string' && isEmailAddress(answer) ? answer : undefined;
}

/** A submission and the definition that it answers. */
export type AnsweredForm = {
  definition: FormDefinition;
  answers: Answers;
  submissionId: string;
  /** ISO 8601. */
  createdAt: string;
  /** Where each answer comes from, by field id; not of submissions that are older than the record. */
  provenance?: Record<string, { by: AnswerChannel }>;
};

type Autoresponse = NonNullable<EmailDelivery['autoresponse']>;

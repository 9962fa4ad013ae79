import type { Answers } from '../../domain/answers/answers.ts';
import { answersInWords } from '../../domain/answers/answers-in-words.ts';
import type { EmailDelivery, FormDefinition } from '../../domain/definition/definition.ts';
import { isEmailAddress } from '../../domain/email-address.ts';
import { type MailContext, type MailMessage, oneLine, writeMail } from './message.ts';

/**
 * The mail to an owner about a submission: the answers in the order of the fields, hidden ones too.
 * `definition` is the one that was answered; subject and `Reply-To` are as `delivery` has it now.
 */
export function submissionMail(
  context: MailContext,
  submission: AnsweredForm,
  delivery: EmailDelivery,
): MailMessage {
  const { definition, answers, submissionId, createdAt } = submission;
  const replyTo = delivery.replyTo === undefined ? undefined : addressIn(answers, delivery.replyTo);
  const rows = answersInWords(definition, answers, { hiddenToo: true }).map(({ label, text }) => ({
    label: oneLine(label),
    text,
  }));
  return writeMail(context, {
    subject: delivery.subject ?? `New submission: ${definition.name}`,
    title: definition.name,
    paragraphs: rows.length === 0 ? ['Somebody submitted the form without an answer.'] : [],
    rows,
    footer: `Submission ${submissionId} of ${createdAt}, sent to you as an owner of this form.`,
    ...(replyTo !== undefined && { replyTo }),
  });
}

/** The mail to the person who answered, with the owner's text. Null if they gave no address. */
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
};

type Autoresponse = NonNullable<EmailDelivery['autoresponse']>;

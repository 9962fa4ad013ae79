import type { FormDefinition } from '../../domain/definition/definition.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { timeInWords } from '../../text/quantities.ts';
import { oneLine, withBrokenLinks, withoutLinks } from '../../text/untrusted.ts';
import { fill } from '../../text/words.ts';
import { type MailContext, type MailMessage, writeMail } from './message.ts';

/**
 * The mail to the person whom a session asks. Its reader may never have asked for it: what it quotes of the asker is
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

type Question = {
  projectId: string;
  project: string;
  definition: FormDefinition;
  session: Pick<Session, 'context' | 'notify' | 'expiresAt'>;
  /** 0 for the first mail, and then the number of the reminder. */
  reminder: number;
  /** The session's page. */
  url: string;
};

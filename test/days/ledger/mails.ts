import {
  downtimeIn,
  type FormSeen,
  type History,
  hadFault,
  type MailSeen,
  type SubmissionSeen,
} from './history.ts';
import { removalOf } from './removals.ts';
import { DAY_MS, LAST_ATTEMPT_MS, MINUTE_MS, type Rule, SECOND_MS, UNDER_WAY_MS } from './rule.ts';

/** A mail comes once, unless the reply to it got lost. */
export const mailsAtMostOnce: Rule = {
  name: 'mails at most once',
  find(history) {
    const taken = history.mails.filter(({ isTaken }) => isTaken);
    const last = new Map<string, MailSeen>();
    return taken.flatMap((mail) => {
      const keys = [`${mail.messageId} ${mail.to.join()}`, ...aboutSubmission(mail)];
      const before = keys.flatMap((key) => last.get(key) ?? [])[0];
      for (const key of keys) last.set(key, mail);
      if (before === undefined || isRepeatable(history, before, mail)) return [];
      const detail = `${mail.messageId} (${mail.submissionId ?? 'no submission'}) to ${mail.to.join()}`;
      return [{ reason: 'it came twice', detail, at: mail.at }];
    });
  },
};

function aboutSubmission({ submissionId, to }: MailSeen): string[] {
  return submissionId === undefined ? [] : [`${submissionId} ${to.join()}`];
}

/** Whether the answer to the first got lost, with the process or on its way, or somebody asked for a second. */
function isRepeatable(history: History, first: MailSeen, second: MailSeen): boolean {
  if (first.answered === 'lost') return true;
  if (history.replays.some((at) => at >= first.at - UNDER_WAY_MS && at <= second.at)) return true;
  if (history.crashes.some((at) => at >= first.at - SECOND_MS && at <= first.at + MINUTE_MS)) return true;
  const around = { from: first.at - SECOND_MS, until: first.at + MINUTE_MS };
  return hadFault(history, { kinds: ['mail-slow', 'mail-silent', 'mail-reset', 'mail-lost'], ...around });
}

/** The owner who has confirmed gets a mail about each submission, unless the server refused as often as documented. */
export const mailsAtLeastOnce: Rule = {
  name: 'mails at least once',
  find(history) {
    return [...history.submissions.values()].flatMap((submission) => {
      const { form, ackedAt, mark, ids } = submission;
      if (form === undefined || ackedAt === undefined || !isMailed(form)) return [];
      const promise = promiseOf(form, submission);
      if (promise === undefined) return [];
      const { to, since } = promise;
      const until = since + LAST_ATTEMPT_MS.most + downtimeIn(history, since, since + 4 * DAY_MS);
      const isSent = history.mails.some(
        (mail) =>
          mail.isTaken &&
          mail.to.includes(to) &&
          mail.submissionId !== undefined &&
          ids.has(mail.submissionId),
      );
      if (isSent || isExcused(history, { form, submission, to, since, until })) return [];
      const refusedSender = history.mails.some(
        ({ step, answered, at }) => step === 'from' && isFinal(answered) && at >= ackedAt && at <= until,
      );
      const reason = refusedSender ? 'given up though only the sender was refused' : 'it never came';
      return [{ reason, detail: `${mark} (${[...ids.keys()].join()}) to ${to}`, at: ackedAt }];
    });
  },
};

function isMailed({ versions }: FormSeen): boolean {
  return versions.every(({ definition }) => definition.channel === 'email');
}

/** Who is promised a mail, and from when on: who owned the form for sure when the answers came, and has confirmed. */
function promiseOf(form: FormSeen, { firstSentAt, ackedAt = 0 }: SubmissionSeen) {
  const owner = form.owners.filter(({ from }) => from < firstSentAt).at(-1);
  if (owner === undefined) return undefined;
  const confirmed = form.owners.find(
    (each) => each.address === owner.address && each.isConfirmed && each.sure,
  );
  if (confirmed?.sure === undefined) return undefined;
  const since = Math.max(ackedAt, confirmed.sure);
  const isHandedOver = form.owners.some(
    ({ address, from }) =>
      address !== owner.address && from > owner.from && from < since + LAST_ATTEMPT_MS.most,
  );
  return isHandedOver ? undefined : { to: owner.address, since };
}

function isExcused(history: History, { form, submission, to, since, until }: Excuse): boolean {
  const { ackedAt = 0, firstSentAt } = submission;
  const { from: removedFrom = Number.POSITIVE_INFINITY } = removalOf(history, submission);
  if (removedFrom <= until || until > history.endedAt) return true;
  const isStopped = history.stops.some(
    (stop) => stop.address === to && (stop.scope === 'all' || stop.formId === form.id) && stop.from <= until,
  );
  if (isStopped) return true;
  const refused = history.mails.some(
    ({ step, answered, to: named, at }) =>
      step === 'to' && isFinal(answered) && named.includes(to) && at >= firstSentAt && at <= until,
  );
  if (refused) return true;
  const last = { from: Math.min(ackedAt, since) + LAST_ATTEMPT_MS.least, until };
  return hadFault(history, { kinds: mailFaults, about: ['*', to], ...last });
}

const mailFaults = [
  'mail-refused',
  'mail-reset',
  'mail-slow',
  'mail-silent',
  'mail-4xx-sender',
  'mail-5xx-sender',
  'mail-4xx-recipient',
  'mail-5xx-recipient',
  'mail-4xx-data',
  'no-name-server',
];

function isFinal(answered: number | 'lost'): boolean {
  return typeof answered === 'number' && answered >= 500;
}

/** Who is named as an owner is asked to confirm. */
export const ownersAreAsked: Rule = {
  name: 'owners are asked to confirm',
  find(history) {
    return [...history.forms.values()].flatMap((form) => {
      const [activated] = form.activated;
      const [owner] = form.owners;
      if (activated?.sure === undefined || owner === undefined) return [];
      const since = activated.sure;
      const until = since + LAST_ATTEMPT_MS.most + downtimeIn(history, since, since + 4 * DAY_MS);
      const to = owner.address;
      const isAsked = history.mails.some(
        (mail) => mail.isTaken && mail.to.includes(to) && mail.text.includes('/mail/confirm-owner.'),
      );
      const isRefused = history.mails.some(
        ({ step, answered, to: named }) => step === 'to' && isFinal(answered) && named.includes(to),
      );
      const isEnded = form.deleted.length > 0 || form.owners.some(({ isConfirmed }) => isConfirmed);
      const last = { from: since + LAST_ATTEMPT_MS.least, until };
      const isAway = hadFault(history, { kinds: mailFaults, about: ['*', to], ...last });
      const isStopped = history.stops.some(({ address }) => address === to);
      if (isAsked || isRefused || isEnded || isAway || isStopped || until > history.endedAt) return [];
      const refusedSender = history.mails.some(
        ({ step, answered, at }) =>
          step === 'from' && isFinal(answered) && at >= since - MINUTE_MS && at <= until,
      );
      const reason = refusedSender ? 'given up though only the sender was refused' : 'it never came';
      return [{ reason, detail: `${form.id} to ${to}`, at: since }];
    });
  },
};

/** Who follows the link that stops mail gets none any more, until they start it again. */
export const nothingAfterStop: Rule = {
  name: 'no mail after a stop link',
  find(history) {
    return history.mails.flatMap((mail) => {
      if (!mail.isTaken) return [];
      const own = history.stops.filter(
        (stop) =>
          mail.to.includes(stop.address) &&
          stop.from <= mail.at &&
          (stop.scope !== 'form' || stop.formId === mail.formId) &&
          mail.formId !== 'sign-in',
      );
      const lastStart = own.findLast(({ scope }) => scope === 'start')?.from ?? Number.NEGATIVE_INFINITY;
      const stopped = own.some(
        ({ scope, sure, from }) =>
          scope !== 'start' && sure !== undefined && sure + UNDER_WAY_MS < mail.at && from > lastStart,
      );
      return stopped
        ? [{ reason: 'it came', detail: `${mail.messageId} to ${mail.to.join()}`, at: mail.at }]
        : [];
    });
  },
};

/** Once a form has another owner, the one before gets nothing of it. */
export const nothingAfterHandOver: Rule = {
  name: 'no mail after a hand-over',
  find(history) {
    return history.mails.flatMap((mail) => {
      const form = history.forms.get(mail.formId ?? '');
      if (!mail.isTaken || form === undefined || mail.submissionId === undefined) return [];
      const sure = form.owners.filter((each) => each.isConfirmed && each.sure !== undefined);
      const taken = sure.findLast((each) => each.sure !== undefined && each.sure + UNDER_WAY_MS < mail.at);
      const mayOwn = [...form.owners, ...form.recipients].some(
        (each) => mail.to.includes(each.address) && taken !== undefined && each.from >= taken.from,
      );
      if (taken === undefined || mayOwn || mail.to.includes(taken.address)) return [];
      const { submissionId } = mail;
      const submission = [...history.submissions.values()].find(({ ids }) => ids.has(submissionId));
      const isLater = submission !== undefined && submission.firstSentAt > (taken.sure ?? 0);
      const reason = isLater ? 'answers that came later' : 'answers that came before';
      return [{ reason, detail: `${mail.messageId} (${submissionId}) to ${mail.to.join()}`, at: mail.at }];
    });
  },
};

type Excuse = { form: FormSeen; submission: SubmissionSeen; to: string; since: number; until: number };

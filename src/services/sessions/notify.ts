import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import type { NotificationSchema, Notify } from '../../../gen/headlessforms/v1/sessions_pb.js';
import { asciiAddress } from '../../domain/addresses/ascii-address.ts';
import { isCausedBy } from '../../domain/delivery/causes.ts';
import { notifiedAs, strangersOfKey } from '../../domain/delivery/mails.ts';
import { insufficientScope, limited } from '../../domain/errors/failure.ts';
import type { Violation } from '../../domain/errors/violations.ts';
import { newId } from '../../domain/ids.ts';
import { notifyLimits, sessionSeconds } from '../../domain/limits/limits.ts';
import { holds } from '../../domain/scopes.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Queries, Transaction } from '../../store/database/database.ts';
import { queueNotifications } from '../../store/deliveries/enqueue-mails.ts';
import { type EventDelivery, listEventDeliveries } from '../../store/deliveries/log.ts';
import { findFirstMaker } from '../../store/keys.ts';
import { countAgainst } from '../../store/mail/mail-allowances.ts';
import { hasConfirmed } from '../../store/mail/mail-recipients.ts';
import type { Session, StoredNotify } from '../../store/sessions/session-table.ts';
import { findWebhook } from '../../store/webhooks/webhooks.ts';
import type { ServiceContext } from '../context.ts';
import type { PublishedForm } from '../forms/form-access.ts';
import { emailProblems, secondsProblems, textProblems } from '../request-values.ts';

/** What is wrong with the `notify` of a session of a form, with paths below `notify`. */
export async function notifyProblems(
  { database }: Pick<ServiceContext, 'database'>,
  notify: Notify | undefined,
  { projectId, id: formId }: Pick<PublishedForm, 'projectId' | 'id'>,
): Promise<Violation[]> {
  if (notify === undefined) return [];
  const { email, webhookId, message } = notify;
  const violations = [
    ...(email === '' && webhookId === ''
      ? [{ path: '', code: 'invalid_type', message: 'Expected email or webhook_id' } as const]
      : []),
    ...(email === '' ? [] : emailProblems(email, 'email')),
    ...(await webhookProblems(database, { projectId, formId, webhookId })),
    ...textProblems(message, 'message', { max: notifyLimits.message }),
    ...reminderProblems(notify),
  ];
  return violations.map((one) => ({ ...one, path: one.path === '' ? 'notify' : `notify.${one.path}` }));
}

/** Of another project, or another form, it is not there. */
async function webhookProblems(
  db: Queries,
  { projectId, formId, webhookId }: { projectId: string; formId: string; webhookId: string },
): Promise<Violation[]> {
  if (webhookId === '') return [];
  const webhook = await findWebhook(db, projectId, webhookId);
  const problem = (message: string): Violation[] => [{ path: 'webhook_id', code: 'custom', message }];
  if (webhook === null || (webhook.formId !== null && webhook.formId !== formId)) {
    return problem('There is no such webhook for this session');
  }
  if (!webhook.events.includes('session.notified')) {
    return problem('This webhook has not registered session.notified');
  }
  return [];
}

function reminderProblems({ remindAfter }: Notify): Violation[] {
  if (remindAfter.length > notifyLimits.reminders) {
    return [
      {
        path: 'remind_after',
        code: 'too_big',
        message: `Expected at most ${notifyLimits.reminders} reminders`,
      },
    ];
  }
  return remindAfter.flatMap((after, index): Violation[] => {
    const path = `remind_after[${index}]`;
    const problems = secondsProblems(after, path, sessionSeconds);
    const before = remindAfter[index - 1];
    if (problems.length > 0 || before === undefined || after.seconds > before.seconds) return problems;
    return [{ path, code: 'too_small', message: 'Expected more seconds than before' }];
  });
}

/** How a session keeps whom it notifies. `keyId` is the key that asks, `now` is in milliseconds. */
export function storedNotify(notify: Notify, keyId: string, now: number): StoredNotify {
  const { email, webhookId, message, remindAfter } = notify;
  const times = remindAfter.map(({ seconds }) => Number(seconds));
  return {
    ...(email !== '' && { email: asciiAddress(email) }),
    ...(webhookId !== '' && { webhookId }),
    ...(message !== '' && { message }),
    remindAfter: times,
    keyId,
    eventIds: [0, ...times].map(() => newId('evt', now)),
  };
}

/**
 * Queues the notifications of a session that was stored in the same transaction, and counts whom they email. Throws
 * RATE_LIMITED if its key has had too many emailed.
 */
export async function notifyOf(
  tx: Transaction,
  context: ServiceContext,
  session: Session,
  { form, call }: { form: PublishedForm; call: HandlerContext },
): Promise<void> {
  const { notify } = session;
  if (notify === null) return;
  const { email, keyId } = notify;
  if (email !== undefined) await countNotifiedMailboxes(tx, context, { keyId, addresses: [email] });
  await queueNotifications(tx, session, {
    url: `${context.settings.hostedUrl}/f/${session.id}`,
    project: callerOf(call).project,
    question: form.version.definition.name,
    at: context.now(),
  });
}

/** What became of the notifications of sessions, by session; of those that notify nobody there is nothing. */
export async function notificationsOf(db: Queries, sessions: Session[]): Promise<Notifications> {
  const notifying = sessions.flatMap(({ id, notify }) => (notify === null ? [] : { id, notify }));
  const deliveries = await listEventDeliveries(
    db,
    notifying.flatMap(({ notify }) => notify.eventIds),
  );
  const byEvent = Map.groupBy(deliveries, ({ eventId }) => eventId);
  return new Map(
    notifying.map(({ id, notify }) => {
      const own = notify.eventIds.flatMap((eventId) => byEvent.get(eventId) ?? []);
      return [id, notificationToMessage(notify, own)];
    }),
  );
}

function notificationToMessage(
  { email = '', webhookId = '', message = '', remindAfter }: StoredNotify,
  deliveries: EventDelivery[],
): Notification {
  const times = deliveries.flatMap(({ deliveredAt }) => deliveredAt?.getTime() ?? []);
  const needed = deliveries.filter((delivery) => !isCausedBy('session_ended', delivery));
  return {
    email,
    webhookId,
    message,
    remindAfter: remindAfter.map((seconds) => ({ seconds: BigInt(seconds) })),
    ...(times.length > 0 && { sentTime: timestampFromDate(new Date(Math.max(...times))) }),
    failed: needed.some((each) => each.status === 'failed' && !isCausedBy('mail_stopped', each)),
    stopped: needed.some((each) => isCausedBy('mail_stopped', each)),
    error: needed.findLast(({ error }) => error !== null)?.error ?? '',
  };
}

/** Throws INSUFFICIENT_SCOPE unless the caller may have others emailed. */
export function requireNotifyScope(call: HandlerContext): void {
  if (!holds(callerOf(call).scopes, 'sessions:notify')) {
    throw insufficientScope('sessions:notify', 'to email or notify a person');
  }
}

/**
 * Counts the mailboxes that a call has emailed against what its key may have emailed today (UTC) of those that have not
 * confirmed anything to the service. A mailbox counts once a day, whatever it is emailed for and by whichever of its
 * addresses, and a key counts with the one that made it. Call it in the transaction that stores what causes the emails.
 *
 * Throws RATE_LIMITED if there are too many: let it end the transaction.
 */
export async function countNotifiedMailboxes(
  tx: Transaction,
  { secretKey, settings }: Pick<ServiceContext, 'secretKey' | 'settings'>,
  { keyId, addresses }: { keyId: string; addresses: string[] },
): Promise<void> {
  const limit = settings.notifyMailboxesPerKey;
  for (const address of new Set(addresses)) {
    if (await hasConfirmed(tx, address)) continue;
    const allowance = strangersOfKey(await findFirstMaker(tx, keyId), limit);
    const waitMs = await countAgainst(tx, notifiedAs(secretKey, address), allowance);
    if (waitMs !== null) {
      const message = `This key has had emails sent to ${limit} mailboxes today that have not confirmed anything`;
      throw limited('notified_mailboxes', message, waitMs / 1000);
    }
  }
}

export type Notifications = ReadonlyMap<string, Notification>;

type Notification = MessageInitShape<typeof NotificationSchema>;

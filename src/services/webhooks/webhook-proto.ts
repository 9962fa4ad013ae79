import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type AttemptSchema,
  DeliveryChannel,
  type DeliverySchema,
  DeliveryStatus,
  EventType,
  MailKind,
  type WebhookEvent,
  type WebhookSchema,
} from '../../../gen/headlessforms/v1/webhooks_pb.js';
import { mailKindOf } from '../../domain/delivery/mails.ts';
import {
  eventTypeOf,
  isRegistrable,
  type RegistrableEvent,
  registrableEvents,
  registrableNames,
} from '../../domain/events/index.ts';
import type { Attempt, Delivery, LoggedDelivery } from '../../store/deliveries/deliveries.ts';
import type { Webhook } from '../../store/webhooks/webhooks.ts';
import { badParameter } from '../request-values.ts';

/** A webhook as callers see it, without its secrets. */
export function webhookToMessage(webhook: Webhook): MessageInitShape<typeof WebhookSchema> {
  const { id, url, events, formId, active, createdAt, disabledAt, disabledReason, sendsTraceparent } =
    webhook;
  return {
    id,
    url,
    events: events.filter(isRegistrable).map((name) => registrableEvents[name]),
    formId: formId ?? '',
    active,
    createTime: timestampFromDate(createdAt),
    ...(disabledAt !== null && { disableTime: timestampFromDate(disabledAt) }),
    disabledReason: disabledReason ?? '',
    traceparent: sendsTraceparent,
  };
}

/** A delivery with its attempts as callers see it. */
export function deliveryToMessage({
  delivery,
  attempts,
}: LoggedDelivery): MessageInitShape<typeof DeliverySchema> {
  const { id, channel, webhookId, receiver, eventId, kind, status, attemptCount } = delivery;
  const { createdAt, lastAttemptAt, dueAt, deliveredAt, responseStatus, error } = delivery;
  return {
    id,
    channel: channel === 'webhook' ? DeliveryChannel.WEBHOOK : DeliveryChannel.MAIL,
    webhookId: webhookId ?? '',
    address: channel === 'mail' ? receiver : '',
    eventId: eventId ?? '',
    eventType: channel === 'webhook' ? eventTypeOf(kind) : EventType.UNSPECIFIED,
    mailKind: channel === 'mail' ? mailKindOf(kind) : MailKind.UNSPECIFIED,
    status: deliveryStatuses[status],
    attemptCount,
    createTime: timestampFromDate(createdAt),
    ...(lastAttemptAt !== null && { lastAttemptTime: timestampFromDate(lastAttemptAt) }),
    ...(status === 'pending' && dueAt !== null && { nextAttemptTime: timestampFromDate(dueAt) }),
    ...(deliveredAt !== null && { deliverTime: timestampFromDate(deliveredAt) }),
    ...(responseStatus !== null && { responseStatus }),
    error: error ?? '',
    attempts: attempts.map(attemptToMessage),
  };
}

function attemptToMessage(attempt: Attempt): MessageInitShape<typeof AttemptSchema> {
  const { id, number, status, responseStatus, error, responseBody, durationMs, startedAt } = attempt;
  return {
    id,
    number,
    status: deliveryStatuses[status],
    ...(responseStatus !== null && { responseStatus }),
    error: error ?? '',
    duration: durationFromMs(durationMs),
    startTime: timestampFromDate(startedAt),
    responseBody: responseBody ?? '',
  };
}

/** The stored name of an event that a webhook can receive; undefined if there is no such event. */
export function eventName(event: WebhookEvent): RegistrableEvent | undefined {
  return registrableNames.find((name) => registrableEvents[name] === event);
}

/** The stored status that a list is asked for; undefined: all. Throws for one that this version does not know. */
export function statusFilterOf(status: DeliveryStatus): Delivery['status'] | undefined {
  if (status === DeliveryStatus.UNSPECIFIED) return undefined;
  const known = ['pending', 'delivered', 'failed'] as const;
  const name = known.find((known) => deliveryStatuses[known] === status);
  if (name === undefined) throw badParameter('status', 'custom', `Expected one of ${known.join(', ')}`);
  return name;
}

const deliveryStatuses: Record<Delivery['status'], DeliveryStatus> = {
  pending: DeliveryStatus.PENDING,
  delivered: DeliveryStatus.DELIVERED,
  failed: DeliveryStatus.FAILED,
};

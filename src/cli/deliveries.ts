import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { type Event, ReplayStatus, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { signWebhook } from '../domain/delivery/signature.ts';
import { eventNameOf } from '../domain/events/index.ts';
import { sampleEvent, sampleNames } from '../domain/events/samples.ts';
import { nearestName } from '../domain/text/nearest-name.ts';
import { RefusedError, reasonInWords, UsageError } from './terminal.ts';

/**
 * Posts the events of a running service to an address, one after the other, signed as a webhook's, and
 * prints a line for each. Goes on by itself after a break of the connection, until `signal` is aborted.
 *
 * An event that its receiver refuses is not tried again. Throws `RefusedError` if the service refuses.
 */
export async function forwardEvents(options: ForwardOptions): Promise<void> {
  const { transport, form, key, forward, secret, signal, now, print } = options;
  const client = createClient(WebhooksService, transport);
  const headers = { authorization: `Bearer ${key}` };
  // After a break some come again.
  const seen = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  let cursor = '';
  let connected = false;
  print(`Signing with ${secret}`);

  while (!signal.aborted) {
    try {
      for await (const message of client.listen({ formId: form, cursor }, { headers, signal })) {
        cursor = message.cursor;
        if (!connected) print(`Listening; events go to ${forward}`);
        connected = true;
        const { event } = message;
        if (event === undefined || seen.has(event.id)) continue;
        seen.set(event.id, true);
        const answer = await post(event, options);
        print(
          `${new Date(now()).toISOString().slice(11, 19)}  ${eventNameOf(event.type)}  ${event.id}  ${answer}`,
        );
      }
    } catch (error) {
      if (signal.aborted) return;
      const refusal = refusalIn(error);
      if (refusal !== undefined) throw new RefusedError(refusal);
      if (!connected && cursor === '') print(`The service can't be reached yet: ${reasonInWords(error)}`);
    }
    if (connected) print('The connection was lost. Trying again.');
    connected = false;
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Between two tries to connect. */
const PAUSE_MS = 1_000;

/** As long as the service waits for a webhook. */
const TIMEOUT_MS = 10_000;

/** Posts an event, and returns what came of it in words. */
async function post(
  { id, body }: Pick<Event, 'id' | 'body'>,
  { forward, secret, now, signal }: PostOptions,
): Promise<string> {
  const startedAt = now();
  const deadline = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(forward, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'headless-form-service',
        ...signWebhook({ id, body, at: startedAt, secret }),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.any([deadline, signal]),
    });
    await response.body?.cancel();
    return `${response.status} in ${now() - startedAt} ms`;
  } catch (error) {
    return deadline.aborted
      ? `no answer within ${TIMEOUT_MS / 1000} s`
      : `no answer: ${reasonInWords(error)}`;
  }
}

/** The events of some seconds of a very busy service. */
const MAX_REMEMBERED = 20_000;

function refusalIn(error: unknown): string | undefined {
  const { code, rawMessage } = ConnectError.from(error);
  return final.has(code) ? rawMessage : undefined;
}

const final = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.NotFound,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

export type ForwardOptions = {
  /** To the service. */
  transport: Transport;
  /** A form's id; empty: all forms. */
  form: string;
  key: string;
  /** Where events are posted. */
  forward: string;
  /** Signs them. */
  secret: string;
  signal: AbortSignal;
  now: () => number;
  print: (line: string) => void;
};

/**
 * Posts a made-up event to an address, signed as a webhook's, and prints what came of it. Asks no service for anything.
 *
 * Throws `UsageError` for an event that is never sent, and `RefusedError` unless the receiver answers 2xx.
 */
export async function trigger(name: string, options: TriggerOptions): Promise<void> {
  const { secret, now, print } = options;
  const event = sampleEvent(name, now());
  if (event === undefined) {
    const nearest = nearestName(name, sampleNames);
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
    throw new UsageError(`Unknown event: ${name}.${hint} There are ${sampleNames.join(', ')}.`);
  }
  print(`Signing with ${secret}`);
  const outcome = await post(event, { ...options, signal: new AbortController().signal });
  const line = `${name}  ${event.id}  ${outcome}`;
  if (!outcome.startsWith('2')) throw new RefusedError(line);
  print(line);
}

type PostOptions = Pick<ForwardOptions, 'forward' | 'secret' | 'now' | 'signal'>;

type TriggerOptions = Omit<PostOptions, 'signal'> & { print: (line: string) => void };

/**
 * Sends deliveries again: those that are named, and all failed ones of the webhooks, and emails of the forms, that
 * are. With `missedSince` it sends the webhooks what they have missed since then.
 */
export async function replay({ transport, ids, key, missedSince, print }: ReplayOptions): Promise<void> {
  const prefixes = missedSince === undefined ? ['dlv_', 'wh_', 'form_'] : ['wh_'];
  const unknown = ids.find((id) => !prefixes.some((prefix) => id.startsWith(prefix)));
  if (unknown !== undefined) throw new UsageError(`${unknown}: Expected ${prefixes.join('…, ')}…`);
  if (missedSince !== undefined && !time.safeParse(missedSince).success) {
    throw new UsageError(`--missed-since: Expected ISO 8601, as in 2026-11-21T08:00:00Z, not ${missedSince}`);
  }
  const missed = missedSince !== undefined && {
    status: ReplayStatus.MISSED,
    createdAfter: timestampFromDate(new Date(missedSince)),
  };
  const webhooks = createClient(WebhooksService, transport);
  const options = { headers: { authorization: `Bearer ${key}` } };
  for (const id of ids) {
    try {
      if (id.startsWith('dlv_')) {
        await webhooks.replayDelivery({ deliveryId: id }, options);
        print(`${id}: pending`);
      } else {
        const of = id.startsWith('form_') ? { formId: id } : { webhookId: id };
        let count = 0;
        for (let more = true, range = {}; more; ) {
          const reply = await webhooks.replayDeliveries({ ...of, ...missed, ...range }, options);
          count += reply.count;
          more = reply.more;
          range = { createdAfter: reply.nextCreatedAfter };
        }
        print(`${id}: ${count} pending`);
      }
    } catch (error) {
      throw new RefusedError(`${id}: ${ConnectError.from(error).rawMessage}`);
    }
  }
}

const time = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

type ReplayOptions = {
  /** To the service. */
  transport: Transport;
  /** Of deliveries, webhooks and forms. */
  ids: string[];
  key: string;
  /** ISO 8601; undefined: failed deliveries are sent. */
  missedSince?: string | undefined;
  print: (line: string) => void;
};

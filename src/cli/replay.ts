import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { type ReplayDeliveriesResponse, WebhooksService } from '../../gen/headlessforms/v1/webhooks_pb.js';
import { RefusedError } from './terminal.ts';

/** Sends deliveries again: those that are named, and all failed ones of the webhooks, and mails of the forms, that are. */
export async function replay({ transport, ids, key, print }: ReplayOptions): Promise<void> {
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
        for (let more = true, createdAfter: Timestamp | undefined; more; ) {
          const reply: ReplayDeliveriesResponse = await webhooks.replayDeliveries(
            { ...of, createdAfter },
            options,
          );
          count += reply.count;
          ({ more, nextCreatedAfter: createdAfter } = reply);
        }
        print(`${id}: ${count} pending`);
      }
    } catch (error) {
      throw new RefusedError(`${id}: ${ConnectError.from(error).rawMessage}`);
    }
  }
}

export type ReplayOptions = {
  /** To the service. */
  transport: Transport;
  /** Of deliveries, webhooks and forms. */
  ids: string[];
  key: string;
  print: (line: string) => void;
};

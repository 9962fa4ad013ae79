import type { Form } from '../../store/forms.ts';
import type { Version } from '../../store/versions.ts';
import type { Webhook } from '../../store/webhooks.ts';
import type { DeliveryOptions } from '../options.ts';

/** What fan-out needs. */
export type FanOutOptions = Pick<DeliveryOptions, 'database' | 'settings' | 'secretKey' | 'now' | 'log'>;

/** What surrounds a group of events: everything that they are turned into deliveries with. */
export type Surroundings = {
  /** By id, as are the versions: those that were answered and the current ones. */
  forms: Map<string, Form>;
  versions: Map<string, Version>;
  /** The active ones. */
  webhooks: Webhook[];
  /** The further addresses that have confirmed. */
  recipients: { formId: string; address: string }[];
};

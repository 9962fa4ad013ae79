import type { MessageInitShape } from '@bufbuild/protobuf';
import { type Duration, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type {
  RotateWebhookSecretRequest,
  RotateWebhookSecretResponseSchema,
} from '../../../gen/forms/v1/webhooks_pb.js';
import { newWebhookSecret } from '../../domain/secrets.ts';
import type { Caller } from '../../rpc/context.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import { rotateWebhookSecret } from '../../store/webhook-secrets.ts';
import type { ServiceContext } from '../context.ts';
import { wholeSeconds } from '../durations.ts';
import { webhookOf } from './webhook-lookup.ts';
import { webhookMessage } from './webhook-message.ts';

/** Makes a new signing secret, which signs at once or after `effective_in`. A rotation planned before is dropped. */
export async function rotateSecret(
  { database, secrets, now }: ServiceContext,
  { webhookId, effectiveIn }: RotateWebhookSecretRequest,
  caller: Caller,
): Promise<MessageInitShape<typeof RotateWebhookSecretResponseSchema>> {
  const delay = delayOf(effectiveIn);
  await webhookOf(database, caller, webhookId);

  const secret = newWebhookSecret();
  const at = new Date(now());
  const rotation = {
    projectId: caller.projectId,
    webhookId,
    secret: secrets.seal(secret),
    effectiveAt: new Date(at.getTime() + delay * 1000),
    now: at,
  };
  const webhook = await database.transaction((tx) => rotateWebhookSecret(tx, rotation));
  if (webhook === null) throw notFound('webhook');
  return {
    webhook: webhookMessage(webhook),
    secret,
    effectiveTime: timestampFromDate(rotation.effectiveAt),
  };
}

/** Seconds until the secret takes effect. */
function delayOf(effectiveIn: Duration | undefined): number {
  const path = 'effective_in';
  const seconds = effectiveIn === undefined ? 0 : wholeSeconds(effectiveIn);
  if (seconds === undefined) {
    throw invalid([{ path, code: 'invalid_type', message: 'Expected whole seconds' }]);
  }
  if (seconds < 0) throw invalid([{ path, code: 'too_small', message: 'Expected at least 0' }]);
  if (seconds <= MAX_DELAY_SECONDS) return seconds;
  throw invalid([{ path, code: 'too_big', message: `Expected at most ${MAX_DELAY_SECONDS}` }]);
}

/** Seven days. */
const MAX_DELAY_SECONDS = 604_800;

import type { HandlerContext } from '@connectrpc/connect';
import type { Callback } from '../../../gen/headlessforms/v1/sessions_pb.js';
import type { Violation } from '../../domain/errors/violations.ts';
import { callbackNames, templateProblems } from '../../domain/events/template.ts';
import { lackedToGive } from '../../domain/scopes.ts';
import { newWebhookSecret } from '../../domain/secrets/new-secrets.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Session, StoredCallback } from '../../store/sessions/session-table.ts';
import type { ServiceContext } from '../context.ts';
import { secretProblems, urlProblems } from '../webhooks/webhook-request.ts';

/** What is wrong with a callback, below `callback`. */
export function callbackProblems(
  { settings }: Pick<ServiceContext, 'settings'>,
  callback: Callback | undefined,
  call: HandlerContext,
): Violation[] {
  if (callback === undefined) return [];
  const { url, secret, template = {} } = callback;
  const names = callbackNames({ answers: mayCarryAnswers(call) });
  return [
    ...urlProblems(url, settings.allowPrivateWebhooks),
    ...secretProblems(secret),
    ...templateProblems(template, 'template', names),
  ].map((violation) => ({ ...violation, path: `callback.${violation.path}` }));
}

/** How a session keeps a callback that has no problems. Without a secret, one is made. */
export function storedCallback(
  { secrets }: Pick<ServiceContext, 'secrets'>,
  callback: Callback | undefined,
  call: HandlerContext,
): Pick<Session, 'callback' | 'callbackSecret'> {
  if (callback === undefined) return { callback: null, callbackSecret: null };
  const { url, secret, template = {} } = callback;
  const { keyId } = callerOf(call);
  const stored: StoredCallback = {
    url,
    origin: new URL(url).origin,
    ...(Object.keys(template).length > 0 && { template }),
    ...(keyId !== undefined && mayCarryAnswers(call) && { keyId }),
  };
  return { callback: stored, callbackSecret: secrets.seal(secret === '' ? newWebhookSecret() : secret) };
}

/** The secret of a callback that the service made for this request, or the first one that it repeats. */
export function madeSecret(
  { secrets }: Pick<ServiceContext, 'secrets'>,
  callback: Callback | undefined,
  { callbackSecret }: Session,
): string {
  return callback?.secret === '' && callbackSecret !== null ? secrets.open(callbackSecret) : '';
}

function mayCarryAnswers(call: HandlerContext): boolean {
  const { byToken = false, scopes } = callerOf(call);
  // When it is sent, nobody could tell whether the token still holds the right.
  return !byToken && lackedToGive('destination', scopes) === undefined;
}

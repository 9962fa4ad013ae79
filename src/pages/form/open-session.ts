import { HostedService, type HostedSession, HostedState } from '../../../gen/forms/internal/v1/hosted_pb.js';
import { type ErrorReason, HttpError } from '../../http/errors.ts';
import type { PageExchange } from '../handler.ts';
import { isPreview } from './preview.ts';

/** The session that the address names. */
export async function readSession(exchange: PageExchange): Promise<HostedSession> {
  const sessionId = sessionIdOf(exchange);
  const preview = isPreview(exchange.request);
  const { session } = await exchange.call(HostedService.method.getHostedSession, { sessionId, preview });
  if (session === undefined) throw new HttpError('not_found', 'There is no such session');
  exchange.session = session;
  return session;
}

/** The session, if it takes answers; throws why it does not. */
export async function openSession(exchange: PageExchange): Promise<HostedSession> {
  const session = await readSession(exchange);
  refuseClosed(session);
  return session;
}

/** Throws if the session takes no answers. */
export function refuseClosed({ state }: HostedSession): void {
  const refusal = refusals[state];
  if (refusal !== undefined) throw new HttpError(...refusal);
}

/** Refuses what another site's page has posted, unless it may embed the form anyway. */
export function refuseForeign({ request }: PageExchange, session: HostedSession): void {
  if (request.headers['sec-fetch-site'] !== 'cross-site' || session.embedOrigins.length > 0) return;
  throw new HttpError('origin_not_allowed', 'This page takes no posts from other sites');
}

/** The id in the address. */
export function sessionIdOf({ request }: PageExchange): string {
  return String(request.params.sessionId);
}

/** Why a session in each state takes no answers. */
const refusals: Partial<Record<HostedState, [reason: ErrorReason, message: string]>> = {
  [HostedState.SUBMITTED]: ['conflict', 'The session has been submitted'],
  [HostedState.EXPIRED]: ['expired', 'The session has expired'],
  [HostedState.CANCELLED]: ['cancelled', 'The session has been cancelled'],
  [HostedState.CLOSED]: ['closed', 'The form takes no more submissions'],
  [HostedState.ARCHIVED]: ['archived', 'The form is archived'],
};

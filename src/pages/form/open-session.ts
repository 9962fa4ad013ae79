import type { Client } from '@connectrpc/connect';
import type { Request, Response } from 'express';
import { Reason } from '../../../gen/forms/v1/errors_pb.js';
import { type HostedService, type HostedSession, HostedState } from '../../../gen/forms/v1/hosted_pb.js';
import { Refused } from '../failure.ts';
import { callOptions } from '../reply.ts';

/** The session that the address names. Its looks are kept for the page that tells what went wrong. */
export async function readSession(
  hosted: Hosted,
  request: Request,
  response: Response,
): Promise<HostedSession> {
  const sessionId = sessionIdOf(request);
  const { session } = await hosted.getHostedSession({ sessionId }, callOptions(request, response));
  if (session === undefined) throw new Refused(Reason.NOT_FOUND, 'There is no such session');
  response.locals.session = session;
  return session;
}

/** The session, if it takes answers; throws what it is instead. */
export async function openSession(
  hosted: Hosted,
  request: Request,
  response: Response,
): Promise<HostedSession> {
  const session = await readSession(hosted, request, response);
  refuseOver(session);
  return session;
}

/** Throws if the session takes no answers. */
export function refuseOver({ state }: HostedSession): void {
  const refusal = refusals[state];
  if (refusal !== undefined) throw new Refused(...refusal);
}

/** Refuses what another site's page has posted, unless it may embed the form anyway. */
export function refuseForeign(request: Request, session: HostedSession): void {
  if (request.headers['sec-fetch-site'] !== 'cross-site' || session.embedOrigins.length > 0) return;
  throw new Refused(Reason.ORIGIN_NOT_ALLOWED, 'This page takes no posts from other sites');
}

/** The id in the address. */
export function sessionIdOf(request: Request): string {
  return String(request.params.sessionId);
}

/** Why a session in each state takes no answers. */
const refusals: Partial<Record<HostedState, [reason: Reason, message: string]>> = {
  [HostedState.SUBMITTED]: [Reason.CONFLICT, 'The session has been submitted'],
  [HostedState.EXPIRED]: [Reason.EXPIRED, 'The session has expired'],
  [HostedState.CLOSED]: [Reason.CLOSED, 'The form takes no more submissions'],
  [HostedState.ARCHIVED]: [Reason.ARCHIVED, 'The form is archived'],
};

export type Hosted = Client<typeof HostedService>;

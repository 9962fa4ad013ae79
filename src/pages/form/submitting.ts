import type { Request, Response } from 'express';
import type { HostedSession } from '../../../gen/forms/v1/hosted_pb.js';
import { readPost } from '../body.ts';
import { renderEnding } from '../message-pages.ts';
import { callOptions, prefersJson, sendJson, sendPage } from '../reply.ts';
import { type Hosted, refuseOver, sessionIdOf } from './open-session.ts';
import { inputsOf, type Posted, readPostedAgain } from './posted.ts';

/** Submits the session and answers with its ending: the page of thanks, a redirect, or JSON. */
export async function submitPosted({
  hosted,
  request,
  response,
  session,
  posted,
}: Submitting): Promise<void> {
  const { texts, honeypot, issueToken } = posted;
  const { ending, submissionId } = await hosted.submitHostedSession(
    { sessionId: sessionIdOf(request), inputs: inputsOf(texts), honeypot, issueToken },
    callOptions(request, response),
  );
  if (prefersJson(request)) {
    const redirect = ending?.redirectUrl ? { redirect_url: ending.redirectUrl } : {};
    return sendJson(response, 201, { ok: true, submission_id: submissionId, ...redirect });
  }
  if (ending === undefined) throw new Error('A submission without an ending');
  // A script that has fetched the page cannot be sent to another site, but the page can.
  if (ending.redirectUrl !== '' && !posted.fetched) {
    response.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    return response.redirect(303, ending.redirectUrl);
  }
  await sendPage(request, response, 200, renderEnding(ending, request, session.embedOrigins));
}

/** Answers a page that is posted after its session was submitted, by a second click or a reload. */
export async function submitAgain(parts: Omit<Submitting, 'posted'>): Promise<void> {
  const { session, request } = parts;
  const posted = readPostedAgain(await readPost(request, async () => {}));
  if (posted === undefined) return refuseOver(session);
  await submitPosted({ ...parts, posted });
}

type Submitting = {
  hosted: Hosted;
  request: Request;
  response: Response;
  session: HostedSession;
  posted: Pick<Posted, 'texts' | 'honeypot' | 'issueToken' | 'fetched'>;
};

import type { ServiceImpl } from '@connectrpc/connect';
import {
  type GetHostedSessionRequest,
  type HostedService,
  HostedState,
  type SaveHostedAnswersRequest,
  type SubmitHostedSessionRequest,
} from '../../gen/forms/v1/hosted_pb.js';
import { mergeAnswers } from '../domain/answers/answers.ts';
import { readInputs } from '../domain/answers/form-inputs.ts';
import { isId } from '../domain/ids.ts';
import { findAnySession, markSessionOpened, type Session } from '../store/sessions.ts';
import { invalid, notFound } from './calls/errors.ts';
import type { Shared } from './deps.ts';
import { endingOf } from './endings.ts';
import { gateOf, publishedForm, refuseIfShut } from './form-gate.ts';
import { endedToMessage, heldAnswers, hostedState, openToMessage, shownAnswers } from './hosted-message.ts';
import { repeatedSubmission } from './hosted-repeat.ts';
import { saveAnswers } from './hosted-saving.ts';
import { issueToken, isTooQuick } from './issue-token.ts';
import { openSession } from './sessions.ts';
import { newSubmission, storeSubmission } from './submission-entry.ts';
import { checkSize } from './submission-request.ts';
import { claimUploads, describeUnclaimed } from './upload-claims.ts';

/** Shows a session to a person and takes their answers. The session id is the credential. */
export function hostedService(deps: Shared): ServiceImpl<typeof HostedService> {
  return {
    getHostedSession: (request) => getHostedSession(deps, request),
    saveHostedAnswers: (request) => saveHostedAnswers(deps, request),
    submitHostedSession: (request, { requestHeader }) => submitHostedSession(deps, request, requestHeader),
  };
}

async function getHostedSession(deps: Shared, { sessionId }: GetHostedSessionRequest) {
  const session = await anySession(deps, sessionId);
  const form = await publishedForm(deps.forms, session.formId);
  const { definition } = await deps.forms.version(session.versionId);
  const now = deps.now();
  const state = hostedState(session, gateOf(form, now));
  if (state !== HostedState.OPEN) return { session: endedToMessage(definition, form, state) };

  if (session.openedAt === null) await markSessionOpened(deps.database, session.id);
  const held = shownAnswers(definition, heldAnswers(definition, session));
  const answers = await describeUnclaimed(deps, { id: form.id, definition }, held);
  const token = issueToken(deps.secretKey, session.id, now);
  return { session: openToMessage(definition, form, { session, answers, issueToken: token }) };
}

async function saveHostedAnswers(deps: Shared, { sessionId, inputs, page }: SaveHostedAnswersRequest) {
  const session = await anySession(deps, sessionId);
  const { form, version } = await openSession(deps, session);
  refuseIfShut(form, deps.now());
  const given = readInputs(version.definition, inputs, { humanOnly: true });
  checkSize(form, given);
  return saveAnswers(deps, { session, form, version, given, page });
}

/**
 * A machine gets the same answer as a person: what it filled is stored as spam, and it can't learn
 * what gave it away.
 */
async function submitHostedSession(
  deps: Shared,
  request: SubmitHostedSessionRequest,
  requestHeader: Headers,
) {
  const session = await anySession(deps, request.sessionId);
  if (session.status === 'submitted') return repeatedSubmission(deps, session, request, requestHeader);
  const { form, version } = await openSession(deps, session);
  const now = deps.now();
  refuseIfShut(form, now);
  const { definition, compiled } = version;
  const given = readInputs(definition, request.inputs, { humanOnly: true });
  checkSize(form, given);
  const base = mergeAnswers(session.prefill, session.partialAnswers ?? {});
  const checked = compiled.checkAnswers(given, { base });
  if (!checked.ok) throw invalid(checked.violations);
  const claimed = await claimUploads(deps, { id: form.id, definition }, checked.answers);
  if (claimed.violations.length > 0) throw invalid(claimed.violations);

  const { redirectUrl = '', spam: guards } = form.version.definition.settings;
  const visit = { token: request.issueToken, sessionId: session.id, now };
  const spam = request.honeypot !== '' || isTooQuick(deps.secretKey, visit, guards.minSeconds);
  const entry = { form, version, session, ...claimed, source: 'hosted', byHuman: true, spam };
  const submissionId = await storeSubmission(deps, form, newSubmission(entry, now));
  return { submissionId, ending: endingOf(definition, claimed.answers, { redirectUrl, requestHeader }) };
}

async function anySession(deps: Shared, sessionId: string): Promise<Session> {
  const session = isId('sess', sessionId) ? await findAnySession(deps.database, sessionId) : null;
  if (session === null) throw notFound('session');
  return session;
}

import type { ServiceImpl } from '@connectrpc/connect';
import {
  type GetHostedSessionRequest,
  type HostedService,
  HostedState,
  type SaveHostedAnswersRequest,
  type SubmitHostedSessionRequest,
} from '../../../gen/forms/v1/hosted_pb.js';
import { mergeAnswers } from '../../domain/answers/answers.ts';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import { isId } from '../../domain/ids.ts';
import { invalid, notFound } from '../../rpc/errors.ts';
import { findAnySession, markSessionOpened, type Session } from '../../store/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { gateOf, publishedForm, refuseIfShut } from '../forms/form-gate.ts';
import { openSession } from '../sessions/sessions.ts';
import { endingOf } from '../submissions/completion.ts';
import { newSubmission, storeSubmission } from '../submissions/submission-entry.ts';
import { checkSize } from '../submissions/submission-request.ts';
import { claimUploads, describeUnclaimed } from '../uploads/upload-claims.ts';
import { endedToMessage, heldAnswers, hostedState, openToMessage, shownAnswers } from './hosted-message.ts';
import { issueToken, isTooQuick } from './page-token.ts';
import { repeatedSubmission } from './repeated-submission.ts';
import { saveAnswers } from './saving.ts';

/** Shows a session to a person and takes their answers. The session id is the credential. */
export function hostedService(context: ServiceContext): ServiceImpl<typeof HostedService> {
  return {
    getHostedSession: (request) => getHostedSession(context, request),
    saveHostedAnswers: (request) => saveHostedAnswers(context, request),
    submitHostedSession: (request, { requestHeader }) => submitHostedSession(context, request, requestHeader),
  };
}

async function getHostedSession(context: ServiceContext, { sessionId }: GetHostedSessionRequest) {
  const session = await anySession(context, sessionId);
  const form = await publishedForm(context.forms, session.formId);
  const { definition } = await context.forms.version(session.versionId);
  const now = context.now();
  const state = hostedState(session, gateOf(form, now));
  if (state !== HostedState.OPEN) return { session: endedToMessage(definition, form, state) };

  if (session.openedAt === null) await markSessionOpened(context.database, session.id);
  const held = shownAnswers(definition, heldAnswers(definition, session));
  const answers = await describeUnclaimed(context, { id: form.id, definition }, held);
  const token = issueToken(context.secretKey, session.id, now);
  return { session: openToMessage(definition, form, { session, answers, issueToken: token }) };
}

async function saveHostedAnswers(
  context: ServiceContext,
  { sessionId, inputs, page }: SaveHostedAnswersRequest,
) {
  const session = await anySession(context, sessionId);
  const { form, version } = await openSession(context, session);
  refuseIfShut(form, context.now());
  const given = readInputs(version.definition, inputs, { humanOnly: true });
  checkSize(form, given);
  return saveAnswers(context, { session, form, version, given, page });
}

/**
 * A machine gets the same answer as a person: what it filled is stored as spam, and it can't learn
 * what gave it away.
 */
async function submitHostedSession(
  context: ServiceContext,
  request: SubmitHostedSessionRequest,
  requestHeader: Headers,
) {
  const session = await anySession(context, request.sessionId);
  if (session.status === 'submitted') return repeatedSubmission(context, session, request, requestHeader);
  const { form, version } = await openSession(context, session);
  const now = context.now();
  refuseIfShut(form, now);
  const { definition, compiled } = version;
  const given = readInputs(definition, request.inputs, { humanOnly: true });
  checkSize(form, given);
  const base = mergeAnswers(session.prefill, session.partialAnswers ?? {});
  const checked = compiled.checkAnswers(given, { base });
  if (!checked.ok) throw invalid(checked.violations);
  const claimed = await claimUploads(context, { id: form.id, definition }, checked.answers);
  if (claimed.violations.length > 0) throw invalid(claimed.violations);

  const { redirectUrl = '', spam: guards } = form.version.definition.settings;
  const visit = { token: request.issueToken, sessionId: session.id, now };
  const spam = request.honeypot !== '' || isTooQuick(context.secretKey, visit, guards.minSeconds);
  const entry = { form, version, session, ...claimed, source: 'hosted', byHuman: true, spam };
  const submissionId = await storeSubmission(context, form, newSubmission(entry, now));
  return { submissionId, ending: endingOf(definition, claimed.answers, { redirectUrl, requestHeader }) };
}

async function anySession(context: ServiceContext, sessionId: string): Promise<Session> {
  const session = isId('sess', sessionId) ? await findAnySession(context.database, sessionId) : null;
  if (session === null) throw notFound('session');
  return session;
}

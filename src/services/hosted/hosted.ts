import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type GetHostedSessionRequest,
  type HostedService,
  HostedState,
  type SaveHostedAnswersRequest,
  type SubmitHostedSessionRequest,
} from '../../../gen/forms/internal/v1/hosted_pb.js';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import { languagesOf } from '../../domain/definition/translate.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import { markSessionOpened } from '../../store/sessions/sessions.ts';
import type { ServiceContext } from '../context.ts';
import { availabilityOf, publishedForm, refuseIfClosed } from '../forms/form-access.ts';
import { anySession, openSession } from '../sessions/session-access.ts';
import { acceptAnswers, checkSize } from '../submissions/accept-answers.ts';
import { completionOf } from '../submissions/completion.ts';
import { describeUnclaimed } from '../uploads/upload-claims.ts';
import {
  currentAnswers,
  endedToMessage,
  hostedState,
  inLanguageOf,
  openToMessage,
  visibleAnswers,
} from './hosted-message.ts';
import { issueToken, isTooQuick, pagesOf } from './page-token.ts';
import { submitPostedForm } from './posted-form.ts';
import { repeatedSubmission } from './repeated-submission.ts';
import { saveAnswers } from './saving.ts';
import { visitorMethods } from './visitors.ts';

/**
 * Shows sessions and forms to people and takes their answers; a session's id is its credential. And HTML forms' posts.
 */
export function hostedService(context: ServiceContext): ServiceImpl<typeof HostedService> {
  return {
    getHostedSession: (request, call) => getHostedSession(context, request, call),
    saveHostedAnswers: (request, call) => saveHostedAnswers(context, request, call),
    submitHostedSession: (request, call) => submitHostedSession(context, request, call),
    ...visitorMethods(context),
    submitPostedForm: (request, call) => submitPostedForm(context, request, call),
  };
}

async function getHostedSession(
  context: ServiceContext,
  { sessionId, preview }: GetHostedSessionRequest,
  call: HandlerContext,
) {
  const session = await anySession(context.database, sessionId);
  const form = await publishedForm(context.forms, session.formId);
  const version = await context.forms.version(session.versionId);
  const { definition } = version;
  const shown = inLanguageOf(definition, call);
  const now = context.now();
  const state = hostedState(session, availabilityOf(form, now));
  if (state !== HostedState.OPEN) return { session: endedToMessage(shown, form, state) };

  if (session.openedAt === null && !preview) await markSessionOpened(context.database, session.id);
  const held = visibleAnswers(definition, currentAnswers(definition, session));
  const answers = await describeUnclaimed(context, version, held);
  const token = issueToken(context.secretKey, session.id, now);
  const languages = languagesOf(definition);
  return { session: { ...openToMessage(shown, form, { session, answers, issueToken: token }), languages } };
}

async function saveHostedAnswers(
  context: ServiceContext,
  { sessionId, inputs, page }: SaveHostedAnswersRequest,
  call: HandlerContext,
) {
  const session = await anySession(context.database, sessionId);
  const { form, version } = await openSession(context, session);
  refuseIfClosed(form, context.now());
  const given = readInputs(version.definition, inputs, { humanOnly: true });
  checkSize(form, given);
  using room = context.keylessStorage.reserve(form.projectId, clientAddressOf(call));
  if (form.createdBy === 'public' || session.keylessBytes !== null) {
    await room.add(Buffer.byteLength(JSON.stringify(given)));
  }
  const answer = await saveAnswers(context, { session, form, version, given, page });
  if (answer.saved) room.keep();
  return answer;
}

/**
 * A bot gets the same answer as a person: its submission is stored as spam, and it can't learn what
 * identified it.
 */
async function submitHostedSession(
  context: ServiceContext,
  request: SubmitHostedSessionRequest,
  call: HandlerContext,
) {
  const { requestHeader } = call;
  const session = await anySession(context.database, request.sessionId);
  if (session.status === 'submitted') return repeatedSubmission(context, session, request, requestHeader);
  const { form, version } = await openSession(context, session);
  const { definition } = version;
  const answers = readInputs(definition, request.inputs, { humanOnly: true });
  checkSize(form, answers);
  const { redirectUrl = '', spam: guards } = form.version.definition.settings;
  const visit = { token: request.issueToken, pageIds: pagesOf(session), now: context.now() };
  const spam = request.honeypot !== '' || isTooQuick(context.verifyingKeys, visit, guards.minSeconds);
  const entry = { call, form, version, session, answers, source: 'hosted', byHuman: true, spam };
  const { submissionId, submission } = await acceptAnswers(context, entry);
  return {
    submissionId,
    ending: completionOf(definition, submission.answers, {
      redirectUrl,
      returnUrl: session.returnUrl,
      requestHeader,
    }),
  };
}

import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  SessionStatus,
  SessionStatusSchema,
  type SessionsService,
  type SubmitSessionRequest,
} from '../../../gen/headlessforms/v1/sessions_pb.js';
import { AnswerChannel, AnswerChannelSchema } from '../../../gen/headlessforms/v1/submissions_pb.js';
import { savedAnswers } from '../../domain/answers/held.ts';
import { translate } from '../../domain/definition/translate.ts';
import { invalid, notFound } from '../../domain/errors/failure.ts';
import { custom } from '../../domain/errors/violations.ts';
import { fingerprint } from '../../domain/json/json-text.ts';
import { preferredLanguages } from '../../domain/text/accept-language.ts';
import { callerOf } from '../../rpc/context.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findAnySession, listSessions as listStored } from '../../store/sessions/sessions.ts';
import type { NewSubmission } from '../../store/submissions/submission-insert.ts';
import {
  findRepeatedSubmission,
  findSubmission,
  type Submission,
} from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { type PublishedForm, requireProjectForm, sessionsForm } from '../forms/form-access.ts';
import { agentSchemaToMessage, publicFormToMessage } from '../forms/form-proto.ts';
import { readIdempotency, replayAfterRefusal } from '../idempotency.ts';
import { openSession, pageIdOf } from '../open-session.ts';
import { askedName, pageRequestOf, unknownCursor, unknownValue } from '../request-values.ts';
import { acceptAnswers, checkSize } from '../submissions/accept-answers.ts';
import { submissionToMessage } from '../submissions/submission-proto.ts';
import { readSource } from '../submissions/submission-request.ts';
import { ask } from './ask.ts';
import { createAwaitSession } from './await-session.ts';
import { cancelSession, changeSession, declineSession } from './change-session.ts';
import { describeRead, describeSession, describeSessions } from './describe-session.ts';
import { noteSession, projectSession } from './find-session.ts';
import { requireKey } from './question-form.ts';

/** Opens sessions for people or agents to fill, and reads, awaits, lists, changes, cancels and submits them. */
export function sessionsService(context: ServiceContext): ServiceImpl<typeof SessionsService> {
  return {
    createSession: (request, call) => ask(context, request, call),

    async getSession({ sessionId, includeForm }, call) {
      const session = await projectSession(context, callerOf(call), sessionId);
      const reply = await describeRead(context, call, session);
      if (!includeForm) return reply;
      const form = await sessionsForm(context.forms, session.formId);
      const kept = { ...form, version: await context.forms.version(session.versionId) };
      return { ...reply, form: publicFormToMessage(kept, { open: session.status === 'open' }) };
    },

    awaitSession: createAwaitSession(context),

    async getSessionAgentSchema({ sessionId, language }, call) {
      const session = await projectSession(context, callerOf(call), sessionId);
      const { form, version } = await openSession(context, session);
      noteSession(context, call, session);
      const definition = translate(version.definition, preferredLanguages(language));
      const described = { formId: form.id, versionId: version.id, definition };
      return {
        schema: agentSchemaToMessage(described, savedAnswers(session), {
          needsPage: session.context !== null || session.respondent !== null,
        }),
        url: `${context.settings.hostedUrl}/f/${pageIdOf(session)}`,
        expireTime: timestampFromDate(session.expiresAt),
      };
    },

    /** A page's token is the id of its last session. */
    async listSessions(request, call) {
      await requireProjectForm(context.forms, callerOf(call), request.formId);
      const { limit, cursor } = pageRequestOf(request, 'sess');
      const after = cursor === undefined ? undefined : await findAnySession(context.database, cursor);
      if (after !== undefined && after?.formId !== request.formId) throw unknownCursor();
      const status = askedName(SessionStatus, request.status, 'status', SessionStatusSchema);
      const { items, nextCursor } = await listStored(context.database, request.formId, {
        ...(status !== undefined && { status }),
        ...(after !== undefined && { after }),
        limit,
      });
      context.audit.note(call, { formId: request.formId });
      if (items.length === 0) return {};
      const form = await sessionsForm(context.forms, request.formId);
      const sessions = await describeSessions(context, form, items);
      return { sessions, nextPageToken: nextCursor ?? '' };
    },

    updateSession: (request, call) => changeSession(context, request, call),
    cancelSession: (request, call) => cancelSession(context, request, call),
    declineSession: (request, call) => declineSession(context, request, call),

    submitSession: (request, call) => submitSession(context, request, call),
  };
}

/** Submits a session; a repeated request gets what the first has submitted. */
async function submitSession(context: ServiceContext, request: SubmitSessionRequest, call: HandlerContext) {
  const { sessionId, answers = {}, answeredBy } = request;
  const session = await projectSession(context, callerOf(call), sessionId);
  const channel = channelOf(answeredBy);
  const source = readSource(request.source);
  if (source === 'hosted') throw invalid([custom('source', 'Only the hosted page says this of itself')]);
  if (request.source !== '') requireKey(call);
  const content = { answers, answered_by: channel, ...(request.source !== '' && { source }) };
  const given = readIdempotency(request.idempotencyKey, content);
  // Of the same form other sessions, and submissions without one, may have the same key.
  const idempotency = given && { ...given, key: `session:${fingerprint([sessionId, given.key])}` };

  const describe = async (form: PublishedForm, submission: Submission | NewSubmission) => {
    const { id: submissionId, createdAt: submittedAt } = submission;
    const submitted: Session = { ...session, status: 'submitted', submittedAt, submissionId };
    return {
      submission: submissionToMessage(submission),
      session: await describeSession(context, form, submitted),
    };
  };
  const again = async (submissionId: string) => {
    const submission = await findSubmission(context.database, session.projectId, submissionId);
    if (submission === null) throw notFound('submission');
    return describe(await sessionsForm(context.forms, session.formId), submission);
  };
  return replayAfterRefusal(
    idempotency,
    async () => {
      const { form, version } = await openSession(context, session);
      checkSize(form, answers);
      const entry = { call, form, version, session, answers, channel, source, idempotency };
      const { submissionId, submission } = await acceptAnswers(context, entry);
      return submissionId === submission.id ? describe(form, submission) : again(submissionId);
    },
    async (key) => {
      const first = await findRepeatedSubmission(context.database, session.formId, key);
      if (first === null) return null;
      const { id: submissionId, requestFingerprint } = first;
      return { fingerprint: requestFingerprint, submissionId, made: () => again(submissionId) };
    },
  );
}

/** Where a caller says that answers come from. Throws for what a caller can't say. */
function channelOf(channel: AnswerChannel): 'api' | 'mcp_user' {
  if (channel === AnswerChannel.MCP_USER) return 'mcp_user';
  if (channel === AnswerChannel.UNSPECIFIED || channel === AnswerChannel.API) return 'api';
  throw unknownValue('answered_by', AnswerChannelSchema, [AnswerChannel.API, AnswerChannel.MCP_USER]);
}

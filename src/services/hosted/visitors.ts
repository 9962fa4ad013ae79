import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type CheckHostedAnswersRequest,
  type GetHostedFormRequest,
  type HostedService,
  HostedState,
  type OpenHostedSessionRequest,
  type SubmitHostedFormRequest,
} from '../../../gen/forms/internal/v1/hosted_pb.js';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import { languagesOf } from '../../domain/definition/translate.ts';
import { newSessionId } from '../../domain/ids.ts';
import { clientAddressOf } from '../../rpc/context.ts';
import { bytesOfSession } from '../../store/keyless-storage.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { insertSession, type NewSession } from '../../store/sessions/sessions.ts';
import { findRepeatedSubmission, findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { availabilityOf, type PublishedForm, refuseIfClosed } from '../forms/form-access.ts';
import { type Idempotency, onceByKey, readIdempotency } from '../idempotency/idempotency.ts';
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
import { issueToken, isTooQuick, nonceOf } from './page-token.ts';
import { saveAnswers } from './saving.ts';
import { formOfPage, readPrefill, sessionOfVisitor, visitWith } from './visit.ts';

/**
 * The RPCs for whoever visits a form's own page: they show and take, and store a session when there is something to
 * keep.
 */
export function visitorMethods(context: ServiceContext): VisitorMethods {
  return {
    getHostedForm: (request, call) => getHostedForm(context, request, call),
    openHostedSession: (request, call) => openHostedSession(context, request, call),
    checkHostedAnswers: (request) => checkHostedAnswers(context, request),
    submitHostedForm: (request, call) => submitHostedForm(context, request, call),
  };
}

async function getHostedForm(context: ServiceContext, request: GetHostedFormRequest, call: HandlerContext) {
  const form = await formOfPage(context, request.formId);
  const now = context.now();
  const availability = availabilityOf(form, now);
  const begun = await sessionOfVisitor(context, form.id, request.sessionId);
  const session = begun && isShown(begun, request) ? begun : undefined;
  const version = session === undefined ? form.version : await context.forms.version(session.versionId);
  const { definition } = version;
  const shown = inLanguageOf(definition, call);
  const state = session === undefined ? stateOf(availability) : hostedState(session, availability);
  const page = { permanent: true, sessionId: session?.id ?? '' };
  if (state !== HostedState.OPEN) return { session: { ...endedToMessage(shown, form, state), ...page } };

  const visit = session ?? visitWith(await readPrefill(version, request.prefill), now);
  const held = visibleAnswers(definition, currentAnswers(definition, visit));
  const answers = await describeUnclaimed(context, version, held);
  const token = issueToken(context.secretKey, form.id, now);
  return {
    session: {
      ...openToMessage(shown, form, { session: visit, answers, issueToken: token }),
      ...page,
      languages: languagesOf(definition),
    },
  };
}

function isShown({ status }: Session, { ended }: GetHostedFormRequest): boolean {
  return status === 'open' || (ended && status === 'submitted');
}

function stateOf(availability: ReturnType<typeof availabilityOf>): HostedState {
  return { open: HostedState.OPEN, closed: HostedState.CLOSED, archived: HostedState.ARCHIVED }[availability];
}

/** A page that asks twice, as for two files at once, gets one session. */
async function openHostedSession(
  context: ServiceContext,
  { formId, prefill: inputs, issueToken: token }: OpenHostedSessionRequest,
  call: HandlerContext,
) {
  const form = await formOfPage(context, formId);
  refuseIfClosed(form, context.now());
  const prefill = await readPrefill(form.version, inputs);
  checkSize(form, prefill);
  const keylessBytes = bytesOfSession({ prefill, partialAnswers: null });
  using room = context.keylessStorage.reserve(form.projectId, clientAddressOf(call));
  await room.add(keylessBytes);
  const id = newSessionId();
  const fresh: NewSession = {
    id,
    projectId: form.projectId,
    formId: form.id,
    versionId: form.version.id,
    prefill,
    metadata: {},
    provenance: { prefill: [{ by: 'prefill' }], partial: [] },
    expiresIn: VISITOR_SECONDS,
    keylessBytes,
  };
  const first = await insertSession(context.database, {
    ...fresh,
    idempotency: ofPage(context, form, token, {}),
  });
  // A page may stay open for longer than its session.
  const stored = first.status === 'expired' ? await insertSession(context.database, fresh) : first;
  if (stored.id === id) {
    context.keylessStorage.record({ formId: form.id, projectId: form.projectId, bytes: keylessBytes });
    room.keep();
  }
  return { sessionId: stored.id };
}

async function checkHostedAnswers(
  context: ServiceContext,
  { formId, prefill, inputs, page }: CheckHostedAnswersRequest,
) {
  const form = await formOfPage(context, formId);
  const now = context.now();
  refuseIfClosed(form, now);
  const { version } = form;
  const given = readInputs(version.definition, inputs, { humanOnly: true });
  checkSize(form, given);
  const session = visitWith(await readPrefill(version, prefill), now);
  const { answers, violations } = await saveAnswers(context, { session, form, version, given, page });
  return { answers, violations };
}

/** A bot gets the same answer as a person, as in a session. */
async function submitHostedForm(
  context: ServiceContext,
  request: SubmitHostedFormRequest,
  call: HandlerContext,
) {
  const form = await formOfPage(context, request.formId);
  const { version } = form;
  const { definition } = version;
  const now = context.now();
  const answers = readInputs(definition, request.inputs, { humanOnly: true });
  const prefill = await readPrefill(version, request.prefill);
  checkSize(form, { answers, prefill });
  const idempotency = ofPage(context, form, request.issueToken, { answers, prefill });
  const { redirectUrl = '', spam: guards } = definition.settings;
  const visit = { token: request.issueToken, pageIds: [form.id], now };
  const spam = request.honeypot !== '' || isTooQuick(context.verifyingKeys, visit, guards.minSeconds);
  const session = visitWith(prefill, now);
  const entry = { call, form, version, session, answers, source: 'hosted', byHuman: true, spam, idempotency };
  const accepted = await onceByKey(
    idempotency,
    async () => {
      const { submissionId, submission } = await acceptAnswers(context, entry);
      return { submissionId, answers: submission.answers };
    },
    async (key) => {
      const first = await findRepeatedSubmission(context.database, form.id, key);
      const stored = first && (await findSubmission(context.database, form.projectId, first.id));
      if (first === null || stored === null) return null;
      return {
        made: { submissionId: first.id, answers: stored.answers },
        fingerprint: first.requestFingerprint,
      };
    },
  );
  return {
    submissionId: accepted.submissionId,
    ending: completionOf(definition, accepted.answers, { redirectUrl, requestHeader: call.requestHeader }),
  };
}

/** What makes a page's posts repeatable; undefined if its token is none of the form's. */
function ofPage(
  { verifyingKeys, now }: ServiceContext,
  form: PublishedForm,
  token: string,
  content: Record<string, unknown>,
): Idempotency | undefined {
  const nonce = nonceOf(verifyingKeys, { token, pageIds: [form.id], now: now() });
  return readIdempotency(nonce === undefined ? '' : `page:${nonce}`, content);
}

/** How long a visitor may take over a form: 7 days. */
const VISITOR_SECONDS = 7 * 24 * 60 * 60;

type VisitorMethods = Pick<
  ServiceImpl<typeof HostedService>,
  'getHostedForm' | 'openHostedSession' | 'checkHostedAnswers' | 'submitHostedForm'
>;

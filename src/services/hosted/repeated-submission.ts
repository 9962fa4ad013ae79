import type { SubmitHostedSessionRequest } from '../../../gen/forms/internal/v1/hosted_pb.js';
import type { Answers } from '../../domain/answers/answers.ts';
import { readInputs } from '../../domain/answers/form-inputs.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { uploadLimits } from '../../domain/fields/upload-limits.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import { isObject } from '../../domain/json/json.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import { findSubmission } from '../../store/submissions/submissions.ts';
import type { ServiceContext } from '../context.ts';
import { publishedForm } from '../forms/form-access.ts';
import { alreadySubmitted, savedAnswers } from '../sessions/session-access.ts';
import { completionOf } from '../submissions/completion.ts';
import { issuedAt, pagesOf } from './page-token.ts';

/**
 * Answers a page that is sent once more, by a second click or a reload, as it was answered first.
 *
 * It must be a page that was made before the submission, with the very same answers, and soon: whoever
 * opens the link afterwards learns nothing of what was answered. Throws `FAILED_PRECONDITION` otherwise.
 */
export async function repeatedSubmission(
  context: ServiceContext,
  session: Session,
  request: SubmitHostedSessionRequest,
  requestHeader: Headers,
) {
  const { definition, checkAnswers } = await context.forms.version(session.versionId);
  const given = readInputs(definition, request.inputs, { humanOnly: true });
  const checked = await checkAnswers(given, { base: savedAnswers(session), byPerson: true });
  const submissionId = session.submissionId ?? '';
  const first = await findSubmission(context.database, session.projectId, submissionId);
  if (first === null || !checked.ok || !isOfThatPage(context, session, request.issueToken)) {
    throw alreadySubmitted(submissionId);
  }
  if (comparable(definition, first.answers) !== comparable(definition, checked.answers)) {
    throw alreadySubmitted(submissionId);
  }
  const form = await publishedForm(context.forms, session.formId);
  const { redirectUrl = '' } = form.version.definition.settings;
  const reader = { redirectUrl, returnUrl: session.returnUrl, requestHeader };
  return { submissionId, ending: completionOf(definition, first.answers, reader) };
}

function isOfThatPage(context: ServiceContext, session: Session, token: string): boolean {
  const { submittedAt } = session;
  const now = context.now();
  const submitted = submittedAt?.getTime() ?? 0;
  const issued = issuedAt(context.verifyingKeys, { token, pageIds: pagesOf(session), now });
  return issued !== undefined && issued <= submitted && now < submitted + REPEAT_MS;
}

/** Answers as one text in which a file is its upload's id, without what else is known of it. */
function comparable({ fields }: FormDefinition, answers: Answers): string {
  const files = new Set(fields.flatMap((field) => (uploadLimits(field) === undefined ? [] : [field.id])));
  const bare = (file: unknown) => (isObject(file) ? (file.upload_id ?? file) : file);
  const entries = Object.entries(answers).map(([id, answer]) => {
    if (!files.has(id)) return [id, answer];
    return [id, Array.isArray(answer) ? answer.map(bare) : bare(answer)];
  });
  return canonicalJson(Object.fromEntries(entries));
}

/** A person who reloads the thank-you page does so within minutes. */
const REPEAT_MS = 10 * 60 * 1000;

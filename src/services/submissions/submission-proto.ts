import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { SessionContextSchema } from '../../../gen/headlessforms/v1/session_context_pb.js';
import {
  type AnswerOrigin,
  AnswerOriginSchema,
  type ListSubmissionsRequest,
  RespondentMethod,
  SubmissionSchema,
  SubmissionStatus,
  SubmissionStatusSchema,
} from '../../../gen/headlessforms/v1/submissions_pb.js';
import { expand, type Origin, type Provenance } from '../../domain/answers/provenance.ts';
import type { FormDefinition } from '../../domain/definition/definition.ts';
import { enumName } from '../../domain/enums.ts';
import { smallestIdAt } from '../../domain/ids.ts';
import type { JsonObject } from '../../domain/json/json.ts';
import { messageFrom, rowToMessage } from '../../domain/messages.ts';
import type { VerifiedRespondent } from '../../domain/sessions/respondent.ts';
import type { Session } from '../../store/sessions/session-table.ts';
import type { SubmissionFilter } from '../../store/submissions/submission-pages.ts';
import type { ShownSubmission } from '../../store/submissions/submissions.ts';
import { unknownValue } from '../request-values.ts';

/** A stored submission as the RPCs return it. */
export function submissionToMessage(row: ShownSubmission): MessageInitShape<typeof SubmissionSchema> {
  return rowToMessage(SubmissionSchema, row, {
    formVersionId: row.versionId,
    provenance: provenanceToMessage(provenanceOf(row)),
    ...(row.respondent !== null && { respondent: respondentToMessage(row.respondent) }),
  });
}

/** Who has answered, as the RPCs return it. */
export function respondentToMessage({ email, verifiedAt }: VerifiedRespondent) {
  return {
    method: RespondentMethod.EMAIL_CODE,
    email,
    verifyTime: timestampFromMs(Date.parse(verifiedAt)),
  };
}

/** A stored submission as it is read alone: with what its person was shown, and which answers are personal. */
export function wholeSubmission(
  row: ShownSubmission,
  session: Pick<Session, 'context'> | null,
  { fields }: Pick<FormDefinition, 'fields'>,
): MessageInitShape<typeof SubmissionSchema> & { personal: string[] } {
  const context = session?.context ?? null;
  return Object.assign(submissionToMessage(row), {
    personal: personalIn(row.answers, fields),
    ...(context !== null && { context: messageFrom(SessionContextSchema, context) }),
  });
}

/** The ids of the answers that are personal. */
export function personalIn(
  answers: JsonObject,
  fields: readonly { id: string; personal?: boolean | undefined }[],
): string[] {
  return fields.flatMap(({ id, personal }) => (personal === true && Object.hasOwn(answers, id) ? [id] : []));
}

/** What the audit log says of a read of one submission. */
export function readDetail({ personal }: { personal: string[] }): { detail?: string } {
  return personal.length > 0 ? { detail: 'with personal answers' } : {};
}

/** The status and the times that submissions are asked for by. Throws for a status that this version does not know. */
export function submissionRangeOf({
  status,
  createdAfter,
  createdBefore,
}: AskedRange = {}): SubmissionFilter {
  return {
    status: submissionStatusOf(status),
    ...(createdAfter !== undefined && { afterId: smallestIdAt('sub', timestampMs(createdAfter)) }),
    ...(createdBefore !== undefined && { beforeId: smallestIdAt('sub', timestampMs(createdBefore)) }),
  };
}

/** The status that submissions are asked for by. Throws for one that this version does not know. */
export function submissionStatusOf(status = SubmissionStatus.UNSPECIFIED): ShownSubmission['status'] {
  if (SubmissionStatus[status] === undefined) throw unknownValue('status', SubmissionStatusSchema);
  return enumName(SubmissionStatus, status) ?? 'accepted';
}

/** Where answers come from, as the RPCs return it. Answers of one origin share a message. */
export function provenanceToMessage(provenance: Provenance): Record<string, AnswerOrigin> {
  const known = new Map<Origin, AnswerOrigin>();
  const messages: Record<string, AnswerOrigin> = {};
  // Built in place: a page of a list has hundreds of them.
  for (const [id, origin] of provenance) {
    const message = known.get(origin) ?? originToMessage(origin);
    known.set(origin, message);
    messages[id] = message;
  }
  return messages;
}

function originToMessage(origin: Origin): AnswerOrigin {
  const answerTime = timestampFromMs(Date.parse(origin.at));
  return create(AnswerOriginSchema, rowToMessage(AnswerOriginSchema, origin, { answerTime }));
}

function provenanceOf({ provenance, answers, createdAt }: ShownSubmission): Provenance {
  return provenance === null ? new Map() : expand(provenance, Object.keys(answers), createdAt.toISOString());
}

/** A stored submission as the REST interface and the NDJSON export show it. */
export function submissionToJson(row: ShownSubmission): JsonObject {
  return {
    id: row.id,
    form_id: row.formId,
    form_version_id: row.versionId,
    session_id: row.sessionId,
    source: row.source,
    answers: row.answers,
    status: row.status,
    created_at: row.createdAt.toISOString(),
    metadata: row.metadata,
    ...(row.replaces !== null && { replaces: row.replaces }),
    ...(row.replacedBy !== null && { replaced_by: row.replacedBy }),
    ...(row.provenance !== null && { provenance: provenanceToJson(row) }),
    respondent: row.respondent && {
      method: row.respondent.method,
      email: row.respondent.email,
      verified_at: row.respondent.verifiedAt,
    },
  };
}

function provenanceToJson(row: ShownSubmission): JsonObject {
  return Object.fromEntries(
    [...provenanceOf(row)].map(([id, { by, at, keyId, verified }]) => [
      id,
      { by, at, ...(keyId !== undefined && { key_id: keyId }), ...(verified === true && { verified }) },
    ]),
  );
}

type AskedRange = Partial<Pick<ListSubmissionsRequest, 'status' | 'createdAfter' | 'createdBefore'>>;
